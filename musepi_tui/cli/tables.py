"""Printing for people and for scripts: aligned tables, JSON without control characters."""

import json
import sys
from collections.abc import Sequence

from musepi_tui.base.safe_text import display_safe


def print_json(value: object) -> None:
    """Writes indented JSON; everything outside ASCII is escaped (contract 3)."""
    sys.stdout.write(json.dumps(value, ensure_ascii=True, indent=2) + "\n")


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Writes rows as columns of equal width, cleaned of controls; the first row is the heading."""
    from musepi_tui.base.cells import cell_width  # deferred: loads Rich's table of widths

    clean = [[display_safe(cell.replace("\n", " ")) for cell in row] for row in rows]
    widths = [max(cell_width(row[column]) for row in clean) for column in range(len(clean[0]))]
    for row in clean:
        padded = [cell + " " * (width - cell_width(cell)) for cell, width in zip(row, widths, strict=True)]
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def print_line(text: str) -> None:
    """Writes one line, cleaned of controls."""
    sys.stdout.write(display_safe(text) + "\n")


def print_error(text: str) -> None:
    """Writes one line to stderr, cleaned of controls."""
    sys.stderr.write(display_safe(text.rstrip("\n")) + "\n")
