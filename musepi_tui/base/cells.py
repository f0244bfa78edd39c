"""Widths in terminal cells."""

from rich.cells import cell_len, chop_cells


def cell_width(text: str) -> int:
    """Cells the text takes in a terminal. One line, no escapes, no tabs."""
    return cell_len(text)


def cut_cells(text: str, width_cells: int, ellipsis: str = "…") -> str:
    """The text in at most ``width_cells``; it ends in ``ellipsis`` when something was left out.

    A wide character that would stand half outside is left out whole. Where not even the ellipsis fits, an
    empty string.
    """
    if cell_len(text) <= width_cells:
        return text
    room_cells = width_cells - cell_len(ellipsis)
    if room_cells < 0:
        return ""
    if room_cells == 0:
        return ellipsis
    head = text[: room_cells * 8 + 64]  # chopping is linear in the whole text, and a line may be a megabyte
    first = next(iter(chop_cells(head, room_cells)), "")
    return (first if cell_len(first) <= room_cells else "") + ellipsis
