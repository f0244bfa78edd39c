"""The view in a running app: what is on the screen, what is drawn, what moves and what does not."""

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache

import pytest
from rich.style import Style
from textual import events
from textual.app import App, ComposeResult
from textual.errors import NoWidget
from textual.geometry import Offset, Size
from textual.pilot import Pilot
from textual.screen import Screen
from textual.selection import Selection
from textual.widget import Widget
from textual.widgets import Static

from musepi_tui.providers.types import BlockDelta
from musepi_tui.runtime.events import (
    AssistantDelta,
    AssistantEnded,
    AssistantStarted,
    EntryAppended,
    ToolStarted,
)
from musepi_tui.session.entries import Entry
from musepi_tui.tools.types import ToolView
from musepi_tui.tui.transcript.model import TranscriptModel
from musepi_tui.tui.transcript.view import TranscriptView
from tests.support.builders import a, call, compaction, entry, path, t, u
from tests.support.transcripts import palette, reader, session_view


class PlainScreen(Screen[None]):
    DEFAULT_CSS = "PlainScreen { overflow: hidden; }"

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        try:
            widget, region = self.get_widget_at(x, y)
        except NoWidget:
            return None, None
        if isinstance(widget, TranscriptView):
            return widget, widget.offset_at(x - region.x, y - region.y)
        return super().get_widget_and_offset_at(x, y)


class TranscriptApp(App[None]):
    def __init__(self, model: TranscriptModel) -> None:
        super().__init__()
        self.view = TranscriptView(model, palette(), animated=False)
        self.followed: list[bool] = []

    def get_default_screen(self) -> Screen[None]:
        return PlainScreen()

    def compose(self) -> ComposeResult:
        yield self.view
        yield Static("editor")

    def on_transcript_view_follow_changed(self, event: TranscriptView.FollowChanged) -> None:
        self.followed.append(event.following)


