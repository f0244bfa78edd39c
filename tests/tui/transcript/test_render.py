from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from musepi_tui.base.errors import EntryNotFoundError
from musepi_tui.session.entries import Entry
from musepi_tui.session.messages import BashExecution, FileMention, StopReason, ThinkingBlock, UnknownMessage
from musepi_tui.tools.types import ToolView, view_to_json
from musepi_tui.tui.transcript.blocks import (
    AnswerBlock,
    BashBlock,
    Block,
    CustomBlock,
    DividerBlock,
    ErrorBlock,
    HeaderBlock,
    InterruptedBlock,
    Item,
    ItemKind,
    NoticeBlock,
    ToolBlock,
    ToolState,
    UserBlock,
)
from musepi_tui.tui.transcript.blocks import ThinkingBlock as Thought
from musepi_tui.tui.transcript.brush import Brush
from musepi_tui.tui.transcript.render import render_item
from tests.support.builders import a, call, custom, dev, edit, path, state, t, u
from tests.support.transcripts import drawn, model_of, palette, picture


def shown(*parts: Any, width: int = 80, expanded: bool = False) -> str:
    """The items of a path, a blank line between them."""
    items = model_of(path(*parts)).items
    return "\n\n".join(picture(drawn(item, width, expanded=expanded)) for item in items)


def result(view: ToolView, text: str, *, error: bool = False, **details: Any) -> tuple[Any, Any]:
    """A call and its result, stored with a view."""
    tool = view.title.split()[0].replace("$", "bash")
    return (
        a(calls=[call(tool, "c")]),
        t(text, "c", tool, error=error, details={"view": view_to_json(view), **details}),
    )


def test_user_message_has_its_sign_and_hangs():
    assert shown(u("Fix the bug\nand run the tests please", images=2), width=24) == (
        "› Fix the bug\n  and run the tests\n  please\n  [image 1 · png · 1KB]\n  [image 2 · png · 1KB]"
    )


def test_long_user_message_shows_forty_rows():
    text = "\n".join(f"line {number}" for number in range(50))
    lines = shown(u(text)).split("\n")
    assert lines[39:] == ["  line 39", "  … 10 more lines · ctrl+o"]
    assert shown(u(text), expanded=True).endswith("line 49")


def test_thinking_is_shown_under_its_heading_and_hidden_in_one_line():
    thought = Item("x", ItemKind.THINKING, Thought("Read *it* first.", seconds=12.4))
    assert picture(drawn(thought, expanded=True)) == "  Thinking\n  Read it first."
    assert picture(drawn(thought)) == "  Thought for 12s"
    assert picture(drawn(Item("x", ItemKind.THINKING, Thought("a", live=True)))) == "  Thinking…"
    assert picture(drawn(Item("x", ItemKind.THINKING, Thought("a")))) == "  Thought"
    redacted = a("hi")
    redacted = a(thinking="").__class__(
        content=(ThinkingBlock("", "sig", redacted=True),),
        api="x",
        provider="p",
        model="m",
        stop_reason=StopReason.STOP,
    )
    assert shown(redacted, expanded=True) == "  Thinking (hidden by provider)"


def test_read_shows_its_count_only():
    parts = result(ToolView("none", "read src/app.py:10-40", note="31 lines"), "text of the file")
    assert shown(*parts) == "✓ read src/app.py:10-40 · 31 lines"
    assert shown(*parts, expanded=True).endswith("  │ text of the file")


def test_search_shows_its_first_rows():
    text = "\n".join(f"a.py:{number}: hit" for number in range(20))
    assert shown(*result(ToolView("list", "grep /hit/ in src"), text)) == (
        "✓ grep /hit/ in src\n"
        + "".join(f"  │ a.py:{number}: hit\n" for number in range(8))
        + "  … 12 more lines · ctrl+o"
    )


