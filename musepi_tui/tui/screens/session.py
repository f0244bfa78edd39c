"""Facts about the open session (TUI-4.11)."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from musepi_tui.base.text import group_digits, plural
from musepi_tui.runtime.events import SessionView
from musepi_tui.session.tree import LEAF_MARK, SessionTree
from musepi_tui.storage.tally import Tally
from musepi_tui.tui.screens.panel import Item, Panel, PanelText, text_parts
from musepi_tui.tui.widgets.drawing import one_line

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell

MIN_VALUE_CELLS = 20
HINT = "up, down scroll · esc close"


class FactsPanel(Panel):
    """The facts, counted in a thread: a long session takes a second or two."""

    def __init__(self, app: "Shell") -> None:
        self._view = app.runtime.view()
        self._width_cells = app.size.width
        self._facts: Sequence[Item] = ()
        text = PanelText("Session", hint=HINT)
        super().__init__(app.looks.palette, text, lambda _: self._facts, searchable=False)
        self.empty_text = "counting the entries…"

    def on_mount(self) -> None:
        """Counts; the frame is there meanwhile."""
        self.run_worker(self._count(), exit_on_error=False)

    async def _count(self) -> None:
        self._facts = await asyncio.to_thread(session_items, self._view, self._width_cells)
        self.search("")


def open_session(app: "Shell", argument: str) -> None:
    """Shows the facts."""
    app.push_screen(FactsPanel(app))


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
            for index, part in enumerate(text_parts(one_line(text), value_cells)):
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
    if view.cwd is not None and view.cwd != Path(header.cwd):
        rows.append(("tools work in", str(view.cwd)))
    if header.parent_session is not None:
        rows.append(("copied from", header.parent_session))
    rows.append(("branches", plural(_count_leaves(tree), "leaf", "leaves")))
    if view.unsaved:
        rows.append(("not written", plural(view.unsaved, "entry", "entries")))
    if view.read_only_cause is not None:
        rows.append(("read-only", view.read_only_cause))
    return rows


def _count_leaves(tree: SessionTree) -> int:
    """Ends of branches; a mark that remembers a move is none."""
    tally = Tally()
    for head in tree.all_heads:
        tally.add(head.type, head.id, head.parent_id, is_mark=head.role == LEAF_MARK)
    return len(tally.leaves)


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
