"""One turn: prompt -> request -> tools -> ... -> the final answer (architecture 7a)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal, TypeAlias, assert_never

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.explain import explain
from musepi_tui.providers.retry import over_cap
from musepi_tui.providers.types import (
    AssistantStream,
    BlockDelta,
    BlockEnd,
    BlockStart,
    Model,
    StreamDone,
    StreamError,
    StreamStart,
    ToolSpec,
)
from musepi_tui.runtime.events import (
    AgentEnded,
    AgentStarted,
    AssistantDelta,
    AssistantEnded,
    AssistantStarted,
    Notice,
    Phase,
    TurnEnded,
    TurnStarted,
)
from musepi_tui.runtime.queue import MessageQueue, QueuedMessage
from musepi_tui.runtime.retry import RetryLimits, RetryWait
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.tool_runner import ABORTED_TEXT, RepeatGuard, ToolRunner
from musepi_tui.session.entries import MessageEntry
from musepi_tui.session.messages import (
    AssistantMessage,
    StopReason,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    tool_calls_of,
)

INTERRUPTED = "Interrupted by user"
"""Error text of an answer the person stopped; other programs know it (session-format 4)."""
CUT_OFF = (
    "Not run: the answer was cut off by the output limit, so this call may be incomplete. Make it again."
)
FAILED = "Not run: the answer that asked for it failed."
MENDED_KINDS = frozenset({ErrorKind.OVERFLOW, ErrorKind.PAYLOAD})
"""Failures that a smaller context may mend; whether it does is known only after maintenance."""
CLOSE_WITHIN_S = 2.0
"""How long a cancelled request may take to give its connection back (providers 7.6)."""
_LOG = logging.getLogger("musepi.loop")

Stop: TypeAlias = Literal["ok", "error", "aborted", "denied", "budget"]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What became of one request. ``entry_ids``: the answer, and results of calls it left open."""

    message: AssistantMessage
    error: ProviderError | None
    entry_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Briefing:
    """What every request of a run holds besides messages."""

    system: str
    tools: tuple[ToolSpec, ...]


@dataclass(frozen=True, slots=True)
class TurnHooks:
    """What a turn tells its owner: ``accepted`` once its prompts are stored, ``prompted`` after each message
    of the person with its number, ``boundary`` when results are stored and another request follows; it is
    waited for."""

    accepted: Callable[[], None]
    prompted: Callable[[int], None]
    boundary: Callable[[AssistantMessage], Awaitable[None]]


