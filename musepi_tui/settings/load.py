"""Reading settings: defaults < user < project < environment < files < command line (tui 9.5).

A file that cannot be used never stops the program: what it should have set keeps its default, and a
``SettingsProblem`` says so.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import cast

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import UsageError
from musepi_tui.base.files import read_regular
from musepi_tui.base.types import JsonValue
from musepi_tui.settings import jsonc
from musepi_tui.settings.fields import dump_group, known_settings, read_group
from musepi_tui.settings.migrate import migrate
from musepi_tui.settings.schema import Settings

FILE_NAME = "settings.json"
PROJECT_FOLDER = ".musepi"
OVERRIDE = "--set"
"""Source of what the command line sets. A value that does not fit is a wrong argument there (contract 3)."""

_ENVIRONMENT = {
    "MUSEPI_MODEL": "modelRoles.default",
    "MUSEPI_SESSION_DIR": "session.dir",
    "MUSEPI_APPROVAL_MODE": "permissions.mode",
    "MUSEPI_TOKENIZER": "tokens.estimator",
}

_NEVER_FROM_PROJECT = ("shellPath", "session.dir", "defaultProjectTrust", "permissions.persistGrants")
"""A folder somebody sent you must not choose where your data goes or what runs (contract 4.1, SAF-91)."""


@dataclass(frozen=True, slots=True)
class SettingsProblem:
    """A line for the person. ``path`` is the file, ``--set`` or ``environment``; ``line`` and ``column`` are
    1-based where known; ``key`` is empty when the whole file is meant."""

    path: str
    line: int | None
    column: int | None
    key: str
    message: str


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings with their origin. ``sources`` has an entry for every key that is not at its default.

    ``broken``: a file could not be read as JSON at all; programs without a screen stop then (SAF-15).
    """

    values: Settings
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    problems: tuple[SettingsProblem, ...] = ()
    broken: bool = False


@dataclass(slots=True)
class _Layer:
    """One source: its name in ``sources``, where it is, its bytes and values."""

    source: str
    path: str
    values: dict[str, JsonValue]
    data: bytes = b""


class _Merge:
    """Collects layers, lowest first, and the problems met on the way."""

    def __init__(self) -> None:
        self.layers: list[_Layer] = []
        self.problems: list[SettingsProblem] = []
        self.broken = False

    def add_file(self, source: str, path: Path, *, required: bool = False) -> None:
        try:
            data = read_regular(path, jsonc.MAX_BYTES)
            values, _ = jsonc.parse_object(data)
        except FileNotFoundError:
            if required:
                raise UsageError(f"--config: there is no file {path}.") from None
            return
        except OSError as error:
            self._report_broken(path, None, None, f"cannot be read: {error.strerror or error}")
            return
        except jsonc.BrokenJson as error:
            self._report_broken(path, error.line, error.column, f"is not valid JSON: {error.reason}")
            return
        self.add(_Layer(source, str(path), values, data))

    def add(self, layer: _Layer) -> None:
        migrated = migrate(layer.values)
        layer.values = migrated.values
        for key, sentence in migrated.notes:
            self.report(layer, key, sentence)
        if layer.source.startswith("project"):
            self._drop_forbidden(layer)
        for key, _ in jsonc.leaves(layer.values):
            if not _is_known(key) and key not in _groups():
                self.report(layer, key, f"{key} is not a setting{_suggest(key)}; it is kept and ignored.")
        self.layers.append(layer)

    def report(self, layer: _Layer, key: str, message: str) -> None:
        line = jsonc.find_line(layer.data, key) if layer.data else None
        self.problems.append(SettingsProblem(layer.path, line, None, key, message))

    def result(self) -> LoadedSettings:
        merged: dict[str, JsonValue] = {}
        for layer in self.layers:
            jsonc.merge(merged, layer.values)
        values = self._read(merged)
        known = {key for key, _ in jsonc.leaves(merged) if _is_known(key)}
        sources = {
            key: layer.source
            for layer in self.layers
            for key, _ in jsonc.leaves(layer.values)
            if key in known
        }
        return LoadedSettings(values, sources, tuple(self.problems), self.broken)

    def _read(self, merged: dict[str, JsonValue]) -> Settings:
        """The settings of ``merged``; values that do not fit are removed from it and reported."""
        values, complaints = read_group(Settings, merged)
        for key, complaint in complaints.items():
            layer = self._layer_of(key)
            if layer.source == OVERRIDE:
                raise UsageError(f"--set {key}: {complaint}.")
            self.report(layer, key, f"{key}: {complaint}; the default is used.")
            jsonc.remove_path(merged, key)
        return values

    def _layer_of(self, key: str) -> _Layer:
        """The highest layer that sets ``key`` or something inside it."""
        for layer in reversed(self.layers):
            for found, _ in jsonc.leaves(layer.values):
                if found == key or found.startswith(f"{key}."):
                    return layer
        return self.layers[-1]

    def _drop_forbidden(self, layer: _Layer) -> None:
        for key in _NEVER_FROM_PROJECT:
            if jsonc.remove_path(layer.values, key):
                self.report(layer, key, f"{key} cannot be set by a project; it is ignored.")
        permissions = layer.values.get("permissions")
        if isinstance(permissions, dict) and permissions.get("mode", "ask") != "ask":
            jsonc.remove_path(layer.values, "permissions.mode")
            self.report(
                layer, "permissions.mode", "A project can set permissions.mode only to ask; it is ignored."
            )

    def _report_broken(self, path: Path, line: int | None, column: int | None, reason: str) -> None:
        self.broken = True
        where = f" (line {line}, column {column})" if line else ""
        message = f"It {reason}{where}. Correct it or move it away; until then its settings do not count."
        self.problems.append(SettingsProblem(str(path), line, column, "", message))


