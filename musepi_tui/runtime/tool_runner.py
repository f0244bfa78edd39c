"""Runs the tool calls of one answer: checks, asks, orders, limits, stores results in call order (tui 7)."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

from musepi_tui.base.clock import Clock
from musepi_tui.base.errors import ToolError
from musepi_tui.runtime.approvals import Approvals, Question
from musepi_tui.runtime.call_context import CallContext, ToolKit
from musepi_tui.runtime.events import Event, ToolEnded, ToolStarted
from musepi_tui.runtime.history import History
from musepi_tui.runtime.tasks import Children, cancel_once
from musepi_tui.session.messages import TextBlock, ToolCallBlock, ToolResultMessage
from musepi_tui.tools.approval.decide import CallToDecide, decide
from musepi_tui.tools.types import Effect, Tool, ToolOutcome, ToolView, view_to_json
from musepi_tui.tools.validate import parse_arguments

MAX_CALLS = 64
"""Calls of one answer that are run; the rest get an error result (safety 14)."""
STOP_WITHIN_S = 2.0
"""How long a cancelled tool may take to come back (TUI-7.6); its call is answered then in any case."""
ABORTED_TEXT = "aborted"
_LOG = logging.getLogger("musepi.tools")


@dataclass(frozen=True, slots=True)
class Round:
    """What the calls of one answer came to. ``stop``: the person denied one and stopped the turn;
    ``runaway``: the same call came too often in a row."""

    stop: bool = False
    runaway: bool = False


class RepeatGuard:
    """Counts equal calls in a row over a whole turn (contract 4.1)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._last = ""
        self._count = 0

    def count(self, call: ToolCallBlock) -> int:
        """How often this call came in a row, this one included."""
        key = f"{call.name} {json.dumps(call.arguments, sort_keys=True, default=str)}"
        self._count = self._count + 1 if key == self._last else 1
        self._last = key
        return self._count

    def warning(self, repeats: int) -> str | None:
        """What the model is told with the result, from the limit on."""
        if repeats < self._limit:
            return None
        return (
            f"[The same call with the same arguments was made {repeats} times in a row. "
            f"Its result will not change; try something else. After {2 * self._limit} times the turn ends.]"
        )

    def is_runaway(self, repeats: int) -> bool:
        """Whether the turn ends here."""
        return repeats >= 2 * self._limit


@dataclass(slots=True)
class _Slot:
    """One call on its way. ``state`` ``waiting`` until it runs, ``running``, then ``done`` with an
    outcome."""

    call: ToolCallBlock
    tool: Tool | None
    repeats: int
    state: Literal["waiting", "running", "done"] = "waiting"
    outcome: ToolOutcome | None = None
    stop: bool = False
    started_at: float = 0.0
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def effect(self) -> Effect:
        """What it may change; an unknown tool changes nothing, as it never runs."""
        return Effect.READ if self.tool is None else self.tool.effect


