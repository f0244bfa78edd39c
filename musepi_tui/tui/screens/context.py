"""What fills the context, where compaction starts, and what the last one did (tui 4.6)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.safe_text import display_safe
from musepi_tui.base.text import duration, group_digits
from musepi_tui.runtime.events import IntentSettled, SessionView
from musepi_tui.runtime.intents import MeasureContext
from musepi_tui.session.entries import CompactionEntry
from musepi_tui.settings.schema import CompactionSettings
from musepi_tui.tui.screens.panel import Item, Panel, PanelText
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.facts import compaction_divider

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell

HINT = "up, down scroll · esc close"
MAX_BAR_CELLS = 60
PART_BAR_CELLS = 20
MARGIN_CELLS = 6

_Row: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of contract 3.2 in tokens; window and what depends on it None where it is unknown."""

    tokens: int
    window: int | None
    threshold: int | None
    reserve: int | None
    parts: tuple[tuple[str, int], ...]

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Figures":
        """What ``MeasureContext`` settled with."""
        parts = tuple((str(part["name"]), int(part["tokens"])) for part in data.get("parts", ()))
        return cls(
            int(data.get("tokens") or 0),
            data.get("window"),
            data.get("threshold"),
            data.get("budgetReserve"),
            parts,
        )


def open_context(app: "Shell", argument: str) -> None:
    """Counts, then shows the figures."""

    def counted(event: IntentSettled) -> None:
        figures = Figures.read(event.data or {})
        compaction = app.runtime.options.settings.values.compaction
        rows = [
            *figure_items(figures, app.looks.palette, app.size.width),
            *compaction_items(figures, compaction, app.runtime.view(), last_compaction(app)),
        ]
        text = PanelText("Context", hint=HINT)
        app.push_screen(Panel(app.looks.palette, text, lambda _: rows, searchable=False))

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
    rows = list(figures.parts)
    if window:
        rows += [("free", max(0, window - figures.tokens))]
    return [*items, *_part_items(rows, figures, palette)]


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
    return rows


def _bar(figures: Figures, palette: Palette, cells: int) -> str:
    """The window in cells: full, free, and the mark of the threshold."""
    window = figures.window or 1
    full = min(cells, round(cells * figures.tokens / window))
    bar = [palette.symbol("gauge_full")] * full + [palette.symbol("gauge_rest")] * (cells - full)
    if figures.threshold is not None:
        bar[min(cells - 1, cells * figures.threshold // window)] = palette.symbol("gauge_mark")
    return "".join(bar)


def _part_items(rows: Sequence[tuple[str, int]], figures: Figures, palette: Palette) -> list[Item]:
    if not rows:
        return [Item(None, "  nothing yet")]
    whole = figures.window or max(1, sum(tokens for _, tokens in figures.parts))
    label_cells = max(len(name) for name, _ in rows)
    figure_cells = max(len(group_digits(tokens)) for _, tokens in rows)
    items: list[Item] = []
    for name, tokens in rows:
        share = f"{100 * tokens / whole:.1f}%"
        bar = palette.symbol("gauge_full") * round(PART_BAR_CELLS * tokens / whole)
        label = f"  {name:<{label_cells}}  {group_digits(tokens):>{figure_cells}}"
        items.append(Item(None, label, f"{share:>6}  {bar}".rstrip()))
    return items
