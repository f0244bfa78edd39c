import pytest

from musepi_tui.base.errors import EmptySummaryError, SummaryRejectedError
from musepi_tui.context.merge import (
    check_summary_size,
    clean_answer,
    inherited_data,
    merge_split_turn,
    validate_summary,
)

LOOP = "- reading the file src/app.py again\n"


def test_split_turn_is_merged_below_the_history():
    assert merge_split_turn("H", "P") == "H\n\n---\n\n**Turn Context (split turn):**\n\nP"
    assert merge_split_turn("H", None) == "H"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("<summary>\nA\n</summary>", "A"),
        ("<summary>\nA cut off", "A cut off"),
        ("<SUMMARY kind='x'>A", "A"),
        ("A\n</summary>", "A"),
        ("plain", "plain"),
        ("uses a <summary> tag </summary> inside", "uses a <summary> tag </summary> inside"),
    ],
)
def test_clean_answer_removes_the_tags_around_it(answer, text):
    assert clean_answer(answer) == text


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_blank_summary_is_refused_with_a_hint(text):
    with pytest.raises(EmptySummaryError, match="lower thinking level"):
        validate_summary(text)


def test_summary_that_fills_the_window_is_refused():
    check_summary_size(4000, 8000)
    check_summary_size(400_000, None)
    with pytest.raises(SummaryRejectedError, match="4,001 tokens for a context window of 8,000"):
        check_summary_size(4001, 8000)


@pytest.mark.parametrize("text", [LOOP * 12, "## Goal\nShort.\n" + LOOP * 40])
def test_repeating_summary_is_refused(text):
    with pytest.raises(SummaryRejectedError):
        validate_summary(text)


@pytest.mark.parametrize(
    "text",
    [
        "## Goal\nFix it.",
        LOOP * 11,
        "- done\n" * 40,
        LOOP * 12 + "\n".join(f"- changed the function number {number} in module" for number in range(12)),
    ],
    ids=["plain", "eleven-times", "short-lines", "less-than-most-of-it"],
)
def test_honest_summary_passes(text):
    assert validate_summary(text) is None


def test_data_of_a_provider_is_not_inherited():
    previous = {"openaiRemoteCompaction": 1, "remoteCompaction": 2, "snapcompact": 3, "hook": 4}
    assert inherited_data(previous) == {"hook": 4}
    assert inherited_data({"snapcompact": 3}) is None
    assert inherited_data(None) is None
