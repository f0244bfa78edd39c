"""Foreign text on its way into an export: secrets masked, nothing in it that a reader's program obeys."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from musepi_tui.base.safe_text import display_safe, reveal

Mask: TypeAlias = Callable[[str], str]
"""Takes secrets out of a text; without masking it gives the text back."""


def shown(text: str, mask: Mask) -> str:
    """Running text (SAF-50, 51). Tabs stay: what is copied from an export has to work."""
    return "\t".join(display_safe(part) for part in mask(text).split("\t"))


def spelled(text: str, mask: Mask) -> str:
    """Code, diffs and file names: what is invisible is spelled out. Tabs stay."""
    return "\t".join(reveal(part) for part in mask(text).split("\t"))


def one_line(text: str, mask: Mask) -> str:
    """A title or a label."""
    return " ".join(shown(text, mask).split())


def joined(parts: Sequence[str]) -> str:
    """Facts in a row; empty ones are left out."""
    return " · ".join(part for part in parts if part)
