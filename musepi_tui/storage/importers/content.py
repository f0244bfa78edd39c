"""Pieces of messages that several importers convert alike. Pure."""

import binascii
import re

from musepi_tui.session.fields import as_text
from musepi_tui.session.messages import ImageBlock, TextBlock
from musepi_tui.session.times import iso_text, unix_ms
from musepi_tui.storage.importers.tally import Tally

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MAX_IMAGE_BYTES = 20 * 1024 * 1024
"""Kinds and size of images that are taken over (SAF-144); a model would refuse others."""

_DATA_URL = re.compile(r"data:(image/[a-z.+-]{1,40});base64,", re.IGNORECASE)

_EARLIEST_MS = -62_135_596_800_000
_LATEST_MS = 253_402_300_799_000
"""The first and the last moment ISO 8601 can spell with four digits."""


def image_block(data: str | None, mime_type: str | None, tally: Tally) -> ImageBlock | TextBlock:
    """An image of base64 text, or a line that says it was left out when it cannot be one."""
    kind = (mime_type or "").lower()
    if data is None or kind not in IMAGE_TYPES or len(data) > MAX_IMAGE_BYTES * 4 // 3 + 4:
        return left_out("image", tally)
    try:
        binascii.a2b_base64(data.encode("ascii"), strict_mode=True)
    except (ValueError, binascii.Error):
        return left_out("image", tally)
    tally.carry("image")
    return ImageBlock(data, kind)


def image_of_url(url: str | None, tally: Tally) -> ImageBlock | TextBlock:
    """The image of a data URL; one that lies elsewhere is never fetched."""
    match = _DATA_URL.match(url or "")
    if url is None or match is None:
        return left_out("image", tally)
    return image_block(url[match.end() :], match[1], tally)


def left_out(kind: str, tally: Tally) -> TextBlock:
    """The text that stands where something could not be carried over."""
    tally.skip(kind)
    return TextBlock(f"[{kind} not imported]")


def is_shown(block: TextBlock | ImageBlock) -> bool:
    """Whether a block holds anything; empty texts are left out of prompts and results."""
    return not isinstance(block, TextBlock) or bool(block.text)


class Timestamps:
    """ISO times of records as musepi spells them; one that cannot be read is that of the record before."""

    def __init__(self, first: str) -> None:
        self._last = first

    def read(self, stored: object) -> tuple[str, int]:
        """The time as text and as Unix milliseconds."""
        found = unix_ms(as_text(stored) or "")
        if found is not None and _EARLIEST_MS <= found <= _LATEST_MS:
            self._last = iso_text(found)
        return self._last, unix_ms(self._last) or 0
