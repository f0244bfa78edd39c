"""Image files as blocks for the model: told by their bytes, scaled when Pillow is there (SAF-144)."""

import base64
import io
import struct
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from musepi_tui.base.errors import ToolError
from musepi_tui.base.text import group_digits
from musepi_tui.session.messages import ImageBlock

MAX_FILE_BYTES = 20 * 1024 * 1024
MAX_SIDE_PIXELS = 2_000
"""Larger pictures are refused by providers once several are in a request."""

MAX_SENT_BYTES = 3_750_000
"""About 5 MB as base64, the smallest limit among the providers."""

_MAX_PIXELS = 50_000_000
_MAX_DECODED_SIDE = 20_000
_SENDABLE = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What the header says; sides in pixels, 0 when it does not say."""

    mime_type: str
    width: int
    height: int


def recognise(data: bytes) -> ImageFacts | None:
    """The kind and size of an image by its first bytes, None when it is none we know."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return ImageFacts("image/png", *struct.unpack(">II", data[16:24]))
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        return ImageFacts("image/gif", *struct.unpack("<HH", data[6:10]))
    if data.startswith(b"\xff\xd8\xff"):
        return ImageFacts("image/jpeg", *_jpeg_size(data))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ImageFacts("image/webp", *_webp_size(data))
    if data.startswith(b"BM") and len(data) >= 26 and data[6:10] == b"\0\0\0\0":
        width, height = struct.unpack("<ii", data[18:26])
        return ImageFacts("image/bmp", abs(width), abs(height))
    return None


def to_block(data: bytes, facts: ImageFacts, shown: str) -> tuple[ImageBlock, str]:
    """The block to send and a line that describes it. Raises ``ToolError`` for what cannot be sent."""
    sides = f"{group_digits(facts.width)}x{group_digits(facts.height)}"
    if facts.width * facts.height > _MAX_PIXELS or max(facts.width, facts.height) > _MAX_DECODED_SIDE:
        raise ToolError(f"{shown} is an image of {sides} pixels, too large to be read.")
    kind = facts.mime_type.removeprefix("image/")
    fits = max(facts.width, facts.height) <= MAX_SIDE_PIXELS and len(data) <= MAX_SENT_BYTES
    if fits and facts.mime_type in _SENDABLE:
        text = f"{shown}: {kind} image, {sides} pixels, {group_digits(len(data))} bytes"
        return ImageBlock(base64.b64encode(data).decode("ascii"), facts.mime_type), text
    smaller, new_sides = _scale(data, shown, sides)
    text = f"{shown}: {kind} image, {sides} pixels, sent as {new_sides} png"
    return ImageBlock(base64.b64encode(smaller).decode("ascii"), "image/png"), text


def _scale(data: bytes, shown: str, sides: str) -> tuple[bytes, str]:
    """The first frame as PNG within the limits, and its size."""
    try:
        pillow: Any = import_module("PIL.Image")  # an extra
    except ImportError as error:
        raise ToolError(
            f"{shown} is an image of {sides} pixels and {group_digits(len(data))} bytes. Only png, jpeg, gif "
            f"and webp up to {MAX_SIDE_PIXELS} pixels a side and {group_digits(MAX_SENT_BYTES)} bytes can be "
            "sent as they are; to scale it, Pillow must be installed: pip install pillow."
        ) from error
    try:
        with pillow.open(io.BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP", "BMP")) as image:
            frame = image.convert("RGBA" if "A" in image.getbands() else "RGB")
        for side in (MAX_SIDE_PIXELS, 1_400, 1_000, 700):
            frame.thumbnail((side, side))
            target = io.BytesIO()
            frame.save(target, "PNG", optimize=True)
            if target.tell() <= MAX_SENT_BYTES:
                return target.getvalue(), f"{frame.width}x{frame.height}"
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise ToolError(f"{shown} is a damaged image: {error}") from error
    raise ToolError(f"{shown} is an image that cannot be made small enough to be sent.")


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """The size in the first frame header."""
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L" and len(data) >= 25:
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 " and len(data) >= 30:
        width, height = struct.unpack("<HH", data[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return 0, 0
