"""What fills the context, where compaction starts, and what the last one did (tui 4.6)."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

from musepi_tui.base.cells import cell_width, cut_cells
from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.safe_text import display_safe
from musepi_tui.base.text import duration, group_digits, short_number
from musepi_tui.context.blockmap import BLOCKS, map_blocks
from musepi_tui.runtime.events import IntentSettled, SessionView
from musepi_tui.runtime.intents import MeasureContext
from musepi_tui.session.entries import CompactionEntry
from musepi_tui.session.times import unix_ms
from musepi_tui.settings.schema import CompactionSettings
from musepi_tui.tui.screens.context_map import (
    BEYOND,
    FREE,
    GAP_CELLS,
    MAP_CELLS,
    SIDE,
    BlockMap,
    ContextPanel,
    Layout,
    PartItem,
    place_map,
)
from musepi_tui.tui.screens.panel import Item, PanelText
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.facts import compaction_divider

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell

HINT = "up, down scroll · esc close"
MAX_BAR_CELLS = 60
PART_BAR_CELLS = 20
LEAST_BAR_CELLS = 8
"""Shorter bars tell nothing: beside the map there are none then."""

MARGIN_CELLS = 6
TABLE_CELLS = 14
"""Cells of a row of the table besides name, figure and bar: blanks and the share."""

BAR_GAP_CELLS = 2
MAP_TOP = 2
"""The map begins beside the blank row: all of it is seen on a screen of 24 rows."""

NAME_CELLS = 28
"""Longest name of a tool or file; a longer one would push the figures off a narrow screen."""

LISTED_SCHEMA_TOKENS = 500
"""Tools whose schema takes less are not listed (tui 4.6)."""

_Row: TypeAlias = tuple[str, str]
_Sizes: TypeAlias = tuple[tuple[str, int], ...]

_WAYS = {
    "superseded": ("superseded reads", "after the next turn"),
    "useless": ("useless results", "after the next turn"),
    "threshold": ("old results", "before a pass"),
    "shake": ("/shake", "results and large blocks, into an artifact"),
    "images": ("/shake images", "all pictures"),
}
"""What the ways of shortening are called, and what they take when."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of shortening: what it frees now, and after a rest of 90 minutes."""

    name: str
    tokens: int
    rested: int


