"""What an extension may use: the only module of musepi an extension imports (contract 6).

An extension is a Python module with a function ``activate(api)``, which may be async. It registers handlers::

    from musepi_tui.extensions.api import BeforeCompact, Context, ExtensionApi

    def activate(api: ExtensionApi) -> None:
        api.on("session_before_compact", never_while_testing)

    async def never_while_testing(event: BeforeCompact, ctx: Context) -> dict[str, bool] | None:
        if event.reason != "manual":
            ctx.notify("Compaction was put off.")
            return {"cancel": True}
        return None
"""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, Protocol

from musepi_tui.extensions.points import (
    ALIASES,
    BeforeCompact,
    BeforeCompactResult,
    BeforeSwitch,
    BeforeTree,
    BeforeTreeResult,
    BranchSummaryResult,
    CancelResult,
    CancelSignal,
    Compacted,
    Compacting,
    CompactingResult,
    CompactionPreparation,
    CompactionResult,
    Hook,
    Switched,
    TreeMoved,
    TreePreparation,
)
from musepi_tui.session.entries import KEEP_NOTHING, BranchSummaryEntry, CompactionEntry, Entry, MessageEntry
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    BranchSummary,
    CompactionSummary,
    CustomMessage,
    DeveloperMessage,
    Message,
    ToolResultMessage,
    UserMessage,
)
from musepi_tui.session.messages import text_of as _text_of

__all__ = [
    "KEEP_NOTHING",
    "AssistantMessage",
    "BashExecution",
    "BeforeCompact",
    "BeforeCompactResult",
    "BeforeSwitch",
    "BeforeTree",
    "BeforeTreeResult",
    "BranchSummary",
    "BranchSummaryEntry",
    "BranchSummaryResult",
    "CancelResult",
    "CancelSignal",
    "Compacted",
    "Compacting",
    "CompactingResult",
    "CompactionEntry",
    "CompactionPreparation",
    "CompactionResult",
    "CompactionSummary",
    "Context",
    "CustomMessage",
    "DeveloperMessage",
    "Entry",
    "ExtensionApi",
    "Handler",
    "Hook",
    "Message",
    "MessageEntry",
    "Switched",
    "ToolResultMessage",
    "TreeMoved",
    "TreePreparation",
    "UserMessage",
    "text_of",
]

Level = Literal["info", "warning", "error"]

Handler = Callable[[Any, "Context"], Any]
"""Takes the payload of its hook and a ``Context``. A coroutine function runs in the event loop, any other one
in a thread."""


class Host(Protocol):
    """What the program lends to extensions; the runtime implements it."""

    def notify(self, extension: str, level: Level, text: str) -> None:
        """Shows a line to the person. May be called from any thread."""
        ...

    def context(self) -> "SessionFacts":
        """The session that is open."""
        ...

    async def complete(self, system: str, prompt: str, max_tokens: int) -> str:
        """Asks the session's model once. Raises ``ProviderError``."""
        ...


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The open session: working folder, id, file (None when it has none) and model as ``provider/id``."""

    cwd: str
    session_id: str
    session_file: str | None
    model: str | None


class Context:
    """The second argument of every handler: the session, and what may be done."""

    def __init__(self, extension: str, host: Host) -> None:
        self._extension = extension
        self._host = host

    @property
    def session(self) -> SessionFacts:
        """The session that is open now."""
        return self._host.context()

    def notify(self, text: str, level: Level = "info") -> None:
        """Shows a line to the person. May be called from any thread."""
        self._host.notify(self._extension, level, text)

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int = 4096) -> str:
        """The answer of the session's model to one prompt, without tools and without the conversation.

        ``max_tokens`` bounds the answer. Raises ``ProviderError`` when the request failed.
        """
        return await self._host.complete(system, prompt, max_tokens)


class ExtensionApi:
    """What ``activate`` gets. ``name`` is how notices call the extension."""

    def __init__(self, name: str, register: Callable[[Hook, Handler], None]) -> None:
        self.name = name
        self._register = register

    def on(self, event: str, handler: Handler) -> None:
        """Calls ``handler(payload, context)`` at every such event, after the handlers registered before it.

        Raises ``ValueError`` for an event nobody sends, ``TypeError`` for a handler that cannot be called.
        """
        hook = ALIASES.get(event)
        if hook is None:
            try:
                hook = Hook(event)
            except ValueError:
                names = [str(member) for member in Hook]
                near = get_close_matches(event, names, n=1)
                hint = f"did you mean {near[0]}?" if near else f"events are {', '.join(names)}"
                raise ValueError(f'there is no event "{event}"; {hint}') from None
        if not callable(handler):
            raise TypeError(f"the handler of {event} cannot be called: {handler!r}")
        self._register(hook, handler)


def text_of(message: Message) -> str:
    """The text of a message without images, thinking and tool calls; of a command, it and what it printed."""
    match message:
        case BashExecution():
            return f"{message.command}\n{message.output}"
        case CompactionSummary() | BranchSummary():
            return message.summary
        case UserMessage() | DeveloperMessage() | AssistantMessage() | ToolResultMessage() | CustomMessage():
            return _text_of(message.content)
        case _:
            return ""
