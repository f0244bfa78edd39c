"""``musepi sessions inspect``: what is in a file."""

import argparse
from collections import Counter
from collections.abc import Mapping

from musepi_tui.cli.sessions.reading import load_whole
from musepi_tui.cli.tables import print_json, print_line
from musepi_tui.session.entries import CompactionEntry, LoadIssue
from musepi_tui.session.rebuild import is_usable, read_state
from musepi_tui.storage.loading import LoadedSession


def inspect(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Prints the facts of a file. Raises ``SessionError``."""
    del environ
    facts = facts_of(load_whole(arguments.file))
    if arguments.json:
        print_json(facts)
    else:
        _print_facts(facts)
    return 0


def facts_of(loaded: LoadedSession) -> dict[str, object]:
    """The facts in the shape of the contract (3)."""
    tree = loaded.tree
    return {
        "version": loaded.version_on_disk,
        "id": loaded.header.id,
        "cwd": loaded.header.cwd,
        "name": loaded.name,
        "entries": len(loaded.heads),
        "byType": dict(sorted(Counter(head.type for head in loaded.heads).items())),
        "roots": len(tree.roots),
        "leaves": len(tree.leaves),
        "orphans": loaded.orphans,
        "longestPath": tree.longest_path,
        "leafId": tree.leaf_id,
        "issues": [_issue_json(issue) for issue in loaded.issues],
        "compactions": _compactions(loaded),
    }


def _issue_json(issue: LoadIssue) -> dict[str, object]:
    return {"line": issue.line, "offset": issue.offset, "kind": issue.kind, "detail": issue.detail}


def _compactions(loaded: LoadedSession) -> list[dict[str, object]]:
    heads = [head for head in loaded.heads if head.type == "compaction"]
    if not heads:
        return []
    model = _last_model(loaded)
    entries = loaded.bodies.read_all(heads)
    return [
        {
            "id": entry.id,
            "firstKeptEntryId": entry.first_kept_entry_id,
            "tokensBefore": entry.tokens_before,
            "usable": is_usable(entry, None if model is None else model[0]),
        }
        for entry in entries
        if isinstance(entry, CompactionEntry)
    ]


def _last_model(loaded: LoadedSession) -> tuple[str, str] | None:
    """The model in use at the leaf, from the model changes on its path and the last answer."""
    path = loaded.tree.path()
    answers = [head for head in path if head.role == "assistant"]
    heads = [head for head in path if head.type == "model_change"] + answers[-1:]
    return read_state(loaded.bodies.read_all(heads)).model


def _print_facts(facts: Mapping[str, object]) -> None:
    for key, value in facts.items():
        if isinstance(value, list):
            print_line(f"{key}: {len(value)}")  # pyright: ignore[reportUnknownArgumentType]  # lists of rows
            for row in value:  # pyright: ignore[reportUnknownVariableType]
                print_line("  " + _row(row))  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, dict):
            print_line(f"{key}: {_row(value)}")  # pyright: ignore[reportUnknownArgumentType]
        else:
            print_line(f"{key}: {'-' if value is None else value}")


def _row(row: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {value}" for key, value in row.items())
