import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from musepi_tui.runtime.events import SessionReady
from musepi_tui.runtime.intents import OpenSession
from musepi_tui.storage.listing import Batch, SessionInfo
from musepi_tui.tui.screens.panel import PanelView
from musepi_tui.tui.screens.search import fitting, texts_of
from musepi_tui.tui.screens.session_rows import (
    MORE_CELLS,
    Facts,
    details_of,
    facts_besides,
    fitting_details,
    shown_besides,
)
from tests.support.builders import START_MS
from tests.support.fake_runtime import SONNET
from tests.support.lines import answer_record, chain, header_line, record, user_record, write_lines
from tests.support.screens import on_stage

TIME = "2025-06-15T14:00:00.000Z"
HERE = "/home/ada/parser"
FACTS = Facts(START_MS, "/home/ada", None, lambda _: True, {"openai/gpt": 200_000, "openai/odd": None}.get)


def info(path: Path | str, title: str, **fields: object) -> SessionInfo:
    row = SessionInfo(
        Path(path), Path(path).stem, HERE, title, TIME, TIME, 10, 2_100_000, "musepi", "complete"
    )
    return replace(row, **fields)


def test_what_is_known_besides_is_told_and_what_is_not_is_left_out():
    known = info("/s/a.jsonl", "A", model="openai/gpt", context_tokens=84_900, branches=3, compactions=1)
    assert facts_besides(known, FACTS) == {
        "branches": "3 branches",
        "size": "2.1MB",
        "context": "42%",
        "model": "gpt",
        "compactions": "1 compaction",
    }
    assert facts_besides(info("/s/a.jsonl", "A", branches=1, compactions=0), FACTS) == {"size": "2.1MB"}


@pytest.mark.parametrize(("model", "tokens"), [("openai/odd", 5), ("openai/other", 5), ("openai/gpt", None)])
def test_share_of_an_unknown_window_or_context_is_left_out(model, tokens):
    assert "context" not in facts_besides(info("/s", "A", model=model, context_tokens=tokens), FACTS)


def test_size_is_not_told_twice():
    known = info("/s/a.jsonl", "A")
    assert "size" not in facts_besides(known, replace(FACTS, order="size"))
    assert details_of(known, replace(FACTS, order="size"))["order"] == "2.1MB"


def test_wider_rows_tell_more():
    counts = [len(shown_besides(width)) for width in range(300)]
    assert counts == sorted(counts)
    assert counts[40] == 0
    assert counts[-1] == len(MORE_CELLS)


def test_narrow_rows_keep_the_time_and_do_without_the_messages_first():
    details = {"tool": "Codex", "folder": "~/parser", "messages": "10 messages", "order": "1h"}
    assert fitting_details(details, 80) == list(details.values())
    assert fitting_details(details, 24) == ["Codex", "~/parser", "1h"]
    assert fitting_details(details, 15) == ["~/parser", "1h"]
    assert fitting_details(details, 0) == ["1h"]


def test_an_expression_finds_lines_in_any_case():
    rows = [texts_of("Fix the parser", "why so slow", "0198-abcd", ""), texts_of("Prefix", "", "0199-ef", "")]
    assert fitting("^FIX", rows, lambda row: row) == rows[:1]
    assert fitting(r"fix\b", rows, lambda row: row) == rows
    assert fitting(" ^0199", rows, lambda row: row) == rows[1:]
    with pytest.raises(ValueError, match="no regular expression"):
        fitting("(", rows, lambda row: row)


# -- on the screen


def stored_sessions(folder: Path) -> tuple[SessionInfo, ...]:
    """Three sessions with files, the second one gone on in the third."""
    answer = answer_record("a", "e1", "It reads peek() twice.")
    files = [
        write_lines(folder / "one.jsonl", header_line(), *chain("Why does it hang?"), answer),
        write_lines(folder / "two.jsonl", header_line(), *chain("Write the notes", "and the docs")),
        write_lines(folder / "three.jsonl", header_line(), user_record("u", None, "look-ahead, please")),
    ]
    titles = ("Why does it hang?", "Write the notes", "Go on")
    first, second, third = (info(file, title, messages=2) for file, title in zip(files, titles, strict=True))
    known = replace(first, model="anthropic/claude-sonnet", context_tokens=84_900, branches=3, compactions=1)
    return known, replace(second, model="openai/gpt"), replace(third, parent="two")


