"""``musepi sessions transcript``: the conversation as people see it."""

import argparse
from collections.abc import Mapping

from musepi_tui.cli.sessions.reading import load_telling
from musepi_tui.cli.tables import print_json, print_line
from musepi_tui.session.transcript import RowKind, TranscriptRow, build_transcript

DIVIDERS: Mapping[RowKind, str] = {
    RowKind.COMPACTION: "── 📷 compacted · ctrl+o ──",
    RowKind.HANDOFF: "── ⇥ handed off · ctrl+o ──",
    RowKind.BRANCH_SUMMARY: "── ⎇ branch · ctrl+o ──",
}
"""The lines that stand for a summary (compaction 1.5)."""


def show_transcript(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Prints the display transcript of the path of the leaf. Raises ``SessionError``."""
    del environ
    rows = build_transcript(load_telling(arguments.file).read_path(), collapse=arguments.collapse)
    if arguments.json:
        print_json([{"kind": row.kind.value, "entryId": row.entry_id, "text": row.text} for row in rows])
        return 0
    for row in rows:
        print_line(_row_text(row))
        print_line("")
    return 0


def _row_text(row: TranscriptRow) -> str:
    if row.kind in DIVIDERS:
        return DIVIDERS[row.kind]
    match row.kind:
        case RowKind.ASSISTANT | RowKind.BASH:
            return row.text
        case RowKind.USER:
            return "\n".join(f"> {line}" for line in row.text.split("\n"))
        case RowKind.TOOL_RESULT:
            return f"[{row.tool_name}{' failed' if row.is_error else ''}]\n{row.text}"
        case _:
            return f"[{row.kind.value}] {row.text}"
