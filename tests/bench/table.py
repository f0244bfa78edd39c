"""The printed result."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One figure with its unit and the budget it is held against."""

    name: str
    value: str
    budget: str = ""


def render(rows: list[Row]) -> str:
    """The rows as an aligned table, one a line."""
    table = [("figure", "measured", "budget"), *((row.name, row.value, row.budget) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines) + "\n"