@pytest.fixture
def stored(tmp_path: Path) -> tuple[SessionInfo, ...]:
    return stored_sessions(tmp_path)


def listing(rows):
    def prepare(runtime):
        runtime.sessions = rows
        runtime.batches = (Batch(tuple(rows), done=len(rows), total=len(rows)),)

    return prepare


async def test_end_of_the_marked_session_is_shown_on_wide_screens(tmp_path, stored):
    async with on_stage(tmp_path, prepare=listing(stored), size=(120, 30)) as stage:
        stage.app.host.show("resume")
        await stage.shows("It reads peek() twice.")
        await stage.press("down")
        await stage.shows("› and the docs")
        assert "goes on in: Go on" in stage.text
        assert "openai/gpt" in stage.text
        assert "peek()" not in stage.text
        await stage.press("down")
        await stage.shows("comes from: Write the notes")
        await stage.press("enter")
        assert stage.sent == [OpenSession(str(stored[2].path))]


async def test_click_takes_the_row_and_not_the_preview_beside_it(tmp_path, stored):
    async with on_stage(tmp_path, prepare=listing(stored), size=(120, 30)) as stage:
        stage.app.host.show("resume")
        await stage.shows("It reads peek() twice.")
        lines = stage.text.split("\n")[stage.app.screen.view.region.y :]
        row = next(number for number, line in enumerate(lines) if "Write the notes" in line)
        await stage.pilot.click(PanelView, offset=(100, row))
        assert stage.sent == []
        await stage.pilot.click(PanelView, offset=(10, row))
        assert stage.sent == [OpenSession(str(stored[1].path))]


async def test_share_of_the_context_is_told_once_the_models_are_known(tmp_path, stored):
    def loading(runtime):
        listing(stored)(runtime)
        runtime.offered = ()

    async with on_stage(tmp_path, prepare=loading, size=(120, 30)) as stage:
        stage.app.host.show("resume")
        await stage.shows("84k tokens")
        assert "of 200k" not in stage.text
        stage.runtime.offered = (SONNET,)
        await stage.tell(SessionReady(stage.runtime.view_now))
        await stage.shows("42% of 200k")


async def test_narrow_screens_have_no_preview(tmp_path, stored):
    async with on_stage(tmp_path, prepare=listing(stored), size=(109, 30)) as stage:
        stage.app.host.show("resume")
        await stage.shows("Write the notes")
        assert "│" not in stage.text
        await stage.pilot.resize_terminal(110, 30)
        await stage.shows("It reads peek() twice.")


async def test_preview_says_why_there_is_none(tmp_path):
    rows = (
        info(tmp_path / "gone.jsonl", "Gone"),
        info(tmp_path / "c.jsonl", "Of another tool", tool="claude", is_own=False),
    )
    async with on_stage(tmp_path, prepare=listing(rows), size=(120, 30)) as stage:
        stage.app.host.show("resume")
        await stage.shows("No such file")
        await stage.press("down")
        await stage.shows("once a copy of it")


