"""The standard library's slotted dataclass, five times as fast to define.

The program defines about 200 of them before its first frame. ``dataclasses`` of Python 3.11 compiles up to
six methods for each, one by one: together that took half as long as a whole bare Textual app needs to start.
Here only ``__init__`` is compiled, with the first object; the other methods are the same for all classes.
Modules that are imported before the first frame use this one::

    from musepi_tui.base.dataclass import dataclass

``field``, ``fields``, ``replace`` and the rest still come from ``dataclasses``.
"""

import dataclasses
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, slots: bool, frozen: bool = False, eq: bool = True) -> "Callable[[type[T]], type[T]]":
        """Makes a class a dataclass with slots; other kinds come from ``dataclasses``."""
        if not slots:
            raise TypeError("only slots=True is made here")
        return partial(_make, frozen=frozen, eq=eq)


def _make(cls: type[T], *, frozen: bool, eq: bool) -> type[T]:
    cls.__doc__ = cls.__doc__ or cls.__name__  # else one is made of the signature, which takes a while
    made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    found = dataclasses.fields(made)  # pyright: ignore[reportArgumentType]  it is a dataclass now
    compared = [each.name for each in found if each.compare]
    own: dict[str, Any] = {
        "__init__": _late_init(made, found),
        "__repr__": _describe,
        "_compared": attrgetter(*compared) if compared else type,
        **(_OF_FROZEN if frozen else {}),
    }
    if eq:
        own |= {"__eq__": _equal, "__hash__": _hash if frozen else None}
    for name, value in own.items():
        if name not in cls.__dict__:
            setattr(made, name, value)
    return made


def _late_init(made: type, found: "tuple[dataclasses.Field[Any], ...]") -> "Callable[..., None]":
    """An ``__init__`` that puts the compiled one in its place."""
    for each in found:
        if not each.init:
            raise TypeError(f"{each.name}: fields that are no parameters are not made here")

    def __init__(self: object, *args: object, **kwargs: object) -> None:
        compiled = _compile_init(found, has_post=hasattr(made, "__post_init__"))
        setattr(made, "__init__", compiled)  # noqa: B010 - a type checker knows no such assignment
        compiled(self, *args, **kwargs)

    return __init__


def _compile_init(found: "tuple[dataclasses.Field[Any], ...]", *, has_post: bool) -> Any:  # noqa: ANN401  a function made at run time
    """``__init__`` with the parameters of the fields. A default of a factory is made anew for each object."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_missing": dataclasses.MISSING}
    parameters = ["self"]
    body: list[str] = []
    for each in sorted(found, key=lambda one: one.kw_only is True):
        name = value = each.name
        if each.kw_only and "*" not in parameters:
            parameters.append("*")
        if each.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"] = each.default_factory
            value = f"_make_{name}() if {name} is _missing else {name}"
            parameters.append(f"{name}=_missing")
        elif each.default is not dataclasses.MISSING:
            names[f"_default_{name}"] = each.default
            parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        body.append(f"    _set(self, {name!r}, {value})")
    if has_post:
        body.append("    self.__post_init__()")
    exec("\n".join([f"def __init__({', '.join(parameters)}):", *body, "    return"]), names)
    return names["__init__"]


def _equal(self: Any, other: object) -> bool:  # noqa: ANN401
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self is other or (self._compared(self) == self._compared(other))


def _hash(self: Any) -> int:  # noqa: ANN401
    return hash(self._compared(self))


def _describe(self: Any) -> str:  # noqa: ANN401
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_setting(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deleting(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:  # noqa: ANN401
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:  # noqa: ANN401
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


_OF_FROZEN = {
    "__setattr__": _refuse_setting,
    "__delattr__": _refuse_deleting,
    "__getstate__": _state,
    "__setstate__": _restore,
}
