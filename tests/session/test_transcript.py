import pytest
from hypothesis import given

from musepi_tui.session.messages import StopReason
from musepi_tui.session.transcript import RowKind, build_transcript
from tests.session.test_rebuild import paths
from tests.support.builders import a, branch_summary, call, compaction, custom, path, state, t, u


def rows(*parts, **options) -> list[tuple[str, str]]:
    return [(row.kind.value, row.entry_id) for row in build_transcript(path(*parts), **options)]


COMPACTED_TWICE = (u("u1"), a("a1"), compaction("1", "e1"), u("u2"), compaction("2", "e4"), u("u3"))


def test_inline_transcript_shows_everything_and_each_divider_in_its_place():
    assert rows(*COMPACTED_TWICE) == [
        ("user", "e1"),
        ("assistant", "e2"),
        ("compaction", "e3"),
        ("user", "e4"),
        ("compaction", "e5"),
        ("user", "e6"),
    ]


def test_collapsed_transcript_shows_the_kept_run_then_the_divider():
    assert rows(*COMPACTED_TWICE, collapse=True) == [("user", "e4"), ("compaction", "e5"), ("user", "e6")]


def test_collapsed_transcript_shows_all_when_no_compaction_is_usable():
    assert rows(u("1"), compaction(" ", "e1"), u("2"), collapse=True) == [
        ("user", "e1"),
        ("compaction", "e2"),
        ("user", "e3"),
    ]


def test_collapsed_transcript_starts_after_a_reset():
    assert rows(u("1"), compaction("S", "e1"), state("reset_boundary"), u("2"), collapse=True) == [
        ("user", "e4")
    ]


def test_blocks_of_an_answer_become_rows():
    made = build_transcript(
        path(a("text", [call("ls", path=".")], thinking="hm"), t("a.py", tool="ls", error=True))
    )
    assert [row.kind for row in made] == [
        RowKind.THINKING,
        RowKind.ASSISTANT,
        RowKind.TOOL_CALL,
        RowKind.TOOL_RESULT,
    ]
    assert made[2].text == 'ls {"path": "."}'
    assert (made[3].tool_name, made[3].is_error, made[3].text) == ("ls", True, "a.py")


def test_calls_without_result_are_counted_in_a_notice():
    made = build_transcript(path(a("text", [call("ls"), call("read")])))
    assert [(row.kind, row.text) for row in made] == [
        (RowKind.ASSISTANT, "text"),
        (RowKind.NOTICE, "2 tool calls without a result"),
    ]


@pytest.mark.parametrize(
    ("message", "expected"),
    [("overloaded", ["overloaded"]), (None, ["error"]), ("__omp.silent_abort__", [])],
)
def test_failed_answer_says_why_unless_it_is_silent(message, expected):
    made = build_transcript(path(a(stop=StopReason.ERROR, error_message=message)))
    assert [row.text for row in made] == expected


def test_injected_messages_show_unless_hidden():
    assert rows(custom("doc", "handoff"), custom("x"), custom("y", display=False), branch_summary("B")) == [
        ("handoff", "e1"),
        ("custom", "e2"),
        ("branchSummary", "e4"),
    ]


def test_warning_stored_later_joins_its_divider():
    late = state(
        "custom", customType="compaction.warning", data={"targetId": "e2", "warning": "still too big"}
    )
    made = build_transcript(path(u("1"), compaction("S", "e1"), late))
    assert made[1].warning == "still too big"


@given(paths)
def test_transcript_has_a_row_for_every_compaction_and_user_message(entries):
    made = build_transcript(entries)
    assert [row.entry_id for row in made if row.kind is RowKind.COMPACTION] == [
        entry.id for entry in entries if entry.type == "compaction"
    ]
    assert build_transcript(entries) == made


@given(paths)
def test_collapsing_only_leaves_rows_out(entries):
    whole = [row.entry_id for row in build_transcript(entries)]
    collapsed = [row.entry_id for row in build_transcript(entries, collapse=True)]
    assert set(collapsed) <= set(whole)