class Turn:
    """One turn of the agent. ``stop`` and ``message`` tell how it ended, also after a cancel.

    ``accepted``: its prompts are stored. ``failure`` is what the last request failed of; one that maintenance
    may mend is not told by the turn itself but by ``report``.
    """

    _live_ids = count(1)

    def __init__(
        self, services: Services, briefing: Briefing, tools: ToolRunner, queue: MessageQueue
    ) -> None:
        self.stop: Stop = "error"
        self.accepted = False
        self.message: AssistantMessage | None = None
        self.error: str | None = None
        self.failure: ProviderError | None = None
        self._services = services
        self._briefing = briefing
        self._tools = tools
        self._queue = queue
        self._open_calls: tuple[ToolCallBlock, ...] = ()
        self._stored_id: str | None = None

    async def run(self, prompts: Sequence[QueuedMessage], hooks: TurnHooks) -> None:
        """Works until the model gives its final answer. ``prompts`` empty goes on from what is there.

        Raises ``CancelledError`` after everything received was stored and every call answered.
        """
        self._services.bus.emit(AgentStarted())
        mark = self._services.history.tree.leaf_id
        try:
            self._accept(prompts, hooks)
            self.accepted = True
            hooks.accepted()
            self.stop = await self._steps(hooks)
        except asyncio.CancelledError:
            self.stop = "aborted"
            raise
        finally:
            stored = self._services.history.messages_since(mark)
            self._services.bus.emit(AgentEnded(tuple(entry.id for entry in stored)))

    async def _steps(self, hooks: TurnHooks) -> Stop:
        agent = self._services.settings.agent
        repeats = RepeatGuard(agent.max_identical_calls)
        rounds = 0
        while True:
            stop = await self._step(repeats)
            if stop is not None:
                return stop
            rounds += 1
            if agent.max_rounds and rounds >= agent.max_rounds:
                return self._out_of_budget(
                    f"The turn was stopped after {rounds} tool rounds (agent.maxRounds)."
                )
            if self.message is not None:
                await hooks.boundary(self.message)
            self._accept(self._queue.take_steering(), hooks)

    async def _step(self, repeats: RepeatGuard) -> Stop | None:
        """One request and its answer, tool results included. None when another step has to follow."""
        self._services.bus.emit(TurnStarted())
        mark = self._services.history.tree.leaf_id
        try:
            asked = await self._answer()
            if asked.error is not None:
                return "error"
            calls = self._take_open_calls()
            if not calls:
                return "ok"
            self._services.phase(Phase.TOOLS)
            cut_off = CUT_OFF if asked.message.stop_reason is StopReason.LENGTH else None
            done = await self._tools.run(calls, repeats, cut_off)
        finally:
            self._tools.answer_unrun(self._take_open_calls(), ABORTED_TEXT)
            self._services.bus.emit(_turn_ended(self._services.history.messages_since(mark)))
        if done.stop:
            return "denied"
        if done.runaway:
            limit = 2 * self._services.settings.agent.max_identical_calls
            return self._out_of_budget(
                f"The turn was stopped: the same call came {limit} times in a row (agent.maxIdenticalCalls)."
            )
        return None

    async def _answer(self) -> _Asked:
        """The answer to the conversation so far, after retries; a failed one has stop reason ``error``."""
        services = self._services
        limits = _retry_limits(services)
        with RetryWait(limits, services.clock, services.bus.emit, services.cancels) as retries:
            while True:
                asked = await self._ask()
                if asked.error is None:
                    retries.succeeded()
                    return asked
                if not retries.allows(asked.error, has_answered=self._has_answered()):
                    break
                services.phase(Phase.RETRYING)
                await self._wait(retries, asked.error)
                services.history.hide(asked.entry_ids)
            retries.failed(asked.error)
        self.failure = asked.error
        if asked.error.kind not in MENDED_KINDS:
            self.report()
        return asked

    def _has_answered(self) -> bool:
        """Whether the current provider gave an answer in the live conversation."""
        provider = self._services.gateway.require_model().provider
        return any(
            isinstance(message, AssistantMessage)
            and message.provider == provider
            and message.stop_reason not in (StopReason.ERROR, StopReason.ABORTED)
            for message in self._services.history.messages
        )

    async def _wait(self, retries: RetryWait, error: ProviderError) -> None:
        """Waits for the next try. A wait that is cancelled ends as an aborted answer."""
        try:
            await retries.before_next(error)
        except asyncio.CancelledError:
            self._store(_interrupted_message(self._services.gateway.require_model()), None)
            raise

    async def _ask(self) -> _Asked:
        """One request: its answer is stored, whatever became of it."""
        services = self._services
        services.phase(Phase.STREAMING)
        live_id = f"live-{next(self._live_ids)}"
        model = services.gateway.require_model()
        services.bus.emit(AssistantStarted(live_id, model.id, model.provider))
        self._stored_id = None
        try:
            return await self._receive(model, live_id)
        except asyncio.CancelledError:
            if self._stored_id is None:
                self._store(_interrupted_message(model), live_id)
            raise
        finally:
            services.bus.emit(AssistantEnded(live_id, self._stored_id))

    async def _receive(self, model: Model, live_id: str) -> _Asked:
        """Opens a stream and reads it to its end. What came is stored before anything is waited for."""
        services = self._services
        started = services.clock.monotonic()
        try:
            await services.gateway.prepare(model)
            request = services.gateway.request(
                self._briefing.system, services.context_messages(), tools=self._briefing.tools
            )
            stream = services.gateway.open(model, request)
        except ProviderError as error:
            return self._asked(_failed_message(model, error), error, live_id)
        try:
            message, error = await self._read(stream, live_id)
            too_long = None if error is None else over_cap(error, request.retry_after_cap_s)
            if too_long is not None:
                message, error = replace(message, error_message=str(too_long)), too_long
            duration_ms = round((services.clock.monotonic() - started) * 1000)
            return self._asked(replace(message, duration_ms=duration_ms), error, live_id)
        except asyncio.CancelledError:
            partial = stream.partial()
            self._store(replace(partial, stop_reason=StopReason.ABORTED, error_message=INTERRUPTED), live_id)
            raise
        finally:
            await _close(stream)

    def _asked(self, message: AssistantMessage, error: ProviderError | None, live_id: str) -> _Asked:
        ids = [self._store(message, live_id)]
        if error is not None:
            ids += self._tools.answer_unrun(self._take_open_calls(), FAILED)
        return _Asked(message, error, tuple(ids))

    async def _read(
        self, stream: AssistantStream, live_id: str
    ) -> tuple[AssistantMessage, ProviderError | None]:
        emit = self._services.bus.emit
        async for event in stream:
            match event:
                case StreamStart():
                    pass
                case BlockStart() | BlockDelta() | BlockEnd():
                    emit(AssistantDelta(live_id, event))
                case StreamDone(message):
                    return message, None
                case StreamError(message, error):
                    return message, error
                case _:
                    assert_never(event)
        error = ProviderError(
            "The answer ended without an end event", kind=ErrorKind.TRANSPORT, retryable=True
        )
        return replace(stream.partial(), stop_reason=StopReason.ERROR, error_message=str(error)), error

    def _store(self, message: AssistantMessage, live_id: str | None) -> str:
        if not message.timestamp_ms:
            message = replace(message, timestamp_ms=self._services.clock.now_ms())
        self.message = message
        self._open_calls = tool_calls_of(message)
        entry = self._services.history.append_message(message, live_id=live_id)
        self._stored_id = entry.id
        self._services.meter.refresh()
        return entry.id

    def _take_open_calls(self) -> tuple[ToolCallBlock, ...]:
        """The calls of the newest answer that nobody answers yet; the caller will."""
        calls, self._open_calls = self._open_calls, ()
        return calls

    def _accept(self, prompts: Sequence[QueuedMessage], hooks: TurnHooks) -> None:
        for prompt in prompts:
            self._services.history.append_message(self._user_message(prompt))
            hooks.prompted(prompt.submission)

    def _user_message(self, prompt: QueuedMessage) -> UserMessage:
        now_ms = self._services.clock.now_ms()
        if not prompt.images:
            return UserMessage(prompt.text, timestamp_ms=now_ms)
        return UserMessage((TextBlock(prompt.text), *prompt.images), timestamp_ms=now_ms)

    def report(self) -> None:
        """Tells why the turn failed, if it did."""
        if self.failure is None:
            return
        self.error = explain(self.failure, self._services.gateway.require_model())
        self._services.bus.emit(Notice("error", self.error, "provider", detail=str(self.failure)))

    def _out_of_budget(self, text: str) -> Stop:
        self._services.bus.emit(Notice("warning", text, "budget"))
        return "budget"


