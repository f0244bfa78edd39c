"""Pictures for a page: only what its own bytes say it is (SAF-55)."""

import base64
import binascii

from musepi_tui.session.messages import ImageBlock

MAX_PICTURE_BYTES = 20 * 1024 * 1024
"""Larger pictures are not decoded anywhere in the program (SAF-144)."""

_SIGNATURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


def data_url(image: ImageBlock) -> str | None:
    """The picture as a ``data:`` address whose type comes from the bytes; None when it is no png, jpeg, gif
    or webp, too large, or not base64 at all, such as a blob that is missing."""
    if len(image.data) > MAX_PICTURE_BYTES // 3 * 4 + 4:
        return None
    try:
        data = base64.b64decode(image.data, validate=True)
    except (binascii.Error, ValueError):
        return None
    kind = picture_type(data)
    # Encoded anew, so that nothing of the stored text itself reaches the page.
    return None if kind is None else f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def picture_type(data: bytes) -> str | None:
    """The MIME type by the signature of the file format; None for another format."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _SIGNATURES if data.startswith(start)), None)


def caption(image: ImageBlock) -> str:
    """``image · png · 120KB``, or why there is none."""
    kind = image.mime_type.rpartition("/")[2] or "unknown"
    if image.data.startswith("blob:"):
        return f"image · {kind} · not available"
    return f"image · {kind} · {max(1, len(image.data) * 3 // 4 // 1024)}KB"
