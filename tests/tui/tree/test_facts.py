import pytest
from hypothesis import given, settings

from musepi_tui.session.entries import Entry
from musepi_tui.tui.tree.facts import Facts
from musepi_tui.tui.tree.filters import Kind
from tests.support.builders import a, call, custom, t, u
from tests.support.random_sessions import trees
from tests.support.trees import plant, reader_of, stored


def facts_of(tree, read, read_start=None) -> Facts:
    made = Facts(read, read_start)
    made.grow(tree, tree.parents)
    return made


@settings(max_examples=60, deadline=None)
@given(trees())
def test_lines_tell_what_decoded_entries_tell(tmp_path_factory, entries):
    with stored(tmp_path_factory.mktemp("facts"), entries) as loaded:
        everything = range(len(loaded.tree))
        quick = facts_of(loaded.tree, reader_of(loaded), loaded.bodies.line_start)
        slow = facts_of(loaded.tree, reader_of(loaded))
        for facts in (quick, slow):
            facts.settle_all(everything)
        assert quick.kinds == slow.kinds
        assert quick.texts_of(everything) == slow.texts_of(everything)


def test_texts_may_be_asked_for_before_the_kinds_are_settled():
    planted = plant({"u1": (None, u("Say")), "a1": ("u1", a("", [call("read", "c", path="x.py")]))})
    planted.append(t("out", "c"), "r1", "a1")
    facts = facts_of(planted.tree, planted.read)
    assert facts.texts_of([2, 1, 0]) == [
        "read x.py toolresult out",
        "assistant (no content)",
        "user say",
    ]
    assert facts.kinds[1] == Kind.CALLS_ONLY


def test_prompts_and_results_of_quick_sessions_are_read_without_decoding(tmp_path):
    planted = plant({"u1": (None, u("Say")), "a1": ("u1", a("x", [call("read", "c", path="x.py")]))})
    planted.append(t("out" * 400, "c"), "r1", "a1")

    def read(entry_id: str) -> Entry:
        raise AssertionError(entry_id)

    with stored(tmp_path, tuple(planted.entries.values())) as loaded:
        facts = facts_of(loaded.tree, read, loaded.bodies.line_start)
        assert facts.texts_of([2])[0].startswith("read x.py toolresult outout")


@pytest.mark.parametrize(
    ("attribution", "kind"), [("user", Kind.TYPED_INSERT), ("agent", Kind.PLACE), (None, Kind.PLACE)]
)
def test_message_of_an_extension_is_typed_when_it_says_so(attribution, kind):
    planted = plant({"x1": (None, custom("text", attribution=attribution))})
    facts = facts_of(planted.tree, planted.read)
    assert facts.settle_all([0]) == (kind is Kind.TYPED_INSERT)
    assert facts.kinds[0] == kind


def test_result_without_a_call_near_by_is_named_by_its_tool():
    planted = plant({"a0": (None, a("", [call("read", "c", path="far.py")]))})
    for number in range(1, 6):
        planted.append(a("", [call("read", f"c{number}")]), f"a{number}", f"a{number - 1}")
    planted.append(t("out", "c", "read"), "r1", "a5")
    planted.append(t("out", "c2", "read"), "r2", "a3")
    facts = facts_of(planted.tree, planted.read)
    assert facts.call_of(6, "c") is None
    assert facts.call_of(7, "c2") is not None
