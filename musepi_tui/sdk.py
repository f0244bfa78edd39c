"""What scripts may use (contract 6). Everything else of the package is private.

Reading a recorded answer of a provider::

    from musepi_tui.sdk import parse_wire_response

    body = b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'
    found = parse_wire_response("anthropic-messages", 529, {}, body)
    assert found["error"]["kind"] == "overloaded"

A conversation is an ``AgentSession``.
"""

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from musepi_tui.base.errors import (
    ErrorKind,
    MusepiError,
    ProviderError,
    SessionError,
    SettingsError,
    UsageError,
)
from musepi_tui.providers.apis import load_provider
from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.providers.types import StreamError
from musepi_tui.runtime.bus import Subscription
from musepi_tui.runtime.event_json import JsonEvent, to_json
from musepi_tui.runtime.events import AgentSettled, IntentSettled, Notice, SessionReady
from musepi_tui.runtime.intents import Compact, Handoff, Intent, NavigateTree, SubmitPrompt
from musepi_tui.runtime.options import RuntimeOptions, SessionChoice
from musepi_tui.runtime.session import SessionRuntime
from musepi_tui.session.messages import AssistantMessage, TextBlock, ThinkingBlock, text_of, tool_calls_of
from musepi_tui.settings.load import LoadedSettings, load_settings
from musepi_tui.storage.paths import Paths, find_paths, resolve_path

__all__ = ["AgentSession", "MusepiError", "SessionSetup", "parse_wire_response"]

_CLOSED = "The session was closed before that was done."
_MOVE_FIELDS = ("cancelled", "aborted", "leafId", "editorText", "summaryEntryId")
"""What a move is told as (contract 3.2)."""


@dataclass(frozen=True, slots=True)
class SessionSetup:
    """How a session works, each as the flag of that name: ``cwd`` (None: the current folder), ``model``
    (``provider/id``), ``approval_mode``. ``settings`` hold values by their dotted keys, as ``--set`` does."""

    cwd: Path | None = None
    model: str | None = None
    approval_mode: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


class AgentSession:
    """A conversation that a script holds, one call after another.

    Nobody can be asked, so a call of the model that needs approval is refused. What fails raises
    ``MusepiError`` with a line about it.
    """

    def __init__(self, runtime: SessionRuntime) -> None:
        self._runtime = runtime

    @classmethod
    @asynccontextmanager
    async def open(
        cls, path: str | Path, setup: SessionSetup = SessionSetup()
    ) -> AsyncGenerator["AgentSession"]:
        """The session in this file, which is made when it does not exist, for an ``async with`` block.

        Leaving the block stops what runs, stores what is there and gives the file back. Raises
        ``SessionError`` for a file that cannot be opened, ``SessionBusyError`` for one that another process
        has open, ``SettingsError`` and ``UsageError`` for settings that cannot be used.
        """
        async with SessionRuntime.open(_runtime_options(Path(path), setup)) as runtime:
            await _load(runtime)
            yield cls(runtime)
        if runtime.rescue_files:
            raise SessionError(f"not everything could be written; the rest is in {runtime.rescue_files[0]}")
        if runtime.lost is not None:
            raise SessionError(runtime.lost)

    @property
    def file(self) -> Path | None:
        """The file of the session, another one after a handoff; None while nothing is stored."""
        return self._runtime.view().file

    @property
    def leaf_id(self) -> str | None:
        """The id of the entry the next one is attached to: a place for ``navigate_tree`` to come back to."""
        return self._runtime.view().tree.display_leaf

    async def prompt(self, text: str) -> str:
        """The final answer to a prompt, once turn, retries, compaction and everything queued are done."""
        with closing(self._runtime.subscribe()) as events:
            prompt_id = self._runtime.send(SubmitPrompt(text))
            async for event in events:
                match event:
                    case IntentSettled(intent_id=intent_id, ok=False) if intent_id == prompt_id:
                        raise MusepiError(event.error or _CLOSED)
                    case AgentSettled():
                        return self._answer()
                    case _:
                        pass
        raise MusepiError(_CLOSED)

    async def compact(self, focus: str | None = None, mode: str | None = None) -> dict[str, Any]:
        """Summarises older history now, as ``/compact`` does.

        Returns ``entryId``, ``firstKeptEntryId``, ``tokensBefore``, ``tokensAfter``, ``durationMs``, ``cost``
        and ``usage``. Raises with the line that says why there was nothing to do.
        """
        return await self._carry_out(Compact(mode, focus))

    async def handoff(self, focus: str | None = None) -> dict[str, Any]:
        """Goes on in a new session that begins with a document about this one.

        Returns ``document``, ``sessionId`` and ``sessionFile``.
        """
        return await self._carry_out(Handoff(focus))

    async def navigate_tree(
        self, target_id: str, *, summarize: bool = False, custom_instructions: str | None = None
    ) -> dict[str, Any]:
        """Goes on from another entry; ``summarize`` leaves a summary of the branch that is left there, for
        which ``custom_instructions`` replace the usual prompt.

        Returns ``cancelled`` and ``leafId``, the ``editorText`` of a prompt that is gone back to,
        ``summaryEntryId`` of the summary, and ``aborted`` when it was cancelled meanwhile.
        """
        data = await self._carry_out(NavigateTree(target_id, summarize, custom_instructions))
        return {name: data[name] for name in _MOVE_FIELDS if name in data}

    def events(self) -> AsyncIterator[JsonEvent]:
        """Everything that is told from now on, as JSON mode prints it (contract 4); ends with the session."""
        return self._told(self._runtime.subscribe())

    async def _told(self, subscription: Subscription) -> AsyncIterator[JsonEvent]:
        with closing(subscription):
            async for event in subscription:
                for shape in to_json(event, self._runtime.read_entry):
                    yield shape

    async def _carry_out(self, intent: Intent) -> dict[str, Any]:
        with closing(self._runtime.subscribe()) as events:
            wanted = self._runtime.send(intent)
            async for event in events:
                if not isinstance(event, IntentSettled) or event.intent_id != wanted:
                    continue
                if not event.ok:
                    raise MusepiError(event.error or _CLOSED)
                return dict(event.data or {})
        raise MusepiError(_CLOSED)

    def _answer(self) -> str:
        outcome = self._runtime.outcome
        if outcome.error is not None:
            raise MusepiError(outcome.error)
        return "" if outcome.message is None else text_of(outcome.message.content)


