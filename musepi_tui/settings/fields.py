"""Settings as frozen dataclasses: what a field may hold, reading JSON into a group, naming every key.

Own code instead of pydantic because settings are read before the first frame: importing pydantic and building
its validators takes half as long as a whole bare Textual app needs to start.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import Field, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args, get_origin

from musepi_tui.base.address import is_web_address
from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.types import JsonValue

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
GroupT = TypeVar("GroupT", bound="DataclassInstance")

_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_SHOWN_CHARS = 80


@dataclass(frozen=True, slots=True)
class KnownSetting:
    """One key of the settings file. ``kind`` is its type, ``name`` the attribute it becomes."""

    key: str
    name: str
    kind: object
    default: JsonValue
    description: str


class _Unfit(Exception):
    """The value does not fit."""


def setting(*, default: T, description: str, at_least: float | None = None, above: float | None = None) -> T:
    """A field of a group. Numbers must be ``at_least`` so much, or ``above`` it."""
    metadata = {"description": description, "at_least": at_least, "above": above}
    return field(default=default, metadata=metadata)


def web_address(*, description: str) -> str | None:
    """A field that holds an http or https address, or nothing."""
    return field(default=None, metadata={"description": description, "is_address": True})


def local_path(*, description: str) -> str | None:
    """A field that holds the path of a file or folder here, ``~`` allowed, or nothing."""
    return field(default=None, metadata={"description": description, "is_path": True})


def known_settings(group: "type[DataclassInstance]", prefix: str = "") -> Iterator[KnownSetting]:
    """Every setting of a group and of the groups in it, in the order of the schema."""
    for info in fields(group):
        key = prefix + camel_case(info.name)
        if is_dataclass(info.type):
            yield from known_settings(cast("type[DataclassInstance]", info.type), f"{key}.")
        else:
            yield KnownSetting(
                key, info.name, info.type, _as_json(info.default), info.metadata["description"]
            )


def read_group(
    group: type[GroupT], tree: Mapping[str, JsonValue], prefix: str = ""
) -> tuple[GroupT, dict[str, str]]:
    """The group that ``tree`` sets, and by key why a value was left out. Unknown keys are not looked at."""
    values: dict[str, Any] = {}
    complaints: dict[str, str] = {}
    for info in fields(group):
        name = camel_case(info.name)
        if name not in tree:
            continue
        value = tree[name]
        if is_dataclass(info.type) and isinstance(value, dict):
            below = cast("type[DataclassInstance]", info.type)
            values[info.name], found = read_group(below, value, f"{prefix}{name}.")
            complaints |= found
            continue
        try:
            values[info.name] = _fit(value, info)
        except _Unfit:
            shown = json.dumps(value, ensure_ascii=False)[:_SHOWN_CHARS]
            complaints[prefix + name] = f"{shown} cannot be used, it should be {_expected(info)}"
    return group(**values), complaints


def dump_group(group: "DataclassInstance", prefix: str = "") -> dict[str, JsonValue]:
    """Every key with its value as JSON has it, in the order of the schema."""
    dumped: dict[str, JsonValue] = {}
    for info in fields(group):
        key = prefix + camel_case(info.name)
        value = getattr(group, info.name)
        if is_dataclass(info.type):
            dumped |= dump_group(value, f"{key}.")
        else:
            dumped[key] = _as_json(value)
    return dumped


def camel_case(name: str) -> str:
    """``max_rows`` as ``maxRows``: how keys are spelled in files."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _as_json(value: object) -> JsonValue:
    found = cast("JsonValue | tuple[JsonValue, ...]", value)
    return list(found) if isinstance(found, tuple) else found


def _fit(value: JsonValue, info: Field[Any]) -> object:
    fitted = _fit_kind(value, info.type)
    at_least, above = info.metadata.get("at_least"), info.metadata.get("above")
    if isinstance(fitted, int | float) and not isinstance(fitted, bool):
        if at_least is not None and fitted < at_least:
            raise _Unfit
        if above is not None and fitted <= above:
            raise _Unfit
    if info.metadata.get("is_address") and isinstance(fitted, str) and not is_web_address(fitted):
        raise _Unfit
    if info.metadata.get("is_path") and isinstance(fitted, str) and not _is_path(fitted):
        raise _Unfit
    return fitted


def _is_path(text: str) -> bool:
    """Whether it can name a file here: one in the home folder of somebody unknown cannot."""
    expanded = os.path.expanduser(text)  # noqa: PTH111 - never raises
    return bool(text) and "\0" not in text and not expanded.startswith("~")


def _fit_kind(value: JsonValue, kind: object) -> object:
    """The value as the kind has it. Raises ``_Unfit``: nothing is turned into something else, except a list
    into a tuple and a whole number into a float."""
    origin = get_origin(kind)
    if origin is UnionType:
        return _fit_any(value, get_args(kind))
    if origin is Literal:
        if isinstance(value, str) and value in get_args(kind):
            return value
    elif origin is tuple:
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
    elif kind is float and type(value) in (int, float):
        return _as_float(cast("float", value))
    elif type(value) is kind:
        return value
    raise _Unfit


def _fit_any(value: JsonValue, kinds: tuple[object, ...]) -> object:
    for kind in kinds:
        try:
            return _fit_kind(value, kind)
        except _Unfit:
            continue
    raise _Unfit


def _as_float(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise _Unfit from None
    if not math.isfinite(number):
        raise _Unfit
    return number


def _expected(info: Field[Any]) -> str:
    """What a field may hold, in words."""
    if is_dataclass(info.type):
        return "an object"
    if info.metadata.get("is_address"):
        return "an http or https address"
    if info.metadata.get("is_path"):
        return "the path of a file or folder"
    at_least, above = info.metadata.get("at_least"), info.metadata.get("above")
    words = _in_words(info.type)
    if at_least is not None:
        return f"{words} of at least {at_least}"
    return words if above is None else f"{words} above {above}"


def _in_words(kind: object) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if origin is tuple:
        return "a list of texts"
    if origin is UnionType:
        return " or ".join(_in_words(arm) for arm in get_args(kind) if arm is not NoneType)
    return _NAMES[cast("type", kind)]