def test_command_shows_its_last_rows_its_time_and_its_colours():
    text = "\n".join(f"row {number}" for number in range(43)) + "\n10%\r20%\r100%\n\x1b[31mred\x1b[0m\n"
    parts = result(ToolView("tail", "$ make"), text, durationMs=1_420)
    assert shown(*parts) == (
        "✓ $ make · 1.4s\n"
        "  … 35 earlier lines · ctrl+o\n"
        + "".join(f"  │ row {number}\n" for number in range(35, 43))
        + "  │ 100%\n  │ red"
    )
    (item,) = model_of(path(*parts)).items
    (red,) = [
        segment for row in drawn(item) for segment in row.strip if segment.text == "red" and segment.style
    ]
    assert red.style is not None
    assert red.style.color is not None


def test_failed_command_and_failed_call_show_why():
    assert (
        shown(*result(ToolView("tail", "$ false"), "exit code 1", error=True)) == "✗ $ false\n  │ exit code 1"
    )
    parts = result(ToolView("diff", "edit a.py", "@@ -1 +1 @@\n-a\n+b\n"), "old text not found", error=True)
    assert shown(*parts) == "✗ edit a.py\n  │ old text not found"
    assert "1 + b" in shown(*parts, expanded=True)


def test_edit_shows_its_diff():
    view = ToolView("diff", "edit a.py (+1 −1)", "@@ -7,2 +7,2 @@\n keep\n-old\n+new\n")
    assert shown(*result(view, "done")) == "✓ edit a.py (+1 −1)\n  7   keep\n  8 - old\n  8 + new"


def test_long_diff_is_cut_at_twenty_rows():
    body = "@@ -1,0 +1,30 @@\n" + "".join(f"+line {number}\n" for number in range(30))
    lines = shown(*result(ToolView("diff", "edit a.py", body), "done")).split("\n")
    assert len(lines) == 22
    assert lines[-1] == "  … 10 more lines · ctrl+o"


def test_written_file_shows_its_first_lines():
    body = "\n".join(f"x{number} = {number}" for number in range(14)) + "\n"
    lines = shown(*result(ToolView("code", "write a.py", body, "python"), "done")).split("\n")
    assert lines[:2] == ["✓ write a.py", "  │ x0 = 0"]
    assert lines[-1] == "  … 4 more lines · ctrl+o"


@pytest.mark.parametrize(
    ("tool", "arguments", "title"),
    [
        ("bash", {"command": "make test\nmake lint"}, "$ make test  +1 line"),
        ("read", {"path": "a.py", "offset": 10, "limit": 5}, "read a.py:10-14"),
        ("grep", {"pattern": "x+", "path": "src"}, "grep /x+/ in src"),
        ("find", {"pattern": "*.py"}, "find *.py"),
        ("ls", {}, "ls"),
        ("WebFetch", {"timeout": 3, "url": "https://a.example"}, "WebFetch https://a.example"),
        ("todo", {"items": [1, 2]}, "todo"),
        ("read", {"path": 7}, "read"),
    ],
)
def test_calls_without_a_view_get_a_title(tool, arguments, title):
    parts = (a(calls=[call(tool, "c", **arguments)]), t("", "c", tool))
    assert shown(*parts).split("\n")[0].rstrip() == f"✓ {title}"


def test_open_call_shows_the_arguments_its_title_does_not_hold():
    parts = (a(calls=[call("ask", "c", query="why", depth=3, note="a\nb")]), t("because", "c", "ask"))
    assert shown(*parts, expanded=True) == ("✓ ask why\n  │ depth: 3\n  │ note: a\n  │ b\n  │ because")


def test_call_without_result_is_cancelled():
    assert shown(a("x", calls=[call("bash", "c", command="sleep 9")], stop=StopReason.ABORTED)) == (
        "  x\n\n✗ $ sleep 9 · cancelled\n\n  Interrupted"
    )


