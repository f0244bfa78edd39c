"""Changing the user's settings file: atomically, one process at a time, and only where it could be read
(SAF-15, 27)."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from musepi_tui.base.errors import SettingsError
from musepi_tui.base.files import atomic_write, locked, read_regular
from musepi_tui.base.types import JsonValue
from musepi_tui.settings import jsonc
from musepi_tui.settings.load import FILE_NAME, check_value
from musepi_tui.settings.migrate import migrate

_FILE_MODE = 0o600
_FOLDER_MODE = 0o700


def set_key(config_dir: Path, key: str, value: JsonValue) -> None:
    """Stores one value in the user's settings file; everything else in it stays.

    A file with comments is kept beside it as ``settings.json.bak``. Raises ``SettingsError`` for a key or
    value that cannot be used, for a file that cannot be read as JSON and for a folder that cannot be written.
    """
    if problem := check_value(key, value):
        raise SettingsError(problem)

    def change(values: dict[str, JsonValue]) -> bool:
        jsonc.set_path(values, key, value)
        return True

    _change_file(config_dir, change)


def unset_key(config_dir: Path, key: str) -> bool:
    """Removes one key, known or not; false when the file did not have it. Raises ``SettingsError``."""
    if not (config_dir / FILE_NAME).exists():
        return False
    return _change_file(config_dir, lambda values: jsonc.remove_path(values, key))


def migrate_file(config_dir: Path) -> bool:
    """Rewrites the user's file where it has retired keys; false when there was nothing to do.

    The old file stays as ``settings.json.bak``. A broken file is left alone. Raises ``SettingsError``.
    """
    path = config_dir / FILE_NAME
    if _outdated(path) is None:
        return False
    with _alone(path):
        found = _outdated(path)  # another process may have been faster
        if found is None:
            return False
        data, new = found
        _write(path, new, backup=data)
    return True


def _outdated(path: Path) -> tuple[bytes, bytes] | None:
    """What the file holds and what it should hold; None when it has no retired keys or cannot be read."""
    try:
        data = read_regular(path, jsonc.MAX_BYTES)
        values, _ = jsonc.parse_object(data)
    except (OSError, jsonc.BrokenJson):
        return None
    migrated = migrate(values)
    if not migrated.outdated:
        return None
    return data, jsonc.dump_object(_without_folded_unknowns(values, migrated.values))


def _without_folded_unknowns(old: dict[str, JsonValue], new: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The new values, but an unknown strategy as the person wrote it: a later version may know it."""
    was, now = old.get("compaction"), new.get("compaction")
    if isinstance(was, dict) and isinstance(now, dict) and now.get("strategy") == "summary":
        strategy = was.get("strategy")
        if isinstance(strategy, str) and strategy not in {"summary", "context-full", "soft"}:
            return {**new, "compaction": {**now, "strategy": strategy}}
    return new


def _change_file(config_dir: Path, change: Callable[[dict[str, JsonValue]], bool]) -> bool:
    path = config_dir / FILE_NAME
    with _alone(path):
        return _change_alone(path, change)


def _change_alone(path: Path, change: Callable[[dict[str, JsonValue]], bool]) -> bool:
    data = b""
    values: dict[str, JsonValue] = {}
    has_comments = False
    try:
        data = read_regular(path, jsonc.MAX_BYTES)
        values, has_comments = jsonc.parse_object(data)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}.") from error
    except jsonc.BrokenJson as error:
        raise SettingsError(
            f"{path} is not valid JSON: {error.reason} (line {error.line}, column {error.column}). "
            "Correct it first; it was not changed."
        ) from error
    if not change(values):
        return False
    _write(path, jsonc.dump_object(values), backup=data if has_comments else None)
    return True


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """Keeps other processes from changing the file meanwhile. What the system refuses, here or in the block,
    becomes a ``SettingsError``."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
        with locked(path):
            yield
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror or error}.") from error


def _write(path: Path, data: bytes, *, backup: bytes | None) -> None:
    """Writes through a link, for people who keep their settings elsewhere. Raises ``OSError``."""
    target = path.resolve()
    mode = None if target.exists() else _FILE_MODE
    if backup is not None:
        atomic_write(target.with_name(target.name + ".bak"), backup, mode=_FILE_MODE)
    atomic_write(target, data, mode=mode)