class ToolRunner:
    """Runs calls for one session. ``policy`` answers with the rules and mode that hold now."""

    def __init__(
        self, kit: ToolKit, history: History, approvals: Approvals, children: Children, clock: Clock
    ) -> None:
        self._kit = kit
        self._history = history
        self._approvals = approvals
        self._children = children
        self._clock = clock

    async def run(
        self, calls: Sequence[ToolCallBlock], repeats: RepeatGuard, limit_note: str | None
    ) -> Round:
        """Every call gets exactly one result, stored in call order, also when the turn is cancelled.

        ``limit_note``: the answer was cut off, so no call is run and each gets this text.
        """
        slots = [_Slot(call, self._kit.tools.get(call.name), repeats.count(call)) for call in calls]
        storing = _Storing(slots, self._store, repeats)
        tasks: list[asyncio.Task[None]] = []

        def step_done(slot: _Slot) -> None:
            storing.advance()
            if slot.stop:
                # The person stopped the turn with this call: nobody is asked about the others any more.
                for task in tasks:
                    cancel_once(task)

        for index, slot in enumerate(slots):
            refusal = limit_note or _too_many(index)
            if refusal is not None:
                self._finish(slot, _failure(refusal))
            else:
                tasks.append(self._start(slot, slots[:index], step_done))
        try:
            await self._children.wait_all(tasks)
        except asyncio.CancelledError:
            await self._abort(tasks, slots)
            storing.advance()
            raise
        storing.advance()
        return Round(
            stop=any(slot.stop for slot in slots),
            runaway=any(repeats.is_runaway(slot.repeats) for slot in slots),
        )

    def answer_unrun(self, calls: Sequence[ToolCallBlock], text: str) -> tuple[str, ...]:
        """Stores an error result for calls that will never run, so that every call has its result; their
        ids."""
        return tuple(self._store(call, _failure(text)) for call in calls)

    def _start(
        self, slot: _Slot, earlier: Sequence[_Slot], done: Callable[[_Slot], None]
    ) -> "asyncio.Task[None]":
        async def work() -> None:
            try:
                outcome = await self._outcome(slot, earlier)
            except asyncio.CancelledError:
                self._finish(slot, _failure(ABORTED_TEXT))
                raise
            self._finish(slot, outcome)
            done(slot)

        return self._children.start(f"tool {slot.call.name}", work())

    async def _abort(self, tasks: Sequence["asyncio.Task[None]"], slots: Sequence[_Slot]) -> None:
        for task in tasks:
            cancel_once(task)
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_WITHIN_S)
        for slot in slots:
            if slot.state != "done":
                self._finish(slot, _failure(ABORTED_TEXT))

    async def _outcome(self, slot: _Slot, earlier: Sequence[_Slot]) -> ToolOutcome:
        """The outcome of one call; every failure is one, too (the tool border)."""
        try:
            return await self._checked(slot, earlier)
        except ToolError as error:
            return _failure(str(error))
        except Exception as error:  # noqa: BLE001 - the tool runner is one of the three borders
            _LOG.exception("tool %s failed", slot.call.name)
            return _failure(f"{slot.call.name} failed unexpectedly: {type(error).__name__}: {error}")

    async def _checked(self, slot: _Slot, earlier: Sequence[_Slot]) -> ToolOutcome:
        call, tool = slot.call, slot.tool
        if tool is None:
            names = ", ".join(self._kit.tools.names)
            raise ToolError(f'There is no tool "{call.name}". The tools are: {names}.')
        if call.parse_error is not None:
            raise ToolError(f"The arguments of {call.name} are not a JSON object: {call.parse_error}")
        arguments, note = parse_arguments(tool, call.arguments)
        refusal = await self._ask_if_needed(slot, tool, earlier)
        if refusal is not None:
            return _failure(refusal)
        for other in earlier:
            if _has_to_wait(slot, other):
                await other.finished.wait()
        outcome = await self._run(slot, tool, arguments)
        return outcome if note is None else _with_text(outcome, f"{outcome.text}\n\n[{note}]")

    async def _ask_if_needed(self, slot: _Slot, tool: Tool, earlier: Sequence[_Slot]) -> str | None:
        """The error text for the model when the call may not run, else None."""
        call = slot.call
        asked = CallToDecide(call.name, tool.effect, call.arguments)
        # In a thread: resolving a path that does not exist may look through the whole project.
        decision = await asyncio.to_thread(decide, asked, self._kit.policy(), self._kit.workspace)
        if earlier:
            await earlier[-1].decided.wait()  # threads end in any order; people see calls in theirs
        slot.decided.set()
        if decision.kind == "allow":
            return None
        if decision.kind == "deny":
            return f"not allowed: {decision.reason}"
        question = Question(
            call.id, call.name, call.arguments, decision.reason, decision.rule, tool.preview(call.arguments)
        )
        verdict = await self._approvals.ask(question)
        slot.stop = verdict.stop
        return verdict.refusal

    async def _run(self, slot: _Slot, tool: Tool, arguments: BaseModel) -> ToolOutcome:
        call = slot.call
        slot.state, slot.started_at = "running", self._clock.monotonic()
        self._kit.emit(ToolStarted(call.id, call.name, call.arguments, tool.preview(call.arguments)))
        context = CallContext(call.id, self._kit, self._clock)
        try:
            return await tool.run(arguments, context)
        finally:
            context.close()

    def _finish(self, slot: _Slot, outcome: ToolOutcome) -> None:
        if slot.state == "done":
            return
        was_running = slot.state == "running"
        slot.state, slot.outcome = "done", outcome
        slot.decided.set()
        slot.finished.set()
        if was_running:
            duration_ms = round((self._clock.monotonic() - slot.started_at) * 1000)
            self._kit.emit(_ended(slot, outcome, duration_ms))

    def _store(self, call: ToolCallBlock, outcome: ToolOutcome) -> str:
        details: dict[str, Any] = dict(outcome.details)
        if outcome.view is not None:
            details["view"] = view_to_json(outcome.view)
        message = ToolResultMessage(
            tool_call_id=call.id,
            tool_name=call.name,
            content=(TextBlock(outcome.text), *outcome.images),
            is_error=outcome.is_error,
            details=details or None,
            useless=outcome.useless and not outcome.is_error,
            timestamp_ms=self._clock.now_ms(),
        )
        return self._history.append_message(message).id


@dataclass(slots=True)
class _Storing:
    """Stores finished calls as far as all calls before them are finished, too."""

    slots: Sequence[_Slot]
    store: Callable[[ToolCallBlock, ToolOutcome], str]
    repeats: RepeatGuard
    stored: int = 0

    def advance(self) -> None:
        """Stores what can be stored now."""
        while self.stored < len(self.slots):
            slot = self.slots[self.stored]
            if slot.outcome is None:
                return
            warning = self.repeats.warning(slot.repeats)
            outcome = (
                slot.outcome
                if warning is None
                else _with_text(slot.outcome, f"{slot.outcome.text}\n\n{warning}")
            )
            self.stored += 1
            self.store(slot.call, outcome)


def _has_to_wait(slot: _Slot, earlier: _Slot) -> bool:
    """Whether a call may only run once an earlier one of the same answer is over.

    Reads run side by side and writes to different paths too; a command runs alone.
    """
    effects = {slot.effect, earlier.effect}
    if effects == {Effect.READ}:
        return False
    if effects == {Effect.WRITE}:
        return _path_of(slot.call.arguments) == _path_of(earlier.call.arguments)
    return True


def _path_of(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("path", "")).removeprefix("@").removeprefix("./")


def _too_many(index: int) -> str | None:
    if index < MAX_CALLS:
        return None
    return f"Not run: one answer may hold at most {MAX_CALLS} tool calls. Ask for the rest in the next one."


def _failure(text: str) -> ToolOutcome:
    return ToolOutcome(text, is_error=True)


def _with_text(outcome: ToolOutcome, text: str) -> ToolOutcome:
    return ToolOutcome(text, outcome.images, outcome.is_error, outcome.useless, outcome.details, outcome.view)


def _ended(slot: _Slot, outcome: ToolOutcome, duration_ms: int) -> Event:
    view = outcome.view
    if view is None:
        view = slot.tool.preview(slot.call.arguments) if slot.tool else ToolView("text", slot.call.name)
    return ToolEnded(slot.call.id, slot.call.name, outcome.text, view, outcome.is_error, duration_ms)
