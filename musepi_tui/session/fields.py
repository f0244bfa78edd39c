"""Taking typed fields out of a JSON object, leaving behind whatever does not fit.

What is left is kept as ``extra`` of the decoded value, so that fields this version does not know, and known
ones with an unexpected type, survive a round trip.
"""

import math
from collections.abc import Mapping
from typing import Any, cast


class Fields:
    """A shrinking copy of a JSON object. A ``take_…`` of a field with another type leaves it where it is."""

    __slots__ = ("rest",)

    def __init__(self, obj: Mapping[str, Any]) -> None:
        self.rest: dict[str, Any] = dict(obj)

    def take_text(self, key: str) -> str | None:
        """The string at ``key``, or None."""
        value = self.rest.get(key)
        return self.rest.pop(key) if isinstance(value, str) else None

    def take_number(self, key: str) -> int | float | None:
        """The finite number at ``key``, or None; booleans are no numbers."""
        value = self.rest.get(key)
        if type(value) is int or (type(value) is float and math.isfinite(value)):
            return self.rest.pop(key)
        return None

    def take_int(self, key: str) -> int | None:
        """The whole number at ``key``, or None; a float stays behind."""
        value = self.rest.get(key)
        return self.rest.pop(key) if type(value) is int else None

    def take_true(self, key: str) -> bool:
        """Whether ``key`` holds ``true``; only then is it taken."""
        return self.rest.get(key) is True and bool(self.rest.pop(key))

    def take_bool(self, key: str, *, default: bool) -> bool:
        """The boolean at ``key``, or ``default``."""
        value = self.rest.get(key)
        return self.rest.pop(key) if isinstance(value, bool) else default

    def take_object(self, key: str) -> dict[str, Any] | None:
        """The object at ``key``, or None."""
        return self.rest.pop(key) if isinstance(self.rest.get(key), dict) else None

    def take_list(self, key: str) -> list[Any] | None:
        """The list at ``key``, or None."""
        return self.rest.pop(key) if isinstance(self.rest.get(key), list) else None

    def take_any(self, key: str) -> object:
        """Whatever is at ``key``; None when nothing is or it is null."""
        return self.rest.pop(key) if self.rest.get(key) is not None else None


def as_object(value: object) -> dict[str, Any] | None:
    """A parsed JSON value if it is an object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any] | None:
    """A parsed JSON value if it is a list."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def as_text(value: object) -> str | None:
    """A parsed JSON value if it is a string."""
    return value if isinstance(value, str) else None


def put(out: dict[str, Any], key: str, value: object) -> None:
    """Set ``key`` unless ``value`` is None."""
    if value is not None:
        out[key] = value


def with_rest(known: dict[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    """``known`` followed by the fields of ``rest`` it does not have."""
    for key, value in rest.items():
        known.setdefault(key, value)
    return known


def overlay(raw: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """``raw`` with every field that differs between ``before`` and ``after`` taken from ``after``.

    ``before`` is what ``raw`` would be written as now; fields that did not change keep their stored form and
    place. Objects are compared field by field, lists as a whole.
    """
    out = dict(raw)
    for key in before.keys() - after.keys():
        out.pop(key, None)
    for key, value in after.items():
        old = before.get(key)
        if key in before and old == value:
            continue
        parts = as_object(raw.get(key)), as_object(old), as_object(value)
        if parts[0] is not None and parts[1] is not None and parts[2] is not None:
            out[key] = overlay(parts[0], parts[1], parts[2])
        else:
            out[key] = value
    return out
