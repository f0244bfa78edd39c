"""Finds and starts extensions: the user's folder, installed packages, ``-e`` (tui 10.5, SAF-120)."""

import importlib
import importlib.util
import inspect
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from musepi_tui.base.errors import UsageError

GROUP = "musepi.extensions"
"""The entry-point group of packages that bring an extension."""

_LOG = logging.getLogger("musepi.extensions")


@dataclass(frozen=True, slots=True)
class Found:
    """An extension that was found, not loaded yet. ``origin`` is what a person can look up: a path, or the
    package it comes from."""

    name: str
    origin: str
    load: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """An extension that cannot be used and why."""

    name: str
    origin: str
    text: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """An extension whose code was read; ``activate`` is to be called once."""

    name: str
    origin: str
    activate: Callable[[Any], Any]


def find_extensions(
    folder: Path, named: Sequence[str] = (), *, only_named: bool = False
) -> tuple[Found, ...]:
    """The extensions of ``folder`` (files and packages, by name), those of installed packages, and the
    ``named`` ones: paths or module names. ``only_named`` leaves out the first two kinds.

    Runs none of their code. Raises ``UsageError`` for a named path that is not there.
    """
    found: list[Found] = []
    if not only_named:
        found += [_from_path(path) for path in _candidates(folder)]
        found += _installed()
    found += [_named(text) for text in named]
    return tuple({each.origin: each for each in found}.values())


def load_all(found: Iterable[Found]) -> tuple[tuple[Loaded, ...], tuple[Problem, ...]]:
    """Runs the module code of each; one that fails does not stop the others. Call it in a thread."""
    loaded: list[Loaded] = []
    problems: list[Problem] = []
    for each in found:
        try:
            activate = _activate_of(each.load())
        except (SystemExit, Exception) as error:  # noqa: BLE001 - extension dispatch is one of the three borders
            _LOG.error("extension %s could not be loaded", each.origin, exc_info=error)
            problems.append(Problem(each.name, each.origin, f"{type(error).__name__}: {error}"))
        else:
            loaded.append(Loaded(each.name, each.origin, activate))
    return tuple(loaded), tuple(problems)


def _candidates(folder: Path) -> Iterator[Path]:
    try:
        paths = sorted(folder.iterdir())
    except OSError:  # there is no such folder: nobody wrote an extension
        return
    for path in paths:
        if path.name.startswith((".", "_")):
            continue
        if path.suffix == ".py" or (path / "__init__.py").is_file():
            yield path


def _from_path(path: Path) -> Found:
    return Found(path.stem, str(path), lambda: _load_path(path))


def _installed() -> list[Found]:
    return [
        Found(point.name, f"{point.dist.name if point.dist else 'package'}: {point.value}", point.load)
        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)
    ]


def _named(text: str) -> Found:
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise UsageError(f"musepi: --extension {text}: nobody knows whose home folder that is.") from error
    if path.exists():
        return _from_path(path.resolve())
    if "/" in text or text.endswith(".py"):
        raise UsageError(f"musepi: --extension {text}: there is no such file.")
    return Found(text.rpartition(".")[2], text, lambda: importlib.import_module(text))


def _load_path(path: Path) -> ModuleType:
    """The module of a file or package, under a name that cannot clash with an installed one."""
    file = path / "__init__.py" if path.is_dir() else path
    name = f"musepi_extension_{path.stem}"
    places = [str(path)] if path.is_dir() else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=places)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _activate_of(loaded: object) -> Callable[[Any], Any]:
    """The ``activate`` of a module; an entry point may name the function itself."""
    activate = getattr(loaded, "activate", None) if inspect.ismodule(loaded) else loaded
    if not callable(activate):
        raise TypeError("it has no function activate(api)")
    return activate
