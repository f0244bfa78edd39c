import pytest

from musepi_tui.session.messages import BashExecution, Cost, FileMention, StopReason, UnknownMessage, Usage
from musepi_tui.tui.themes import load_palette
from musepi_tui.tui.tree.preview import MAX_CHARS, copied_text, preview_lines
from tests.support.branches import EDITED
from tests.support.builders import a, branch_summary, call, compaction, custom, edit, entry, state, t, u

DARK = load_palette("dark", {})
USAGE = Usage(input=1_200, output=340, cache_read=12_000, cost=Cost(total=0.0123))


def shown(part, width=100):
    lines = preview_lines(entry(part, "e", None), DARK, width)
    return "\n".join("".join(text for text, _ in line.spans) for line in lines)


@pytest.mark.parametrize(
    ("part", "texts"),
    [
        (u("hello\nworld", images=1), ["user · ", "hello\nworld", "[image"]),
        (
            a("text", [call("read", path="a.py")], thinking="hm", usage=USAGE, duration_ms=12_000),
            [
                "assistant · ",
                "· model · ↑1.2k ↓340 R12k tokens ·",
                "$0.012",
                "· 12s",
                "hm\n\ntext\n\nread a.py",
            ],
        ),
        (a("", stop=StopReason.ERROR, error_message="overloaded"), ["overloaded"]),
        (
            t("result", details=EDITED, tool="edit"),
            ["edit result", "edit src/lexer.py (+2 −1)", "-    return 1"],
        ),
        (t("no such file", error=True), ["read result", "failed", "no such file"]),
        (BashExecution("ls -l", "a.py", 0), ["command", "exit code 0", "$ ls -l\n\na.py"]),
        (FileMention(({"path": "a.py"},)), ["files", "a.py"]),
        (
            compaction("## Goal", tokens_before=231_785, tokens_after=24_100, reason="manual"),
            ["compaction", "manual", "231,785 → 24,100 tokens", "## Goal"],
        ),
        (branch_summary("what happened", usage=USAGE), ["branch summary", "$0.012", "what happened"]),
        (custom("injected", "handoff"), ["handoff", "injected"]),
        (state("model_change", modelId="m"), ["model change", '"modelId": "m"']),
        (edit("x"), ["context edit", "changes x"]),
        (UnknownMessage("robot", {"role": "robot"}), ["robot", '"role"']),
    ],
    ids=lambda value: type(value).__name__,
)
def test_preview_says_what_the_entry_is_and_all_its_text(part, texts):
    text = shown(part)
    for wanted in texts:
        assert wanted in text.replace("\n·", " ·")


def test_preview_of_a_huge_entry_is_cut():
    text = shown(u("word " * 100_000))
    assert len(text) < MAX_CHARS + 2_000
    assert text.endswith("… and more")


def test_preview_is_safe_to_show():
    assert "\x1b" not in shown(t("\x1b]52;c;AAAA\x07evil"))


def test_lines_fit_the_width():
    lines = preview_lines(entry(a("long words " * 30, usage=USAGE), "e", None), DARK, 20)
    assert all(line.cells <= 20 for line in lines)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (u("hello"), "hello"),
        (a("answer", [call("read")], thinking="hm"), "answer"),
        (a("", stop=StopReason.ERROR, error_message="overloaded"), "overloaded"),
        (t("result"), "result"),
        (BashExecution("ls -l", "a.py"), "ls -l"),
        (compaction("## Goal"), "## Goal"),
        (branch_summary("what happened"), "what happened"),
        (custom("injected"), "injected"),
        (state("model_change"), ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_copying_takes_what_was_said(part, text):
    assert copied_text(entry(part, "e", None)) == text
