import pytest

from musepi_tui.base.resources import read_prompt
from musepi_tui.session.passes import EMPTY_HANDOFF, branch_text, handoff_text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<handoff-context>\nGo on with b.\n</handoff-context>", "Go on with b."),
        ("<handoff-context>\nGo on.\n</handoff-context>\n\nThis document was written earlier.", "Go on."),
        ("<handoff-context>never closed", "never closed"),
        ("no wrapper </handoff-context> at all", "no wrapper </handoff-context> at all"),
        ("<handoff-context>\n</handoff-context>\n\nGo on.", EMPTY_HANDOFF),
        ("", EMPTY_HANDOFF),
    ],
    ids=["plain", "with-a-sentence", "open", "foreign", "empty-document", "nothing"],
)
def test_handoff_is_shown_without_what_is_around_it(content, text):
    assert handoff_text(content) == text


PREAMBLES = (
    read_prompt("branch-summary-preamble"),
    "The user explored a different conversation branch before returning here.\nSummary of that branch:",
)


@pytest.mark.parametrize("preamble", PREAMBLES, ids=["own", "other-tool"])
def test_branch_summary_is_shown_without_what_is_in_front_of_it(preamble):
    assert branch_text(f"{preamble}\n\n## Goal\nTables.\n") == "## Goal\nTables."


def test_branch_summary_without_such_words_stays_as_it_is():
    text = "Tables.\nSummary of that branch: none"
    assert branch_text(text) == text
