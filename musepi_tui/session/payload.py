"""Texts that lie outside the session file, which names them by their hash (session-format 12).

An entry that is read gets the text in place of the reference, as a ``Payload`` that remembers it; when the
entry is written again the reference goes back to where it was.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any, ClassVar

from musepi_tui.session.fields import as_list, as_object

IMAGE_PREFIX = "blob:sha256:"
TEXT_PREFIX = "blobtext:sha256:"

_REFERENCE = re.compile(r"blob(text)?:sha256:([0-9a-f]{64})")
_SHOWN_DIGITS = 12


class PayloadForm(StrEnum):
    """How the bytes of a blob become the text of a field."""

    BASE64 = "base64"
    UTF8 = "utf-8"


ReadBlob = Callable[[str, PayloadForm], str | None]
"""The text for a digest (64 hex digits); None when there is no such blob."""


class Payload(str):
    """A text that stands in the file as ``reference``. ``is_in_use``: this process has met one."""

    __slots__ = ("reference",)
    is_in_use: ClassVar[bool] = False
    reference: str

    def __new__(cls, text: str, reference: str) -> "Payload":
        """The text of a blob, with the words that name it in the file."""
        made = super().__new__(cls, text)
        made.reference = reference
        cls.is_in_use = True
        return made


def holds_reference(line: bytes) -> bool:
    """Whether a line may refer to a blob; a quick look, so that other lines need no walk."""
    return b":sha256:" in line


def digest_of(value: object) -> str | None:
    """The digest when a value is nothing but a reference; exactly 64 lower-case hex digits, or None."""
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return None if match is None else match[2]


def missing_text(value: object) -> str | None:
    """What the model reads in place of a blob that is not there; None when ``value`` is no reference."""
    digest = digest_of(value)
    if digest is None:
        return None
    what = "text" if str(value).startswith(TEXT_PREFIX) else "image"
    return f"[{what} not available: blob {digest[:_SHOWN_DIGITS]}]"


def with_payloads(value: object, read: ReadBlob) -> Any:  # noqa: ANN401  JSON
    """A parsed JSON value with its references replaced, as far as their blobs are there. Changes nothing."""
    return _resolved(value, read, key=None, in_images=False)


def with_references(value: object) -> Any:  # noqa: ANN401  JSON
    """A JSON value with every payload replaced by the reference it came from. Changes nothing."""
    # Called for every line that is written, and hardly any session has blobs.
    return _unresolved(value) if Payload.is_in_use else value


def _unresolved(value: object) -> object:
    if isinstance(value, Payload):
        return value.reference
    obj, items = as_object(value), as_list(value)
    if obj is not None:
        for key, item in obj.items():
            put_back = _unresolved(item)
            if put_back is not item:
                obj = {**obj, key: put_back}
        return obj
    if items is not None:
        for index, item in enumerate(items):
            put_back = _unresolved(item)
            if put_back is not item:
                items = [*items[:index], put_back, *items[index + 1 :]]
        return items
    return value


def _resolved(value: object, read: ReadBlob, *, key: str | None, in_images: bool) -> Any:  # noqa: ANN401  JSON
    """``key`` is what the value stands under when that matters: ``image_url``, or ``data`` of an image."""
    # One frame for each level: a line may be nested 200 deep and the caller may stand deep itself.
    if isinstance(value, str):
        return _payload(value, read, key)
    obj, items = as_object(value), as_list(value)
    if obj is not None:
        is_image = in_images or obj.get("type") in ("image", "video") or "mimeType" in obj
        for name, item in obj.items():
            matters = name == "image_url" or (name == "data" and is_image)
            found = _resolved(item, read, key=name if matters else None, in_images=name == "images")
            if found is not item:
                obj = {**obj, name: found}
        return obj
    if items is not None:
        for index, item in enumerate(items):
            found = _resolved(item, read, key=None, in_images=in_images)
            if found is not item:
                items = [*items[:index], found, *items[index + 1 :]]
        return items
    return value


def _payload(value: str, read: ReadBlob, key: str | None) -> str:
    match = _REFERENCE.fullmatch(value)
    if match is None:
        return value
    if match[1]:
        form = PayloadForm.UTF8
    elif key == "image_url":
        form = PayloadForm.UTF8  # the whole data URL
    elif key == "data":
        form = PayloadForm.BASE64
    else:
        return value
    text = read(match[2], form)
    return value if text is None else Payload(text, value)
