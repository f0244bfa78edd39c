"""Keys: where they come from and how a value is written (providers 9.3, 10; safety 10).

A value is literal, has ``$NAME`` or ``${NAME}`` in it, or is ``!command``. ``$$`` and ``$!`` stand for the
bare characters.
"""

import asyncio
import errno
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.base.files import read_regular
from musepi_tui.base.process import run_shell_command
from musepi_tui.providers.types import Credentials

AUTH_FILE = "auth.json"
MAX_AUTH_BYTES = 1_000_000
_VARIABLE = re.compile(r"\$(?:(?P<escape>[$!])|\{(?P<braced>[A-Za-z_]\w*)\}|(?P<plain>[A-Za-z_]\w*))")


@dataclass(frozen=True, slots=True)
class Value:
    """A key or header value read from a file: ``text`` ready to use, or a ``command`` to run for it.

    ``missing`` names variables that are not set; then neither is given.
    """

    text: str | None = None
    command: str | None = None
    missing: tuple[str, ...] = ()


def read_value(written: str, environ: Mapping[str, str]) -> Value:
    """What ``written`` stands for. Commands are not run here."""
    if written.startswith("!"):
        return Value(command=written[1:].strip())
    missing: list[str] = []

    def fill(match: re.Match[str]) -> str:
        if match["escape"]:
            return match["escape"]
        name = match["braced"] or match["plain"]
        found = environ.get(name, "")
        if not found:
            missing.append(name)
        return found

    text = _VARIABLE.sub(fill, written)
    return Value(missing=tuple(missing)) if missing else Value(text=text)


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """What ``auth.json`` holds: provider to key as written. ``problem`` says why it could not be used."""

    keys: Mapping[str, str]
    problem: str | None = None


def load_stored_keys(config_dir: Path) -> StoredKeys:
    """The stored keys. A file that others can read is refused, with the command that mends it (SAF-105)."""
    path = config_dir / AUTH_FILE
    try:
        mode = path.stat().st_mode
        if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
            return StoredKeys({}, f"{path} can be read by other users and is not used: chmod 600 {path}")
        data = read_regular(path, MAX_AUTH_BYTES)
    except FileNotFoundError:
        return StoredKeys({})
    except OSError as error:
        reason = error.strerror or errno.errorcode.get(error.errno or 0, "unreadable")
        return StoredKeys({}, f"{path} cannot be read: {reason}")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        where = f":{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        return StoredKeys({}, f"{path}{where}: not valid JSON, so no stored key is used")
    rows = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return StoredKeys({name: key for name, row in rows.items() if (key := _key_of(row))})


def _key_of(row: object) -> str | None:
    if not isinstance(row, dict):
        return None
    entry = cast("dict[str, Any]", row)
    key = entry.get("key")
    return key if entry.get("type", "api_key") == "api_key" and isinstance(key, str) and key else None


_outputs: dict[str, str] = {}
"""Outputs of key commands, by command: in memory only, for as long as the program runs (SAF-107)."""


async def resolve_credentials(credentials: Credentials) -> Credentials:
    """``credentials`` with the outputs of their commands in place.

    Raises ProviderError AUTH when a command fails.
    """
    if not credentials.commands:
        return credentials
    key = credentials.key
    headers = dict(credentials.headers)
    for name, command in credentials.commands.items():
        output = await _run_command(command)
        if name:
            headers[name] = output
        else:
            key = output
    return replace(credentials, key=key, headers=headers)


async def _run_command(command: str) -> str:
    if command not in _outputs:
        output = await asyncio.to_thread(run_shell_command, command)
        if not output:
            error = ProviderError(
                f"The key command failed or printed nothing: {command[:200]}", kind=ErrorKind.AUTH
            )
            error.cause = "key"
            raise error
        _outputs[command] = output
    return _outputs[command]


def forget_command(credentials: Credentials) -> bool:
    """Forgets the outputs behind ``credentials`` so that they are read anew; False when they have none."""
    found = [command for command in credentials.commands.values() if _outputs.pop(command, None) is not None]
    return bool(found)
