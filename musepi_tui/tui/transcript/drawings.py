"""Items as rows, kept while they are near the screen."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace

from musepi_tui.base.safe_text import display_safe
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.blocks import AnswerBlock, Item, ThinkingBlock
from musepi_tui.tui.transcript.brush import Brush
from musepi_tui.tui.transcript.engines import engines_loaded
from musepi_tui.tui.transcript.lines import BLANK, Line, Row
from musepi_tui.tui.transcript.model import TranscriptModel
from musepi_tui.tui.transcript.render import (
    answer_markdown,
    render_item,
    thinking_heading,
    thinking_markdown,
)
from musepi_tui.tui.transcript.stream import StreamedText

_KEPT_DRAWINGS = 400
"""Items kept as rows: about 5 MB (transcript-view 3)."""

_SLICED_CHARS = 4_000
"""A finished answer up to this length is drawn anew at once (about 5 ms), a longer one in slices."""


class Drawings:
    """Rows of items for one width and theme."""

    def __init__(
        self, model: TranscriptModel, palette: Palette, now: Callable[[], float], *, animated: bool = True
    ) -> None:
        self.brush = Brush(palette, 80)
        self.rendered = 0
        """How many items were drawn so far; tests and benchmarks look at it."""
        self.runs = False
        """Whether a running item was drawn since this was last set to false."""
        self._model = model
        self._now = now
        self._animated = animated
        self._kept: OrderedDict[tuple[str, int, bool], list[Row]] = OrderedDict()
        self._streams: dict[str, StreamedText] = {}
        self._streamed: dict[str, tuple[int, list[Row]]] = {}
        self._final: _FinalDrawing | None = None
        self._running_since: dict[str, float] = {}
        self._had_engines = engines_loaded()

    def set_brush(self, palette: Palette, width: int, hint: str) -> None:
        """Draws with another theme or for another width: everything is drawn anew."""
        self.brush = replace(self.brush, palette=palette, width=max(1, width), hint=hint)
        self.clear()

    def clear(self) -> None:
        """Forgets all drawings."""
        self._kept.clear()
        self._streams.clear()
        self._streamed.clear()
        self._final = None

    def rows_of(self, item: Item) -> list[Row]:
        """The rows of an item."""
        if self._had_engines != engines_loaded():
            self._had_engines = engines_loaded()
            self.clear()
        expanded = self._model.is_expanded(item)
        if self._is_streamed(item, expanded=expanded):
            return self._stream(item)
        if item.is_running:
            return self._draw_running(item, expanded=expanded)
        key = (item.id, item.revision, expanded)
        rows = self._kept.get(key)
        if rows is not None:
            self._kept.move_to_end(key)
            return rows
        rows = self._provisional(item, key)
        if rows is None:
            rows = render_item(item, replace(self.brush, expanded=expanded))
            self.rendered += 1
            self._keep(key, rows)
        return rows

    @property
    def is_finishing(self) -> bool:
        """Whether the final drawing of a long answer is in the making."""
        return self._final is not None

    def finish(self, budget_s: float) -> str | None:
        """Goes on with a final drawing for about ``budget_s``; returns the item's id once it is done."""
        final = self._final
        if final is None or not final.advance(self._now() + budget_s, self._now):
            return None
        self._final = None
        self._forget_stream(final.live_name)
        self._keep(final.key, final.rows())
        self.rendered += 1
        return final.key[0]

    def _keep(self, key: tuple[str, int, bool], rows: list[Row]) -> None:
        self._kept[key] = rows
        if len(self._kept) > _KEPT_DRAWINGS:
            self._kept.popitem(last=False)

    def _is_streamed(self, item: Item, *, expanded: bool) -> bool:
        match item.block:
            case AnswerBlock(live=True):
                return True
            case ThinkingBlock(live=True):
                return expanded and bool(item.block.text.strip())
            case _:
                return False

    def _stream(self, item: Item) -> list[Row]:
        drawn = self._streamed.get(item.id)
        if drawn is not None and drawn[0] == item.revision:
            return drawn[1]
        stream = self._streams.get(item.id)
        if stream is None:
            if isinstance(item.block, ThinkingBlock):
                heading: Line | None = thinking_heading(self.brush)
                stream = StreamedText(thinking_markdown(self.brush), self.brush, heading)
            else:
                stream = StreamedText(answer_markdown(self.brush), self.brush)
            self._streams[item.id] = stream
        assert isinstance(item.block, AnswerBlock | ThinkingBlock)
        rows = stream.update(item.block.text)
        self.rendered += 1
        self._streamed[item.id] = (item.revision, rows)
        return rows

    def _provisional(self, item: Item, key: tuple[str, int, bool]) -> list[Row] | None:
        """For a finished answer: what its stream drew, until the final drawing is done."""
        if self._final is not None and self._final.key == key:
            return self._final.until_then
        name = self._model.live_name(item.id)
        stream = self._streams.get(name) if name is not None else None
        if stream is None or name is None or not isinstance(item.block, AnswerBlock):
            return None
        text = item.block.text
        if len(text) <= _SLICED_CHARS or self._final is not None:
            self._forget_stream(name)
            return None
        self._final = _FinalDrawing(key, name, stream.update(text), text, self.brush)
        return self._final.until_then

    def _forget_stream(self, name: str) -> None:
        self._streams.pop(name, None)
        self._streamed.pop(name, None)

    def _draw_running(self, item: Item, *, expanded: bool) -> list[Row]:
        self.runs = True
        since = self._running_since.setdefault(item.id, self._now())
        if len(self._running_since) > _KEPT_DRAWINGS:
            self._running_since.clear()
        elapsed_s = self._now() - since
        frame = int(elapsed_s * FRAMES_PER_S) if self._animated else 0
        brush = replace(self.brush, expanded=expanded, elapsed_s=elapsed_s, frame=frame)
        self.rendered += 1
        return render_item(item, brush)


FRAMES_PER_S = 8
"""Frames of a turning sign a second: enough to look alive, cheap to draw."""


class _FinalDrawing:
    """A long answer drawn as a whole, block by block."""

    def __init__(
        self, key: tuple[str, int, bool], live_name: str, until_then: list[Row], text: str, brush: Brush
    ) -> None:
        self.key = key
        self.live_name = live_name
        self.until_then = until_then
        self._text = text
        self._brush = brush
        self._blocks: Iterator[list[Line]] | None = None
        self._lines: list[Line] = []

    def advance(self, deadline: float, now: Callable[[], float]) -> bool:
        """Parses, then draws blocks until the deadline; true when all are drawn."""
        if self._blocks is None:
            markdown = answer_markdown(self._brush)
            self._blocks = markdown.blocks(display_safe(self._text), self._brush.text_width)
            return False
        for block in self._blocks:
            self._lines += [BLANK, *block] if self._lines else block
            if now() >= deadline:
                return False
        return True

    def rows(self) -> list[Row]:
        return self._brush.rows(self._brush.indented(self._lines))