def test_pruned_result_shows_its_placeholder_and_opens_to_the_original():
    parts = (
        a(calls=[call("read", "c", path="a")]),
        t("the original", "c"),
        edit("e2", "[Output truncated - 9 tokens]"),
    )
    assert shown(*parts) == "✓ read a\n  │ [Output truncated - 9 tokens]"
    assert "the original" in shown(*parts, expanded=True)


def test_result_without_call_stands_for_itself():
    assert shown(t("text", "lost", "mystery")) == "✓ mystery\n  │ text"


@pytest.mark.parametrize(
    ("block", "row"),
    [
        (ToolBlock("bash", ToolState.PENDING, ToolView("tail", "$ x")), "· $ x"),
        (ToolBlock("bash", ToolState.WAITING, ToolView("tail", "$ x")), "› $ x · waits for your answer"),
        (ToolBlock("bash", ToolState.RUNNING, ToolView("tail", "$ x"), "tail"), "⠙ $ x · 3s\n  │ tail"),
    ],
)
def test_unfinished_calls_show_where_they_stand(block, row):
    brush = Brush(palette(), 60, frame=1, elapsed_s=3.2)
    assert picture(render_item(Item("x", ItemKind.TOOL, block), brush)) == row


def test_command_of_the_person_shows_how_it_ended():
    excluded = BashExecution("ls", "a\nb\n", 2, excluded=True, truncated=True)
    assert shown(excluded) == (
        "$ ls · not sent to model\n  │ a\n  │ b\n  exit code 2\n  The output was longer than what is kept."
    )
    assert shown(BashExecution("ls", "", None, cancelled=True)) == "$ ls\n  ✗ cancelled"


def test_failed_request_tells_cause_then_remedy():
    parts = (a(stop=StopReason.ERROR, error_message="429 from api: slow down\n{body}", error_status=429),)
    assert shown(*parts, width=100) == (
        "✗ 429 from api: slow down\n"
        "  Wait a little and send the message again, or choose another model with /model."
    )
    assert "{body}" in shown(*parts, expanded=True)


@pytest.mark.parametrize(
    ("status", "word"), [(401, "key"), (404, "/model"), (413, "/compact"), (500, "again")]
)
def test_failed_request_names_a_remedy(status, word):
    assert word in shown(a(stop=StopReason.ERROR, error_message="it broke", error_status=status))


def test_answer_cut_at_the_limit_says_so():
    assert "output limit of model" in shown(a("half", stop=StopReason.LENGTH))


def test_notices_have_signs_counts_and_details():
    assert picture(drawn(Item("n", ItemKind.NOTICE, NoticeBlock("info", "saved")))) == "· saved"
    twice = Item("n", ItemKind.NOTICE, NoticeBlock("warning", "slow", "the long story", count=3))
    assert picture(drawn(twice)) == "! slow ×3"
    assert picture(drawn(twice, expanded=True)) == "! slow ×3\n  the long story"
    assert picture(drawn(Item("n", ItemKind.NOTICE, NoticeBlock("error", "bad")))) == "✗ bad"


def test_changes_of_model_and_level_are_told_and_bookkeeping_is_not():
    assert (
        shown(
            u("hi"),
            state("model_change", provider="acme", modelId="big"),
            state("model_change", model="acme/small", role="smol"),
            state("thinking_level_change", thinkingLevel="high"),
            state("label", targetId="e1", label="x"),
            state("session_info", name="x"),
            state("custom", customType="x"),
            state("somebody_elses_type"),
        )
        == "› hi\n\n· Model: acme/big\n\n· Model: acme/small (smol)\n\n· Thinking: high"
    )


def test_what_a_session_begins_with_is_not_told():
    begins = [state("model_change", model="acme/big"), state("thinking_level_change", thinkingLevel="high")]
    assert shown(*begins, u("hi")) == "› hi"


