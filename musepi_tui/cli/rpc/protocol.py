"""What an RPC handler is (contract 3.2, tui 9.4)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from musepi_tui.base.errors import MusepiError
from musepi_tui.maintenance.notices import HANDOFF_WHILE_BUSY
from musepi_tui.runtime import settling
from musepi_tui.runtime.events import IntentSettled, MaintenanceEnded
from musepi_tui.runtime.intents import Intent
from musepi_tui.runtime.session import SessionRuntime

BUSY = "a turn or work on the session is running: wait for its end, or use abort first"
_KEY_WORDS = (settling.BUSY, HANDOFF_WHILE_BUSY)

Arguments: TypeAlias = Mapping[str, Any]


class RpcError(MusepiError):
    """A command that cannot be carried out; the text is the ``error`` of its response."""


class RpcHost(Protocol):
    """What a handler may use."""

    @property
    def runtime(self) -> SessionRuntime:
        """The session that is driven."""
        ...

    @property
    def last_pass(self) -> MaintenanceEnded | None:
        """The end of the newest maintenance pass."""
        ...


@dataclass(frozen=True, slots=True)
class Pending:
    """Answered when ``intent`` settles; ``finish`` turns that into data or raises ``RpcError``."""

    intent: Intent
    finish: Callable[[RpcHost, IntentSettled], Any]


Answer: TypeAlias = "Pending | dict[str, Any] | None"
Handler: TypeAlias = Callable[[RpcHost, Arguments], Answer]


def done(_: RpcHost, settled: IntentSettled) -> None:
    """The finish of a command without data: its error is the intent's."""
    if not settled.ok:
        raise RpcError(settled.error or "refused")


def settled_data(_: RpcHost, settled: IntentSettled) -> dict[str, Any]:
    """The finish of a command whose data is the intent's."""
    if not settled.ok:
        raise RpcError(settled.error or "refused")
    return dict(settled.data or {})


def words_for_scripts(settled: IntentSettled) -> IntentSettled:
    """An intent's end whose error, where it speaks of keys, names commands instead."""
    return replace(settled, error=BUSY) if settled.error in _KEY_WORDS else settled


def text_argument(arguments: Arguments, name: str, *, default: str | None = None) -> str:
    """A string argument. Raises ``RpcError`` naming it when it is missing or of another type."""
    value = arguments.get(name, default)
    if not isinstance(value, str):
        found = "nothing" if value is None else type(value).__name__
        raise RpcError(f"{name} must be a string, got {found}")
    return value


def path_argument(arguments: Arguments, name: str) -> str:
    """A string argument that names a file or folder. Raises ``RpcError`` for what no name can be."""
    value = text_argument(arguments, name)
    if not value or "\0" in value:
        raise RpcError(f"{name} must name a file or folder, got {json.dumps(value)}")
    return value


def optional_text(arguments: Arguments, name: str) -> str | None:
    """A string argument that may be absent or null."""
    return None if arguments.get(name) is None else text_argument(arguments, name)
