import pytest

from musepi_tui.base.resources import read_prompt, render_prompt
from musepi_tui.session.messages import (
    BashExecution,
    CustomMessage,
    FileMention,
    StopReason,
    ToolCallBlock,
    UnknownMessage,
    UserMessage,
)
from musepi_tui.session.tree import LEAF_MARK
from musepi_tui.tui.tree.text import ROW_CHARS, describe, searched_text, text_of_row
from tests.support.builders import (
    a,
    branch_summary,
    call,
    compaction,
    custom,
    dev,
    edit,
    entry,
    state,
    t,
    u,
)

PREAMBLE = read_prompt("branch-summary-preamble")
HANDOFF = render_prompt("handoff-context", document="## Goal\nGo on.")


def described(part, *calls: ToolCallBlock) -> str:
    known = {made.id: made for made in calls}
    return describe(entry(part, "e1", None), known.get)


def searched(part, *calls: ToolCallBlock) -> str:
    known = {made.id: made for made in calls}
    return searched_text(text_of_row(entry(part, "e1", None), known.get))


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (u("why does\n\tit hang?", images=1), "user: why does it hang?"),
        (UserMessage(""), "user:"),
        (a("  Because of the loop. "), "assistant: Because of the loop."),
        (a("", stop=StopReason.ABORTED), "assistant: (aborted)"),
        (a("as far as", stop=StopReason.ABORTED), "assistant: as far as"),
        (
            a("", stop=StopReason.ERROR, error_message="overloaded\n" + "x" * 90),
            "assistant: overloaded " + "x" * 68 + "…",
        ),
        (a(""), "assistant: (no content)"),
        (a("", thinking="hm"), "assistant: (no content)"),
        (t("out", "c", "bash"), "[bash]"),
        (t("out", "c", ""), "[tool]"),
        (BashExecution("ls -l\npwd", "out"), "[bash]: ls -l pwd"),
        (BashExecution("1 + 1", "2", kind="python"), "[python]: 1 + 1"),
        (custom("Keep it short.", "example.note"), "[example.note]: Keep it short."),
        (custom("", "example.note"), "[example.note]"),
        (CustomMessage("example.hook", "ran"), "[example.hook]: ran"),
        (dev("be brief"), "[developer]: be brief"),
        (FileMention(({"path": "a.py"}, {"content": "x"})), "[files]: a.py, ?"),
        (UnknownMessage("narrator"), "[narrator]"),
        (compaction("S", tokens_before=231_785), "[compaction: 231k tokens]"),
        (branch_summary("A was\ntried."), "[branch summary]: A was tried."),
        (branch_summary(f"{PREAMBLE}\n\nA lexer with tables."), "[branch summary]: A lexer with tables."),
        (custom(HANDOFF, "handoff"), "[handoff]: ## Goal Go on."),
        (CustomMessage("handoff", HANDOFF), "[handoff]: ## Goal Go on."),
        (state("model_change", provider="p", modelId="m-1", model="p/m-1"), "[model: m-1]"),
        (state("model_change", model="p/org/m-1"), "[model: org/m-1]"),
        (state("model_change"), "[model: ?]"),
        (state("thinking_level_change", thinkingLevel="high"), "[thinking: high]"),
        (state("custom", customType="example.state"), "[custom: example.state]"),
        (state("custom", customType=LEAF_MARK), f"[custom: {LEAF_MARK}]"),
        (state("label", targetId="e0", label=" base "), "[label: base]"),
        (state("label", targetId="e0", label=""), "[label: (cleared)]"),
        (state("session_info", name="Dates"), "[title: Dates]"),
        (state("session_info"), "[title: (none)]"),
        (state("reset_boundary"), "[reset_boundary]"),
        (edit("e0"), "[context_edit]"),
        (state(""), "[entry]"),
    ],
)
def test_row_text_by_kind_of_entry(part, text):
    assert described(part) == text


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (call("read", "c", path="src/app.py"), "[read: src/app.py]"),
        (call("read", "c", path="src/app.py", offset=1, limit=40), "[read: src/app.py:1-40]"),
        (call("read", "c", path="src/app.py", limit=40), "[read: src/app.py:1-40]"),
        (call("read", "c", path="src/app.py", offset=120), "[read: src/app.py:120-]"),
        (call("bash", "c", command="pytest -q\n -x"), "[bash: pytest -q -x]"),
        (call("grep", "c", path="src", pattern="def \\w+", limit=5), "[grep: def \\w+ in src]"),
        (call("find", "c", pattern="*.py"), "[find: *.py]"),
        (call("todo", "c"), "[todo]"),
        (call("todo", "c", items=["a"]), "[todo]"),
        (call("", "c"), "[tool]"),
    ],
)
def test_result_is_shown_as_its_call(made, text):
    assert described(t("output", "c", "other"), made) == text


def test_row_text_is_one_safe_line_of_two_hundred_characters():
    text = described(u("\x1b[31mred\x1b[0m\u202e " + "word " * 200))
    assert text.startswith("user: red word word")
    assert "\x1b" not in text and "\u202e" not in text and "\n" not in text
    assert len(text) <= len("user: ") + ROW_CHARS


def test_tag_of_an_entry_is_safe_too():
    assert described(custom("x", "ev\x1b[2Jil\ntype")) == "[evil type]: x"


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (u("say it"), ["user", "say it"]),
        (a("yes"), ["assistant", "yes"]),
        (t("found nothing", "c", "x"), ["grep", "needle in src", "toolResult", "found nothing"]),
        (BashExecution("ls -l", ""), ["bash", "ls -l"]),
        (compaction("what was done", tokens_before=9_000), ["compaction", "9.0k tokens", "what was done"]),
        (branch_summary("it failed"), ["branch summary", "it failed"]),
        (state("model_change", modelId="m-1"), ["model m-1"]),
        (state("thinking_level_change", thinkingLevel="high"), ["thinking high"]),
        (custom("text", "example.note"), ["custom", "example.note", "text"]),
        (state("custom", customType="example.state"), ["custom example.state"]),
        (state("session_info", name="Dates"), ["title Dates"]),
    ],
)
def test_search_looks_at_role_type_and_content(part, words):
    text = searched(part, call("grep", "c", pattern="needle", path="src"))
    assert [word for word in words if word not in text] == []


def test_search_looks_at_the_first_two_hundred_characters():
    text = searched(u("x" * 250 + "needle"))
    assert "needle" not in text
    assert "x" * ROW_CHARS in text


def test_search_looks_at_the_summary_and_not_at_what_is_in_front_of_it():
    found = searched(branch_summary(f"{PREAMBLE}\n\n{'x' * 180} tables"))
    assert "explored" not in found
    assert found.endswith("tables")
