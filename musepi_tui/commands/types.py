"""What a slash command is (tui 4)."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol, TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.runtime.events import SessionView
from musepi_tui.runtime.intents import Intent


class CommandHost(Protocol):
    """What a command may do; the app implements it."""

    def send(self, intent: Intent, *, done: str = "") -> str:
        """Hands an intent to the runtime, returns its id. ``done`` is told when it ended well."""
        ...

    def show(self, screen: str, argument: str = "") -> None:
        """Opens a screen by name: ``resume``, ``tree``, ``rewind``, ``branch``, ``delete``, ``model``,
        ``help``, ``hotkeys``, ``theme``, ``session``, ``context``."""
        ...

    def notify(self, level: Literal["info", "warning", "error"], text: str) -> None:
        """Shows a notice in the transcript."""
        ...

    def view(self) -> SessionView:
        """The session as it is now."""
        ...

    def act(self, name: str, argument: str = "") -> None:
        """A thing only the screen can do: ``quit``, ``redo``, ``set-theme`` (argument: its name)."""
        ...


Run: TypeAlias = Callable[[CommandHost, str], Awaitable[None]]
Complete: TypeAlias = Callable[[Any, str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Command:
    """One file in ``commands/builtin``, offering ``COMMAND``. ``now``: allowed while a turn runs;
    ``interrupts``: what runs is stopped for it, once the person has said yes; ``busy``: what it is refused
    with while something runs, where the usual words would not do.

    ``alias_note`` is told once in a run when it was called by another name, after what it did.

    ``complete(host, text)`` gives values for the argument typed so far, ``detail(host)`` what the completion
    list says in place of ``help``.
    """

    name: str
    run: Run
    help: str
    usage: str = ""
    aliases: tuple[str, ...] = ()
    now: bool = False
    interrupts: bool = False
    busy: str = ""
    alias_note: str = ""
    complete: Complete | None = None
    detail: Callable[[Any], str] | None = None
