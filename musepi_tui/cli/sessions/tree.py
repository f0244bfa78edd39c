"""``musepi sessions tree``: all branches of a session."""

import argparse
from collections.abc import Iterator, Mapping

from musepi_tui.cli.sessions.reading import load_telling
from musepi_tui.cli.sessions.shapes import preview, tree_json
from musepi_tui.cli.tables import print_json, print_line
from musepi_tui.session.labels import collect_labels
from musepi_tui.storage.loading import LoadedSession, collector_paused

ROW_CHARS = 70
DEEPEST_INDENT = 20


def show_tree(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Prints the tree; ``*`` marks the active path. Raises ``SessionError``."""
    del environ
    loaded = load_telling(arguments.file)
    with collector_paused():
        if arguments.json:
            print_json(tree_json(loaded.tree, loaded.bodies.get))
            return 0
        for row in _rows(loaded):
            print_line(row)
    return 0


def _rows(loaded: LoadedSession) -> Iterator[str]:
    """One row an entry, indented one step further behind every branch point."""
    tree = loaded.tree
    on_path = {head.id for head in tree.path()}
    labels = collect_labels(loaded.bodies.get(head) for head in loaded.heads if head.type == "label")
    steps: dict[str, int] = {}
    for entry_id, _ in tree.walk():
        head = tree.head(entry_id)
        parent_id = tree.parent(entry_id)
        steps[entry_id] = 0 if parent_id is None else steps[parent_id] + (len(tree.children(parent_id)) > 1)
        indent = "  " * min(steps[entry_id], DEEPEST_INDENT)
        text = " ".join(preview(loaded.bodies.get(head)).split())[:ROW_CHARS]
        mark = "*" if entry_id in on_path else " "
        label = f" [{labels[entry_id]}]" if entry_id in labels else ""
        here = " <- leaf" if entry_id == tree.leaf_id else ""
        yield f"{mark} {indent}{entry_id} {head.role or head.type}{label}: {text}{here}"