class Shown:
    """A running app and short ways to look at it."""

    def __init__(self, app: TranscriptApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.view = app.view
        self.model = app.view.model

    def rows(self) -> list[str]:
        """What the widget's rows show, as the compositor has them."""
        strips = self.app.screen._compositor.render_strips()
        return [strip.text.rstrip() for strip in strips[: self.view.size.height]]

    async def tell(self, *events_: object) -> None:
        for event in events_:
            self.model.apply(event)  # pyright: ignore[reportArgumentType]
        self.view.model_changed()
        await self.pilot.pause()

    async def do(self, name: str, *args: object) -> None:
        getattr(self.view, name)(*args)
        await self.pilot.pause()


@asynccontextmanager
async def shown(entries: Sequence[Entry], size: tuple[int, int] = (60, 21)) -> AsyncIterator[Shown]:
    model = TranscriptModel(reader(entries))
    model.reset(session_view(entries))
    app = TranscriptApp(model)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield Shown(app, pilot)


@cache
def talk(turns: int) -> tuple[Entry, ...]:
    parts = (part for turn in range(turns) for part in (u(f"question {turn}"), a(f"answer {turn}")))
    return path(*parts)


async def test_short_transcript_stands_at_the_top():
    async with shown(talk(1)) as screen:
        assert screen.rows()[:4] == ["› question 0", "", "  answer 0", ""]
        assert screen.view.following


async def test_end_is_shown_first_and_little_is_drawn():
    async with shown(talk(10_000)) as screen:
        assert screen.rows()[-2:] == ["  answer 9999", ""]
        assert screen.view.rendered_items < 30


async def test_home_and_paging_do_not_draw_the_middle():
    async with shown(talk(10_000)) as screen:
        await screen.do("to_top")
        assert screen.rows()[0].startswith("› question 0")
        await screen.do("page", 1)
        await screen.do("page", -1)
        assert screen.rows()[0].startswith("› question 0")
        await screen.do("to_end")
        assert screen.rows()[-2] == "  answer 9999"
        assert screen.view.rendered_items < 100


async def test_paging_back_moves_by_exact_rows_through_undrawn_items():
    entries = path(
        *(a("\n\n".join(f"{number}.{line}" for line in range(number % 7 + 1))) for number in range(200))
    )
    async with shown(entries) as screen:
        pages = [screen.rows()]
        for _ in range(15):
            await screen.do("page", -1)
            pages.append(screen.rows())
        for newer, older in zip(pages, pages[1:], strict=False):
            text = [row[:-1].rstrip() for row in (line.ljust(60) for line in older)]
            assert text[-2:] == [row.ljust(60)[:-1].rstrip() for row in newer[:2]]


async def test_what_is_read_does_not_move_while_an_answer_streams():
    async with shown(talk(500)) as screen:
        await screen.do("scroll_rows", -200)
        before = [row.ljust(60)[:50] for row in screen.rows()]
        await screen.tell(AssistantStarted("live", "m", "p"))
        for number in range(25):
            lines = "".join(f"\n\nline {number}.{line}" for line in range(200))
            await screen.tell(AssistantDelta("live", BlockDelta("text", 0, lines)))
        after = [row.ljust(60)[:50] for row in screen.rows()]
        assert after[:-1] == before[:-1]
        assert "↓ 1 new" in screen.rows()[-1]
        await screen.do("to_end")
        assert screen.rows()[-2] == "  line 24.199"
        assert screen.app.followed == [False, True]


async def test_end_is_followed_while_an_answer_streams_and_when_it_is_stored():
    async with shown(talk(20)) as screen:
        await screen.tell(AssistantStarted("live", "m", "p"))
        text = ""
        for number in range(60):
            text += f"line {number}\n\n"
            await screen.tell(AssistantDelta("live", BlockDelta("text", 0, f"line {number}\n\n")))
            assert screen.rows()[-2] == f"  line {number}"
        await screen.tell(
            EntryAppended(entry(a(text), "final", "e40"), live_id="live"), AssistantEnded("live", "final")
        )
        assert screen.rows()[-2] == "  line 59"


async def test_long_answer_is_drawn_anew_in_slices_once_it_is_stored():
    words = "Some words here, see [later].\n\n"
    link = "[later]: https://a.example\n"
    async with shown(talk(2)) as screen:
        await screen.tell(AssistantStarted("live", "m", "p"))
        for text in (words * 200, words * 200, link):
            await screen.tell(AssistantDelta("live", BlockDelta("text", 0, text)))
        assert "see [later]." in screen.rows()[-4]
        await screen.tell(EntryAppended(entry(a(words * 400 + link), "final", "e4"), live_id="live"))
        for _ in range(100):
            if "https" in screen.rows()[-4]:
                break
            await screen.pilot.pause(0.02)
        assert screen.rows()[-4] == "  Some words here, see later (https://a.example)."


async def test_items_around_a_long_stream_are_not_drawn_again():
    async with shown(talk(20)) as screen:
        await screen.tell(AssistantStarted("live", "m", "p"))
        for _ in range(600):
            screen.model.apply(AssistantDelta("live", BlockDelta("text", 0, "word ")))
            screen.view.model_changed()
        drawn = screen.view.rendered_items
        await screen.do("scroll_rows", -5)
        await screen.do("to_end")
        assert screen.view.rendered_items == drawn


async def test_nothing_is_painted_for_text_out_of_sight(monkeypatch):
    async with shown(talk(200)) as screen:
        await screen.tell(
            AssistantStarted("live", "m", "p"), AssistantDelta("live", BlockDelta("text", 0, "a"))
        )
        await screen.do("scroll_rows", -100)
        await screen.tell(AssistantDelta("live", BlockDelta("text", 0, "b\n\nc")))
        painted: list[int] = []
        original = TranscriptView.render_line
        monkeypatch.setattr(
            TranscriptView, "render_line", lambda view, y: (painted.append(y), original(view, y))[1]
        )
        await screen.tell(AssistantDelta("live", BlockDelta("text", 0, "\n\nd")))
        assert painted == []


async def test_only_rows_that_differ_are_painted(monkeypatch):
    async with shown(talk(20)) as screen:
        await screen.tell(
            AssistantStarted("live", "m", "p"), AssistantDelta("live", BlockDelta("text", 0, "one"))
        )
        painted: list[int] = []
        original = TranscriptView.render_line
        monkeypatch.setattr(
            TranscriptView, "render_line", lambda view, y: (painted.append(y), original(view, y))[1]
        )
        await screen.tell(AssistantDelta("live", BlockDelta("text", 0, " two")))
        assert painted == [18]
        assert screen.rows()[18] == "  one two"


async def test_text_that_arrives_causes_no_layout(monkeypatch):
    async with shown(talk(50)) as screen:
        layouts: list[object] = []
        original = Screen._refresh_layout
        monkeypatch.setattr(
            Screen, "_refresh_layout", lambda *args, **named: (layouts.append(1), original(*args, **named))[1]
        )
        await screen.tell(AssistantStarted("live", "m", "p"))
        for number in range(30):
            await screen.tell(AssistantDelta("live", BlockDelta("text", 0, f"line {number}\n\n")))
        assert layouts == []
        assert screen.view.virtual_size.height > 100


async def test_storm_of_sizes_leaves_the_right_picture():
    async with shown(talk(300), (80, 24)) as screen:
        chance = random.Random(7)
        await screen.do("scroll_rows", -150)
        top = screen.rows()[0]
        for _ in range(40):
            size = Size(chance.randint(1, 150), chance.randint(1, 50))
            screen.app.post_message(events.Resize(size, size))
            screen.app._size = size
            screen.app.screen._refresh_layout(size)
            screen.app.screen._compositor.render_strips()
        await screen.pilot.resize_terminal(80, 24)
        await screen.pilot.pause()
        assert screen.rows()[0].split()[:2] == top.split()[:2]
        await screen.do("to_end")
        assert screen.rows()[-2] == "  answer 299"


async def test_end_is_followed_whatever_size_the_view_takes():
    async with shown(talk(300), (80, 24)) as screen:
        for size in ((80, 10), (80, 40), (30, 12), (120, 50), (80, 24)):
            await screen.pilot.resize_terminal(*size)
            await screen.pilot.pause()
            await screen.tell(EntryAppended(entry(u(f"size {size}"), f"s{size}", "e600")))
            assert screen.view.following
            assert screen.rows()[-2] == f"› size {size}"


async def test_dragging_a_selection_over_the_edge_moves_the_view():
    async with shown(talk(100)) as screen:
        top = screen.view._viewport.top_row
        await screen.pilot.mouse_down(TranscriptView, offset=(3, 5))
        select(screen, (3, 5), (5, 2))
        screen.view.scroll_y -= 4
        await screen.pilot.pause()
        assert screen.view._viewport.top_row == top - 4


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (5, 2), (300, 80)])
async def test_any_size_is_drawn(size):
    async with shown(path(u("hi"), a("# x\n\n- y"), compaction("s")), size) as screen:
        assert len(screen.rows()) == screen.view.size.height
        for action in ("to_top", "to_end", "toggle_expanded", "toggle_thinking"):
            await screen.do(action)
        await screen.do("scroll_rows", -3)


