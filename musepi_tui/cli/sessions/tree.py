"""``musepi sessions tree``: all branches of a session, drawn as the tree of the screen is."""

import argparse
from collections.abc import Iterator, Mapping

from musepi_tui.cli.sessions.reading import load_telling
from musepi_tui.cli.sessions.shapes import tree_json
from musepi_tui.cli.tables import print_json, print_line
from musepi_tui.storage.loading import LoadedSession, collector_paused
from musepi_tui.tui.symbols import SYMBOLS, choose_preset
from musepi_tui.tui.tree.layout import in_symbols
from musepi_tui.tui.tree.model import FilterMode, TreeModel, TreeRow

READ_MS = 1000.0
"""How long one call reads; all of them until nothing is left."""

MOST_PREFIX_CHARS = 240
"""As much of the tree stands before a row: eighty branches deep, where no drawing helps any more."""


def show_tree(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Prints the tree, the active path marked. Raises ``SessionError``."""
    loaded = load_telling(arguments.file)
    with collector_paused():
        if arguments.json:
            print_json(tree_json(loaded.tree, loaded.bodies.get))
            return 0
        mode = FilterMode.ALL if arguments.all else FilterMode.DEFAULT
        for row in _rows(loaded, mode, SYMBOLS[choose_preset(None, environ)]):
            print_line(row)
    return 0


def _rows(loaded: LoadedSession, mode: FilterMode, symbols: Mapping[str, str]) -> Iterator[str]:
    """One row an entry that the filter shows, its id in front."""
    tree, bodies = loaded.tree, loaded.bodies
    model = TreeModel(
        tree, lambda entry_id: bodies.get(tree.head(entry_id)), mode=mode, read_start=bodies.line_start
    )
    while model.settle(READ_MS):
        pass
    rows = [model.row(index) for index in range(len(model))]
    id_chars = max((len(row.entry_id) for row in rows), default=0)
    for row in rows:
        yield f"{row.entry_id:{id_chars}}  {_row_text(row, model.describe(row.entry_id), symbols)}"


def _row_text(row: TreeRow, text: str, symbols: Mapping[str, str]) -> str:
    prefix = in_symbols(row.prefix, symbols)
    if len(prefix) > MOST_PREFIX_CHARS:
        prefix = f"{symbols['ellipsis']}{prefix[-MOST_PREFIX_CHARS:]}"
    path = f"{symbols['bullet']} " if row.on_path else ""
    label = "" if row.label is None else f"[{row.label.text}] "
    here = f" {symbols['here']} here" if row.is_leaf else ""
    return f"{prefix}{path}{label}{text}{here}"
