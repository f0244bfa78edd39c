from musepi_tui.session.labels import collect_labels
from tests.support.builders import path, state, u


def test_last_label_wins_and_an_empty_one_clears():
    entries = path(
        u("x"),
        state("label", targetId="a", label="one"),
        state("label", targetId="b", label="keep"),
        state("label", targetId="a", label="two"),
        state("label", targetId="c", label="gone"),
        state("label", targetId="c"),
        state("label", label="no target"),
    )
    assert collect_labels(entries) == {"a": "two", "b": "keep"}