def parse_wire_response(
    api: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes | str,
    splits: Sequence[int] | None = None,
) -> dict[str, Any]:
    """What the decoder of live streams makes of a recorded response.

    ``body`` is the whole body, cut at the byte offsets ``splits`` before it is fed. Returns ``text``,
    ``thinking``, ``toolCalls`` (``id``, ``name``, ``arguments``), ``stopReason``, ``usage`` (None when none
    was reported) and ``error`` (None, or ``kind``, ``retryable``, ``message``, ``type``, ``code`` and
    ``retryAfter`` in seconds).

    Raises ProviderError for an unknown api, UsageError for one whose answers are not on a wire.
    """
    decode = load_provider(api).decode
    if decode is None:
        raise UsageError(f"Answers of the api {api!r} are not recorded on a wire")
    raw = body.encode("utf-8") if isinstance(body, str) else body
    final = decode(status, headers, cut_bytes(raw, splits or ()))
    message = final.message
    return {
        "text": "".join(block.text for block in message.content if isinstance(block, TextBlock)),
        "thinking": "".join(block.thinking for block in message.content if isinstance(block, ThinkingBlock)),
        "toolCalls": [
            {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}
            for call in tool_calls_of(message)
        ],
        "stopReason": message.stop_reason.value,
        "usage": _usage_of(message),
        "error": _error_of(final.error) if isinstance(final, StreamError) else _silent_overflow(message),
    }


def cut_bytes(body: bytes, splits: Sequence[int]) -> tuple[bytes, ...]:
    """``body`` in pieces that begin at the offsets ``splits``; their order does not matter."""
    borders = [0, *sorted({offset for offset in splits if 0 < offset < len(body)}), len(body)]
    return tuple(body[start:end] for start, end in pairwise(borders))


def _usage_of(message: AssistantMessage) -> dict[str, int] | None:
    usage = message.usage
    if usage is None:
        return None
    return {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "totalTokens": usage.total_tokens,
    }


def _silent_overflow(message: AssistantMessage) -> dict[str, Any] | None:
    """An answer that stopped because the window was full: kept as it is, but an overflow (providers 1.6)."""
    if not message.extra.get("overflow"):
        return None
    return _error_of(ProviderError("model_context_window_exceeded", kind=ErrorKind.OVERFLOW))


def _error_of(error: ProviderError) -> dict[str, Any]:
    return {
        "kind": error.kind.value,
        "retryable": error.retryable,
        "message": error.server_message or str(error),
        "type": error.error_type,
        "code": error.code,
        "retryAfter": error.retry_after_s,
    }


async def _load(runtime: SessionRuntime) -> None:
    """Waits until the session is loaded. Raises ``SessionError`` when it cannot be."""
    with closing(runtime.subscribe()) as events:
        runtime.begin()
        async for event in events:
            match event:
                case SessionReady():
                    return
                case Notice(level="error", source="session"):
                    raise SessionError(event.text)
                case _:
                    pass


def _runtime_options(path: Path, setup: SessionSetup) -> RuntimeOptions:
    environ = dict(os.environ)
    paths = find_paths(environ)
    return RuntimeOptions(
        paths=paths,
        cwd=resolve_path(setup.cwd or Path.cwd()),
        settings=_load_settings(paths, setup, environ),
        registry=lambda: ModelRegistry.load(paths.config, environ),
        session=_choose(resolve_path(path)),
        model=setup.model,
        mode=setup.approval_mode,
        interactive=False,
    )


def _load_settings(paths: Paths, setup: SessionSetup, environ: Mapping[str, str]) -> LoadedSettings:
    overrides = [f"{key}={json.dumps(value)}" for key, value in setup.settings.items()]
    loaded = load_settings(paths.config, None, overrides=overrides, environ=environ)
    if loaded.broken:
        problem = next(problem for problem in loaded.problems if not problem.key)
        raise SettingsError(f"{problem.path}: {problem.message}")
    return loaded


def _choose(path: Path) -> SessionChoice:
    """The file, opened when there is one with anything in it."""
    is_known = path.exists() and (not path.is_file() or path.stat().st_size > 0)
    return SessionChoice("open" if is_known else "new", path)