async def _close(stream: AssistantStream) -> None:
    """Gives the connection back; a stream that hangs here is left to the garbage collector."""
    try:
        async with asyncio.timeout(CLOSE_WITHIN_S):
            await stream.aclose()
    except TimeoutError:
        _LOG.warning("a cancelled request did not close within %s s", CLOSE_WITHIN_S)


def _turn_ended(stored: Sequence[MessageEntry]) -> TurnEnded:
    """The end of a step that stored these entries: its last answer and the results behind it."""
    answer_id: str | None = None
    result_ids: list[str] = []
    for entry in stored:
        if isinstance(entry.message, AssistantMessage):
            answer_id, result_ids = entry.id, []
        elif isinstance(entry.message, ToolResultMessage):
            result_ids.append(entry.id)
    return TurnEnded(answer_id, tuple(result_ids))


def _interrupted_message(model: Model) -> AssistantMessage:
    return AssistantMessage(
        content=(),
        api=model.api,
        provider=model.provider,
        model=model.id,
        stop_reason=StopReason.ABORTED,
        error_message=INTERRUPTED,
    )


def _failed_message(model: Model, error: ProviderError) -> AssistantMessage:
    return AssistantMessage(
        content=(),
        api=model.api,
        provider=model.provider,
        model=model.id,
        stop_reason=StopReason.ERROR,
        error_message=str(error),
        error_status=error.status,
    )


def _retry_limits(services: Services) -> RetryLimits:
    retry = services.settings.retry
    return RetryLimits(
        enabled=retry.enabled,
        max_retries=retry.max_retries,
        base_delay_s=retry.base_delay_ms / 1000,
        max_delay_s=retry.max_delay_ms / 1000,
    )