@dataclass(frozen=True, slots=True)
class CacheUse:
    """How much of the newest prompt came from the provider's cache; None without a bill for this context."""

    read: int | None = None
    prompt: int | None = None
    cold: bool = False


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of contract 3.2 in tokens; window and what depends on it None where it is unknown.

    ``beyond`` is what the provider billed besides the parts, below 0 where it billed less.
    """

    tokens: int
    window: int | None
    threshold: int | None
    reserve: int | None
    parts: _Sizes
    beyond: int = 0
    results: _Sizes = ()
    schemas: _Sizes = ()
    files: _Sizes = ()
    ways: tuple[Way, ...] = ()
    cache: CacheUse = CacheUse()

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Figures":
        """What ``MeasureContext`` settled with."""
        cache: Mapping[str, Any] = data.get("cache") or {}
        return cls(
            int(data.get("tokens") or 0),
            data.get("window"),
            data.get("threshold"),
            data.get("budgetReserve"),
            _sizes(data, "parts"),
            int(data.get("beyondParts") or 0),
            _sizes(data, "toolResults"),
            _sizes(data, "toolSchemas"),
            tuple((_short_path(name), tokens) for name, tokens in _sizes(data, "contextFiles")),
            tuple(
                Way(row["name"], row["tokens"], row["rested"])
                for row in data.get("reclaimable", ())
                if row["name"] in _WAYS
            ),
            CacheUse(cache.get("read"), cache.get("prompt"), bool(cache.get("cold"))),
        )

    def within(self, part: str) -> _Sizes:
        """What a part consists of itself, where that is told apart."""
        match part:
            case "system prompt":
                return self.files
            case "tools":
                return tuple(schema for schema in self.schemas if schema[1] >= LISTED_SCHEMA_TOKENS)
            case "tool results":
                return self.results
            case _:
                return ()


def _sizes(data: Mapping[str, Any], name: str) -> _Sizes:
    return tuple((str(part["name"]), int(part["tokens"])) for part in data.get(name, ()))


def _short_path(path: str) -> str:
    """The file and its folder: most instruction files have the same name."""
    return str(PurePath(*PurePath(path).parts[-2:]))


def open_context(app: "Shell", argument: str) -> None:
    """Counts, then shows the figures."""

    def counted(event: IntentSettled) -> None:
        figures, palette = Figures.read(event.data or {}), app.looks.palette
        compaction = app.runtime.options.settings.values.compaction
        below = [
            *reclaimable_items(figures),
            *compaction_items(figures, compaction, app.runtime.view(), last_compaction(app)),
        ]

        def lay_out(width_cells: int) -> Layout:
            above = figure_items(figures, palette, width_cells)
            return Layout([*above, *below], block_map(figures, width_cells))

        app.push_screen(ContextPanel(palette, PanelText("Context", hint=HINT), lay_out))

    app.send(MeasureContext(), counted)


def last_compaction(app: "Shell") -> CompactionEntry | None:
    """The newest compaction of the path."""
    heads = reversed(tuple(app.runtime.view().tree.path()))
    head = next((head for head in heads if head.type == "compaction"), None)
    entry = None if head is None else app.runtime.read_entry(head.id)
    return entry if isinstance(entry, CompactionEntry) else None


def figure_items(figures: Figures, palette: Palette, width_cells: int) -> list[Item]:
    """How full the window is, as a bar and by parts; what is left of it."""
    window = figures.window
    used = f"{group_digits(figures.tokens)} tokens"
    if not window:
        items = [Item(None, f"  {used}", "the context window of this model is unknown")]
    else:
        bar = _bar(figures, palette, max(10, min(MAX_BAR_CELLS, width_cells - MARGIN_CELLS)))
        share = f"of {group_digits(window)} · {100 * figures.tokens / window:.0f}%"
        items = [Item(None, f"  {bar}"), Item(None, f"  {used}", share)]
    items += [Item(None, ""), Item(None, "What it consists of (estimated)")]
    items += _part_items(figures, palette, width_cells)
    if block_map(figures, width_cells) is not None:
        items += [Item(None, "")] * (
            MAP_TOP + SIDE - len(items)
        )  # nothing but the table stands beside the map
    return items


def reclaimable_items(figures: Figures) -> list[Item]:
    """What shortening would free without a summary, and whether a cache is spared; nothing where untold."""
    if not figures.ways:
        return []
    rows = [
        (label, group_digits(way.tokens), _way_text(way, text))
        for way in figures.ways
        for label, text in (_WAYS[way.name],)
        if way.rested or way.name == "shake"
    ]
    label_cells = max(len(label) for label, _, _ in rows)
    figure_cells = max(len(figure) for _, figure, _ in rows)
    return [
        Item(None, ""),
        Item(None, "Reclaimable now without a summary (estimated, each by itself)"),
        *(
            Item(None, f"  {label:<{label_cells}}  {figure:>{figure_cells}}", text)
            for label, figure, text in rows
        ),
        Item(None, f"  {'cache':<{label_cells}}", _cache_text(figures.cache)),
    ]


def _way_text(way: Way, text: str) -> str:
    if way.rested <= way.tokens:
        return text
    return f"{text}; {group_digits(way.rested)} after a rest of 90 minutes"


def _cache_text(cache: CacheUse) -> str:
    if cache.cold:
        return "cold: nothing was said for 90 minutes"
    if cache.read is None or not cache.prompt:
        return "not known before the next answer"
    return f"{group_digits(cache.read)} of the last {group_digits(cache.prompt)} tokens sent came from it"


def compaction_items(
    figures: Figures, settings: CompactionSettings, view: SessionView, last: CompactionEntry | None
) -> list[Item]:
    """Where compaction starts, whether by itself, and what the last one did."""
    is_on = view.meter.auto_compaction
    rows: list[_Row] = []
    if figures.threshold is not None:
        rows.append(
            (
                "starts at",
                f"{group_digits(figures.threshold)} tokens (compaction.threshold {settings.threshold})",
            )
        )
    if figures.reserve is not None:
        rows.append(("reserve", f"{group_digits(figures.reserve)} tokens stay free for a request"))
    rows.append(("by itself", f"on, strategy {settings.strategy}" if is_on else "off"))
    if is_on and settings.idle_enabled:
        after = duration(min(3600, max(60, settings.idle_timeout_seconds)))
        size = group_digits(settings.idle_threshold_tokens)
        rows.append(("when idle", f"after {after}, from {size} tokens on"))
    rows += _last(last)
    label_cells = max(len(label) for label, _ in rows)
    return [
        Item(None, ""),
        Item(None, "Compaction"),
        *(Item(None, f"  {label:<{label_cells}}", display_safe(text)) for label, text in rows),
    ]


def _last(entry: CompactionEntry | None) -> list[_Row]:
    if entry is None:
        return [("last one", "none in this conversation")]
    block = compaction_divider(entry)
    rows: list[_Row] = [("last one", block.heading or "its tokens are not stored")]
    if block.facts:
        rows.append(("", " · ".join(block.facts)))
    made_ms = unix_ms(entry.timestamp)
    if made_ms is not None:
        rows.append(("", f"{datetime.fromtimestamp(made_ms / 1000).astimezone():%Y-%m-%d %H:%M}"))
    return rows


def _bar(figures: Figures, palette: Palette, cells: int) -> str:
    """The window in cells: full, free, and the mark of the threshold."""
    window = figures.window or 1
    full = min(cells, round(cells * figures.tokens / window))
    bar = [palette.symbol("gauge_full")] * full + [palette.symbol("gauge_rest")] * (cells - full)
    if figures.threshold is not None:
        bar[min(cells - 1, cells * figures.threshold // window)] = palette.symbol("gauge_mark")
    return "".join(bar)


@dataclass(frozen=True, slots=True)
class _Line:
    """A row of the table. One that is ``inside`` is contained in the row above it and has no bar."""

    label: str
    tokens: int
    inside: bool = False

    @property
    def part(self) -> str:
        """The part of the map the row stands for; empty when it has no blocks there."""
        return "" if self.inside or self.tokens <= 0 else self.label


def _lines(figures: Figures) -> Iterator[_Line]:
    """The rows of the table. Those that are not inside another add up to the window, or to the tokens where
    it is unknown or too small."""
    for name, tokens in figures.parts:
        yield _Line(name, tokens)
        for inner, inner_tokens in figures.within(name):
            yield _Line(f"  {cut_cells(display_safe(inner), NAME_CELLS)}", inner_tokens, inside=True)
    if figures.beyond:
        yield _Line(BEYOND if figures.beyond > 0 else "counted, not billed", figures.beyond)
    if figures.window:
        yield _Line(FREE, max(0, figures.window - figures.tokens))


@dataclass(frozen=True, slots=True)
class _Columns:
    """The widths of the table in cells: name, figure, and its bars. ``map`` is where the map begins."""

    label: int
    figure: int
    bar: int
    map: int | None


def _columns(figures: Figures, lines: Sequence[_Line], width_cells: int) -> _Columns:
    label = max(cell_width(line.label) for line in lines)
    figure = max(len(group_digits(line.tokens)) for line in lines)
    table = TABLE_CELLS + label + figure
    room = width_cells - table - BAR_GAP_CELLS - 1
    if not figures.window:
        return _Columns(label, figure, min(PART_BAR_CELLS, max(0, room)), None)
    beside = min(PART_BAR_CELLS, room - MAP_CELLS - GAP_CELLS // 2)
    bar = beside if beside >= LEAST_BAR_CELLS else 0
    column = place_map(table, bar and bar + BAR_GAP_CELLS, width_cells)
    if column is None:
        return _Columns(label, figure, min(PART_BAR_CELLS, max(0, room)), None)
    return _Columns(label, figure, bar, column)


def block_map(figures: Figures, width_cells: int) -> BlockMap | None:
    """The map beside the table; None where the window is unknown or the screen too narrow."""
    lines = tuple(_lines(figures))
    column = _columns(figures, lines, width_cells).map if lines else None
    if column is None or not figures.window:
        return None
    blocks = map_blocks([(line.part, line.tokens) for line in lines if line.part])
    each = short_number(max(figures.window, figures.tokens) // BLOCKS)
    return BlockMap(blocks, column, MAP_TOP, f"each ~{each} tokens")


def _part_items(figures: Figures, palette: Palette, width_cells: int) -> list[Item]:
    lines = tuple(_lines(figures))
    if not lines:
        return [Item(None, "  nothing yet")]
    whole = figures.window or max(1, figures.tokens)
    columns = _columns(figures, lines, width_cells)
    items: list[Item] = []
    for line in lines:
        share = f"{100 * line.tokens / whole:.1f}%"
        bar_cells = 0 if line.inside else round(columns.bar * line.tokens / whole)
        bar = palette.symbol("gauge_full") * min(columns.bar, bar_cells)
        gap = " " * (columns.label - cell_width(line.label))
        label = f"  {line.label}{gap}  {group_digits(line.tokens):>{columns.figure}}"
        items.append(PartItem(None, label, f"{share:>6}  {bar}".rstrip(), part=line.part))
    return items