async def test_preview_is_safe_and_shows_what_was_done(tmp_path):
    lines = [
        user_record("u", None, "go\x1b]52;c;aGk=\x07 on"),
        answer_record(
            "a",
            "u",
            "",
            content=[{"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "make"}}],
        ),
        record("compaction", "c", "a", summary="s"),
        record("branch_summary", "b", "c", summary="the old way", fromId="a"),
    ]
    rows = (info(write_lines(tmp_path / "s.jsonl", header_line(), *lines), "Work"),)
    async with on_stage(tmp_path, prepare=listing(rows), size=(120, 30)) as stage:
        stage.app.host.show("resume")
        await stage.shows("── branch ── the old way")
        for text in ("── compacted ──", "$ make", "› go on"):
            assert text in stage.text


async def test_preview_shows_a_handoff_document_without_its_wrapper(tmp_path):
    content = "<handoff-context>\n## Goal\nA lexer\n</handoff-context>\n\nThis document was written earlier."
    document = record("custom_message", "h", None, customType="handoff", content=content, display=True)
    rows = (info(write_lines(tmp_path / "s.jsonl", header_line(), document), "Work"),)
    async with on_stage(tmp_path, prepare=listing(rows), size=(120, 30)) as stage:
        stage.app.host.show("resume")
        await stage.shows("## Goal A lexer")
        assert "handoff-context" not in stage.text


async def test_text_inside_is_searched_for_with_a_slash(tmp_path, stored):
    async with on_stage(tmp_path, prepare=listing(stored), size=(120, 30)) as stage:
        stage.app.host.show("resume")
        await stage.shows("Write the notes")
        await stage.type("/PEEK")
        await stage.until(lambda: [item.label for item in stage.app.screen.items] == ["Why does it hang?"])
        await stage.shows("found: It reads peek() twice.")
        await stage.until(lambda: "searched" not in stage.text)
        await stage.press("ctrl+u")
        await stage.type("/look-ahead")
        await stage.until(lambda: [item.label for item in stage.app.screen.items] == ["Go on"])
        await stage.press("ctrl+u")
        await stage.type("/nowhere")
        await stage.shows("no session fits")
        await stage.press("ctrl+u")
        await stage.until(lambda: len(stage.app.screen.items) == 3)


async def test_search_inside_goes_on_in_sessions_that_are_listed_later(tmp_path, stored):
    def slow(runtime):
        async def read(*, everywhere, progress):
            progress(Batch(stored[:1], done=1, total=3))
            await runtime.go_on.wait()
            progress(Batch(stored[1:], done=3, total=3))
            return stored

        runtime.go_on = asyncio.Event()
        runtime.list_sessions = read

    async with on_stage(tmp_path, prepare=slow) as stage:
        stage.app.host.show("resume")
        await stage.shows("Why does it hang?")
        await stage.type("/docs")
        await stage.shows("reading the sessions…")
        stage.runtime.go_on.set()
        await stage.until(lambda: [item.label for item in stage.app.screen.items] == ["Write the notes"])


async def test_expression_is_searched_for_and_a_broken_one_is_told(tmp_path, stored):
    async with on_stage(tmp_path, prepare=listing(stored)) as stage:
        stage.app.host.show("resume")
        await stage.shows("Write the notes")
        await stage.type("re:^(go|write)")
        await stage.until(
            lambda: [item.label for item in stage.app.screen.items] == ["Write the notes", "Go on"]
        )
        await stage.type("(")
        await stage.shows("no regular expression: missing )")
        await stage.press("backspace", "enter")
        assert stage.sent == [OpenSession(str(stored[1].path))]


async def test_best_hit_comes_first_unless_the_order_is_another(tmp_path):
    rows = (info("/s/1.jsonl", "All the dates"), info("/s/2.jsonl", "Dates"))

    def labels() -> list[str]:
        return [item.label for item in stage.app.screen.items]

    async with on_stage(tmp_path, prepare=listing(rows)) as stage:
        stage.app.host.show("resume")
        await stage.shows("All the dates")
        await stage.type("dates")
        await stage.until(lambda: labels() == ["Dates", "All the dates"])
        await stage.press("ctrl+s")
        await stage.shows("Sessions · newest first")
        assert labels() == ["All the dates", "Dates"]


@pytest.mark.parametrize("size", [(80, 24), (40, 16), (120, 30), (200, 50)])
async def test_rows_are_never_wider_than_the_screen(tmp_path, stored, size):
    rows = [
        replace(row, model="openai/gpt", branches=12, compactions=3, tool="codex", is_own=False)
        for row in stored
    ]
    async with on_stage(tmp_path, prepare=listing(rows), size=size) as stage:
        stage.app.host.show("resume", "--all")
        await stage.shows("Write the")
        assert re.search(r"Write the.* (\d+h|…) *(│|$)", stage.text, re.MULTILINE)
        assert all(len(line) <= size[0] for line in stage.text.splitlines())
