"""Session views and models over entries in memory, and what a transcript looks like as text."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from musepi_tui.base.errors import EntryNotFoundError
from musepi_tui.runtime.events import Meter, Phase, SessionView
from musepi_tui.session.entries import Entry, EntryHead, SessionHeader
from musepi_tui.session.tree import SessionTree
from musepi_tui.tui.themes import Palette, load_palette
from musepi_tui.tui.transcript.blocks import Item
from musepi_tui.tui.transcript.brush import Brush
from musepi_tui.tui.transcript.lines import Row
from musepi_tui.tui.transcript.model import TranscriptModel
from musepi_tui.tui.transcript.render import render_item
from musepi_tui.tui.transcript.slots import head_of

UTF8 = {"LANG": "C.UTF-8", "COLORTERM": "truecolor"}


@cache
def palette(name: str = "dark", *, symbols: str | None = None) -> Palette:
    """A built-in theme for a terminal that can do everything."""
    return load_palette(name, UTF8, symbols=symbols)


def reader(entries: Sequence[Entry]) -> Callable[[str], Entry]:
    """What gives a model its entries; ``EntryNotFoundError`` for others."""
    by_id = {entry.id: entry for entry in entries}

    def read(entry_id: str) -> Entry:
        if entry_id not in by_id:
            raise EntryNotFoundError(f"no entry {entry_id}")
        return by_id[entry_id]

    return read


def session_view(
    entries: Sequence[Entry], *, phase: Phase = Phase.IDLE, tail: int = 0, heads: Sequence[EntryHead] = ()
) -> SessionView:
    """The view of a session with one branch. ``tail``: so many of the newest entries come with it."""
    shown = tuple(entries[len(entries) - tail :]) if tail else ()
    known = heads or [head_of(entry) for entry in (shown if phase is Phase.LOADING else entries)]
    return SessionView(
        header=SessionHeader("session", "2026-01-01T00:00:00.000Z", "/project"),
        file=Path("/sessions/session.jsonl"),
        tree=SessionTree.from_heads(known) if known else SessionTree.empty(),
        phase=phase,
        meter=Meter(),
        model=None,
        thinking_level="off",
        mode="ask",
        tail=shown,
        tail_is_whole=len(shown) == len(entries),
    )


def model_of(entries: Sequence[Entry]) -> TranscriptModel:
    """A model that shows these entries as a resumed session."""
    model = TranscriptModel(reader(entries))
    model.reset(session_view(entries))
    return model


def drawn(item: Item, width: int = 80, *, theme: Palette | None = None, expanded: bool = False) -> list[Row]:
    """The rows of an item."""
    return render_item(item, Brush(theme or palette(), width, expanded=expanded))


def picture(rows: Sequence[Row]) -> str:
    """Rows as text, without blanks at line ends and the blank row at the end."""
    return "\n".join(row.strip.text.rstrip() for row in rows).rstrip("\n")
