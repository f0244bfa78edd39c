"""Nothing that comes from outside reaches the terminal unfiltered, whatever the item (TUI-13.7, SAF-50)."""

import re

import pytest

from musepi_tui.session.messages import BashExecution, StopReason
from musepi_tui.tools.types import ToolView, view_to_json
from musepi_tui.tui.transcript.blocks import Item, ItemKind, NoticeBlock, ThinkingBlock
from tests.support.builders import a, branch_summary, call, compaction, custom, path, state, t, u
from tests.support.transcripts import drawn, model_of, picture

HOSTILE = (
    "\x1b]52;c;ZXZpbA==\x07 \x1b[2J\x1b[6n \x9b31m \x9d0;title\x9c \x07\x08\x7f\x00 \u202egpj.exe \ud800"
    " [bold]markup[/nope] \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x1bP1$r\x1b\\ \x1b_G\x1b\\ \x1b"
)
FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")

DIFF = f"@@ -1 +1 @@\n-{HOSTILE}\n+b"

ENTRIES = path(
    u(HOSTILE),
    a(HOSTILE, [call(HOSTILE, HOSTILE, path=HOSTILE, **{"x\x1b[2J": HOSTILE})], thinking=HOSTILE),
    t(HOSTILE, HOSTILE, HOSTILE),
    a(f"[a]({HOSTILE}) ![b]({HOSTILE})\n\n```{HOSTILE}\n{HOSTILE}\n```\n\n| {HOSTILE} |\n|--|\n&#x202e;&#7;"),
    a("", [call("bash", "c1", command=HOSTILE)]),
    t(HOSTILE, "c1", "bash", details={"view": view_to_json(ToolView("tail", HOSTILE, note=HOSTILE))}),
    a("", [call("edit", "c2")]),
    t(
        "x",
        "c2",
        "edit",
        details={"view": view_to_json(ToolView("diff", HOSTILE, f"@@ -1 +1 @@\n-{HOSTILE}\n+b"))},
    ),
    a("", [call("write", "c3")]),
    t("x", "c3", "write", details={"view": view_to_json(ToolView("code", HOSTILE, HOSTILE, HOSTILE))}),
    BashExecution(HOSTILE, HOSTILE, 1),
    compaction(HOSTILE, model=HOSTILE, reason=HOSTILE, method=HOSTILE, warning=HOSTILE),
    branch_summary(HOSTILE),
    custom(HOSTILE, HOSTILE),
    custom(HOSTILE, "handoff"),
    state("model_change", provider=HOSTILE, modelId=HOSTILE, role=HOSTILE),
    a(stop=StopReason.ERROR, error_message=HOSTILE + "\n" + HOSTILE),
    a("x", stop=StopReason.LENGTH, model=HOSTILE),
)
ITEMS = [
    *model_of(ENTRIES).items,
    Item("n", ItemKind.NOTICE, NoticeBlock("error", HOSTILE, HOSTILE)),
    Item("t", ItemKind.THINKING, ThinkingBlock(HOSTILE)),
]


@pytest.mark.parametrize("width", [9, 80])
@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.kind)
def test_nothing_escapes(item, expanded, width):
    for row in drawn(item, width, expanded=expanded):
        for segment in row.strip:
            assert not FORBIDDEN.search(segment.text)
            assert segment.control is None
            link = segment.style.link if segment.style else None
            assert link is None or not FORBIDDEN.search(link)


def test_markup_stays_text():
    assert "[bold]markup[/nope]" in picture(drawn(ITEMS[0]))


def test_line_of_a_megabyte_is_drawn():
    (item,) = model_of(path(a("x" * 1_000_000))).items
    assert len(drawn(item)) > 10_000
    (user,) = model_of(path(u("x" * 1_000_000))).items
    assert len(drawn(user)) == 42
