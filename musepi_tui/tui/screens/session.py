"""Facts about the open session (TUI-4.11)."""

from collections import Counter
from typing import TYPE_CHECKING

from musepi_tui.base.cells import cut_cells
from musepi_tui.base.safe_text import display_safe
from musepi_tui.base.text import group_digits, plural
from musepi_tui.runtime.events import SessionView
from musepi_tui.tui.screens.panel import Item, Panel, PanelText

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell

MIN_VALUE_CELLS = 20
HINT = "up, down scroll · esc close"


def open_session(app: "Shell", argument: str) -> None:
    """Shows the facts."""
    items = session_items(app.runtime.view(), app.size.width)
    panel = Panel(app.looks.palette, PanelText("Session", hint=HINT), lambda _: items, searchable=False)
    app.push_screen(panel)


def session_items(view: SessionView, width_cells: int) -> list[Item]:
    """File, names, entries by type, tokens by kind, cost; values that are too long go on in the next row."""
    tree = view.tree
    kinds = Counter(tree.head(entry_id).type for entry_id in tree.order)
    sections: list[tuple[str, list[tuple[str, str]]]] = [
        ("Where", _places(view)),
        ("Entries", [(kind, group_digits(count)) for kind, count in kinds.most_common()]),
        ("Usage", _usage(view)),
    ]
    label_cells = max(len(label) for _, rows in sections for label, _ in rows)
    value_cells = max(MIN_VALUE_CELLS, width_cells - label_cells - 8)
    items: list[Item] = []
    for title, rows in sections:
        if rows:
            items += [Item(None, "")] if items else []
            items.append(Item(None, title))
        for label, text in rows:
            for index, part in enumerate(_parts(_one_line(text), value_cells)):
                items.append(Item(None, f"  {'' if index else label:<{label_cells}}", part))
    return items


def _places(view: SessionView) -> list[tuple[str, str]]:
    header, tree = view.header, view.tree
    rows = [
        ("file", "in memory only" if view.file is None else str(view.file)),
        ("id", header.id),
        ("name", view.name or "none"),
        ("folder", header.cwd),
        ("made", header.timestamp),
    ]
    if header.parent_session is not None:
        rows.append(("copied from", header.parent_session))
    rows.append(("branches", plural(len(tree.leaves), "leaf", "leaves")))
    if view.unsaved:
        rows.append(("not written", plural(view.unsaved, "entry", "entries")))
    if view.read_only_cause is not None:
        rows.append(("read-only", view.read_only_cause))
    return rows


def _usage(view: SessionView) -> list[tuple[str, str]]:
    totals = view.meter.totals
    rows = [
        ("input", totals.input),
        ("output", totals.output),
        ("cache read", totals.cache_read),
        ("cache write", totals.cache_write),
    ]
    shown = [(label, f"{group_digits(tokens)} tokens") for label, tokens in rows if tokens]
    if view.meter.cost is not None:
        shown.append(("cost", f"${view.meter.cost:.3f}"))
    return shown


def _parts(text: str, cells: int) -> list[str]:
    """The text in pieces of at most ``cells``, at any place: paths have no blanks to break at."""
    parts: list[str] = []
    while True:
        part = cut_cells(text, cells, "")
        if not part or part == text:
            return [*parts, text]
        parts.append(part)
        text = text[len(part) :]


def _one_line(text: str) -> str:
    return " ".join(display_safe(text).split())