def load_settings(
    config_dir: Path,
    project_dir: Path | None,
    *,
    overrides: Sequence[str] = (),
    extra_files: Sequence[Path] = (),
    environ: Mapping[str, str] | None = None,
) -> LoadedSettings:
    """The settings that hold. ``project_dir`` None: the project has none, or is not trusted.

    ``overrides`` are ``key=value`` of ``--set``, ``extra_files`` those of ``--config``; later ones win. Only
    reads. Raises ``UsageError`` for an override or a ``--config`` file that cannot be used.
    """
    merge = _Merge()
    merge.add_file("user", config_dir / FILE_NAME)
    if project_dir is not None:
        folder = project_dir / PROJECT_FOLDER
        merge.add_file("project", folder / FILE_NAME)
        merge.add_file("project-local", folder / "settings.local.json")
    for name, key in _ENVIRONMENT.items():
        if environ and environ.get(name):
            layer = _Layer(f"environment:{name}", name, {})
            jsonc.set_path(layer.values, key, environ[name])
            merge.add(layer)
    for path in extra_files:
        merge.add_file(f"config:{path}", path, required=True)
    for text in overrides:
        merge.add(_Layer(OVERRIDE, OVERRIDE, _parse_override(text)))
    return merge.result()


def flatten(settings: Settings) -> dict[str, JsonValue]:
    """Every key with its value as JSON has it, in the order of the schema."""
    return dump_group(settings)


def check_value(key: str, value: JsonValue) -> str | None:
    """Why ``value`` cannot be stored under ``key``; None when it can."""
    if not _is_known(key):
        return f"{key} is not a setting{_suggest(key)}."
    tree: dict[str, JsonValue] = {}
    jsonc.set_path(tree, key, value)
    _, complaints = read_group(Settings, tree)
    return f"{key}: {complaints[key]}." if key in complaints else None


@cache
def known_keys() -> tuple[str, ...]:
    """Every dotted key of the schema, in its order."""
    return tuple(known.key for known in known_settings(Settings))


@cache
def _groups() -> frozenset[str]:
    """Every name that holds settings instead of being one: ``retry``, ``compaction``, …"""
    parts = [key.split(".") for key in known_keys()]
    return frozenset(".".join(names[:end]) for names in parts for end in range(1, len(names)))


def _is_known(key: str) -> bool:
    return key in known_keys()


def _suggest(key: str) -> str:
    from difflib import get_close_matches  # only where somebody mistyped: not at every start

    near = get_close_matches(key, known_keys(), n=1, cutoff=0.75)
    return f" (did you mean {near[0]}?)" if near else ""


def _parse_override(text: str) -> dict[str, JsonValue]:
    """The values of one ``--set key=value``; the value is JSON where it parses, else a string."""
    key, equals, raw = text.partition("=")
    if not equals or not all(key.strip().split(".")):
        raise UsageError(f'--set "{text}": expected key=value, for example --set compaction.threshold=85%.')
    try:
        value = cast("JsonValue", json.loads(raw))
    except (ValueError, RecursionError):
        value = raw
    values: dict[str, JsonValue] = {}
    jsonc.set_path(values, key.strip(), value)
    return values