async def test_every_row_is_full_width_and_every_segment_has_a_style():
    async with shown(path(u("hi"), a("# x\n\n- y"), compaction("s"))) as screen:
        for y in range(screen.view.size.height + 3):
            strip = screen.view.render_line(y)
            assert strip.cell_length == 60
            assert all(isinstance(segment.style, Style) for segment in strip)


async def test_toggle_keeps_the_item_at_the_top_of_the_screen():
    parts = [
        part
        for n in range(60)
        for part in (u(f"go {n}"), a("", [call("ls", "c")]), t("\n".join("abcdefghijkl"), "c"))
    ]
    async with shown(path(*parts)) as screen:
        await screen.do("scroll_rows", -300)
        slot = screen.view._viewport.rows[0].slot
        await screen.do("toggle_expanded")
        assert screen.view._viewport.rows[0].slot == slot
        await screen.do("toggle_expanded")
        assert screen.view._viewport.rows[0].slot == slot


async def test_toggle_opens_dividers_and_closes_them_again():
    async with shown(path(u("hi"), compaction("## The summary", tokens_before=1000))) as screen:
        closed = screen.rows()
        await screen.do("toggle_expanded")
        assert "  The summary" in screen.rows()
        assert "  1,000 tokens before" in screen.rows()
        await screen.do("toggle_expanded")
        assert screen.rows() == closed