def test_messages_of_other_programs_are_shown():
    assert shown(
        custom("text", "reminder"),
        custom("hidden", display=False),
        dev("rules"),
        FileMention(({"path": "a.py"}, {"path": "b.py"})),
        UnknownMessage("robot"),
    ) == (
        "  [reminder]\n  text\n\n"
        "  [developer]\n  rules\n\n"
        "  [files]\n  a.py\n  b.py\n\n"
        "  [unknown message: robot]"
    )


def test_entry_that_cannot_be_read_says_so():
    entries = path(u("hi"), a("there"))
    model = model_of(entries)

    def read(entry_id: str) -> Entry:
        raise EntryNotFoundError(f"Entry {entry_id} not found")

    from musepi_tui.tui.transcript.model import TranscriptModel
    from tests.support.transcripts import session_view

    model = TranscriptModel(read)
    model.reset(session_view(entries))
    assert picture(drawn(model.items[0])) == "  [unreadable entry]\n  Entry e1 not found"


def test_ascii_symbols_are_used_throughout():
    item = model_of(path(a(calls=[call("read", "c", path="a")]), t("x", "c"))).items[0]
    assert picture(drawn(item, theme=palette(symbols="ascii"))) == "ok read a"


SAMPLE = (
    "text **bold** 日本語 ❤️ 👩‍👩‍👦 `code` https://example.org/a/very/long/address\n"
    "- item\n\n```py\nx = [1]\n```\nend"
)
ITEMS: list[Block] = [
    HeaderBlock(("musepi", SAMPLE)),
    UserBlock(SAMPLE, ("[image · png]",)),
    AnswerBlock(SAMPLE + "\n\n| a | 日本 |\n|--|--|\n| one two | three |\n\n> quote\n> > more"),
    Thought(SAMPLE, seconds=3),
    *(
        ToolBlock(
            "t",
            tool_state,
            ToolView(kind, "tool 日本 " + SAMPLE, body, "python", "3 lines"),
            SAMPLE,
            {"x": 1},
        )
        for tool_state in (ToolState.OK, ToolState.ERROR, ToolState.RUNNING)
        for kind, body in (
            ("none", None),
            ("text", None),
            ("tail", None),
            ("code", SAMPLE),
            ("diff", "@@ -9 +9,2 @@\n-a\tb 日本\n+a\tc 日本語\n+x  \n"),
        )
    ),
    ToolBlock("t", ToolState.OK, ToolView("text", "t"), SAMPLE, placeholder="[Output truncated - 9 tokens]"),
    BashBlock("ls 日本 " * 9, "\x1b[1;31mred 日本\x1b[0m\n" * 30, 3, truncated=True),
    DividerBlock(
        "camera", "compacted", "9 tokens", SAMPLE, ("idle", "x/y"), "warned", ("src/", "  a.py (RW)")
    ),
    CustomBlock("label", SAMPLE),
    NoticeBlock("warning", SAMPLE, SAMPLE, 3),
    ErrorBlock(SAMPLE, SAMPLE, SAMPLE),
    InterruptedBlock(),
]


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(ITEMS),
    st.integers(1, 300),
    st.booleans(),
    st.sampled_from(["unicode", "ascii"]),
    st.booleans(),
)
def test_every_row_is_exactly_as_wide_as_the_screen(block, width, expanded, symbols, mono):
    theme = palette("mono" if mono else "dark", symbols=symbols)
    rows = render_item(Item("x", ItemKind.USER, block), Brush(theme, width, expanded=expanded))
    assert rows
    for row in rows:
        assert cell_len(row.strip.text) == row.strip.cell_length == width
        assert all(segment.style is not None for segment in row.strip)
        assert row.margin <= len(row.strip.text)
    assert not rows[-1].strip.text.strip()


@pytest.mark.parametrize("block", ITEMS)
def test_backgrounds_end_before_the_row_does(block):
    for row in render_item(Item("x", ItemKind.USER, block), Brush(palette(), 60, expanded=True)):
        last = list(row.strip)[-1]
        assert last.style is not None
        assert last.style.bgcolor is None