async def test_click_on_a_title_opens_that_item_only():
    parts = (u("go"), a("", [call("ls", "c1"), call("ls", "c2")]), t("one\ntwo", "c1"), t("three", "c2"))
    entries = path(*parts)
    async with shown(entries) as screen:
        rows = screen.rows()
        assert screen.model.items[1].id == "e2/0"
        await screen.pilot.click(TranscriptView, offset=(3, rows.index("✓ ls")))
        assert screen.model.is_expanded(screen.model.items[1])
        assert not screen.model.is_expanded(screen.model.items[2])


async def test_wheel_moves_without_following():
    async with shown(talk(50)) as screen:
        before = screen.rows()
        screen.view.post_message(
            events.MouseScrollUp(screen.view, 1, 1, 0, -1, 0, False, False, False, 1, 1, None)
        )
        await screen.pilot.pause()
        assert [row.ljust(60)[:50] for row in screen.rows()[3:]] == [
            row.ljust(60)[:50] for row in before[:-3]
        ]
        assert not screen.view.following


def select(screen: Shown, start: tuple[int, int], end: tuple[int, int]) -> str | None:
    first, last = (screen.view.offset_at(*place) for place in (start, end))
    screen.app.screen.selections = {screen.view: Selection.from_offsets(first, last)}
    return screen.app.screen.get_selected_text()


async def test_selected_text_has_no_gutter_and_joins_wrapped_rows():
    words = "many words that are longer than one row of this narrow screen are wrapped"
    async with shown(
        path(u("hi"), a(f"{words}\n\n- item\n\n```\ncode  \n    more\n```")), (40, 21)
    ) as screen:
        assert select(screen, (0, 0), (39, 20)) == f"hi\n\n{words}\n\n• item\n\ncode\n    more"
        assert select(screen, (2, 2), (6, 2)) == "many"
        assert not select(screen, (0, 0), (1, 0))


async def test_selected_table_has_no_borders():
    async with shown(path(a("| a | b |\n|---|---|\n| 1 | 2 |"))) as screen:
        assert select(screen, (0, 0), (59, 10)) == "a │ b\n1 │ 2"


async def test_selection_survives_scrolling_and_is_drawn():
    async with shown(talk(100)) as screen:
        y = screen.rows().index("  answer 99")
        text = select(screen, (2, y), (9, y))
        drawn = [seg for seg in screen.view.render_line(y) if seg.style and seg.style.bgcolor]
        assert text == "answer"
        assert "".join(seg.text for seg in drawn).strip() == text
        await screen.do("page", -1)
        await screen.do("page", -1)
        assert screen.app.screen.get_selected_text() == text


async def test_selection_of_wide_characters_maps_cells():
    async with shown(path(a("日本語 text"))) as screen:
        assert select(screen, (4, 0), (8, 0)) == "本語"


async def test_double_click_selects_a_word_and_not_everything():
    async with shown(path(a("see src/app.py now"))) as screen:
        await screen.pilot.click(TranscriptView, offset=(9, 0), times=2)
        await screen.pilot.pause()
        assert screen.app.screen.get_selected_text() == "src/app.py"


async def test_running_call_turns_and_stops_when_it_is_over(monkeypatch):
    async with shown(path(u("go"), a("", [call("bash", "c", command="make")]))) as screen:
        await screen.tell(ToolStarted("c", "bash", {}, ToolView("tail", "$ make")))
        assert screen.rows()[2].endswith("$ make")
        assert screen.view._ticker is not None
        assert screen.view._ticker._active.is_set()
        await screen.tell(EntryAppended(entry(t("done", "c", "bash"), "e3", "e2")))
        await screen.pilot.pause(0.4)
        assert not screen.view._ticker._active.is_set()


async def test_new_theme_is_used_at_once():
    async with shown(path(u("hi"))) as screen:
        before = [segment.style for segment in screen.view.render_line(0)]
        await screen.do("set_palette", palette("light"))
        assert [segment.style for segment in screen.view.render_line(0)] != before


async def test_key_that_opens_items_is_the_real_one():
    async with shown(path(compaction("s"))) as screen:
        await screen.do("set_hint", "ctrl+e")
        assert "compacted · ctrl+e" in screen.rows()[0]
