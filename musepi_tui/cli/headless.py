"""What the doors without a screen share: signals, and a prompt followed to its end."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from musepi_tui.base.errors import UsageError
from musepi_tui.cli.tables import print_error
from musepi_tui.runtime.events import (
    AgentSettled,
    Event,
    ExtensionFailed,
    IntentSettled,
    Notice,
    SessionReady,
)
from musepi_tui.runtime.intents import Compact, Intent, SubmitPrompt
from musepi_tui.runtime.options import RuntimeOptions
from musepi_tui.runtime.session import SessionRuntime

T = TypeVar("T")

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def run_until_signal(main: Coroutine[Any, Any, int]) -> int:
    """Runs ``main`` to its end; its exit code, or 128 plus the number of the signal that ended it.

    The first signal cancels ``main``, which stores what it has; a second one ends the process at once.
    """
    return asyncio.run(_guard(main))


async def _guard(main: Coroutine[Any, Any, int]) -> int:
    task = asyncio.current_task()
    received: list[int] = []
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, _on_signal, number, received, task)
    try:
        return await main
    except asyncio.CancelledError:
        if not received or task is None:
            raise
        task.uncancel()
        return 128 + received[0]


def _on_signal(number: int, received: list[int], task: "asyncio.Task[Any] | None") -> None:
    if received or task is None:
        os._exit(128 + number)
    received.append(number)
    task.cancel()


async def with_runtime(
    options: RuntimeOptions, work: Callable[[SessionRuntime], Coroutine[Any, Any, T]]
) -> tuple[T, bool]:
    """What ``work`` returns, and whether entries could not be stored: that is told once all is closed, also
    when a signal ended the work."""
    opened: list[SessionRuntime] = []
    unsaved = False
    try:
        async with SessionRuntime.open(options) as runtime:
            opened.append(runtime)
            result = await work(runtime)
    finally:
        for runtime in opened:
            unsaved = tell_rescue(runtime)
    return result, unsaved


def intents_of(prompts: Sequence[str]) -> list[Intent]:
    """What the prompts ask for: ``/compact`` compacts, ``//text`` is the way to send ``/text``.

    Raises ``UsageError`` for any other command: as a prompt it would be paid for and do nothing.
    """
    return [_intent(prompt) for prompt in prompts]


async def follow_intents(runtime: SessionRuntime, intents: Sequence[Intent]) -> AsyncIterator[Event]:
    """Every event of the run, until the last intent is done.

    They are sent one after another, each when the one before has settled. What fails to start ends the run: a
    session that cannot be loaded, a prompt that is refused. A cancel closes the runtime, and what that stores
    and settles comes before the ``CancelledError``.
    """
    subscription = runtime.subscribe()
    runtime.begin()
    waiting = list(intents)
    current: tuple[str, Intent] | None = None
    try:
        async for event in subscription:
            yield event
            if not _ends_step(event, current):
                continue
            if not waiting or _failed(event):
                return
            intent = waiting.pop(0)
            current = (runtime.send(intent), intent)
    except asyncio.CancelledError:
        await runtime.close()
        for event in subscription.drain():
            yield event
        raise


def _ends_step(event: Event, current: tuple[str, Intent] | None) -> bool:
    """Whether what was sent last is over: a prompt when all is settled, anything else when its intent is."""
    match event:
        case SessionReady():
            return current is None
        case Notice(level="error", source="session"):
            return current is None
        case AgentSettled():
            return current is not None and isinstance(current[1], SubmitPrompt)
        case IntentSettled(intent_id=intent_id, ok=ok):
            mine = current is not None and intent_id == current[0]
            return mine and (not ok or not isinstance(current and current[1], SubmitPrompt))
        case _:
            return False


def _failed(event: Event) -> bool:
    return isinstance(event, Notice) or (isinstance(event, IntentSettled) and not event.ok)


def _intent(prompt: str) -> Intent:
    if not prompt.lstrip().startswith("/"):
        return SubmitPrompt(prompt)
    # Deferred: only where it may be a command. It loads every one of them.
    from musepi_tui.commands.registry import CommandRegistry, parse_call, prompt_text
    from musepi_tui.maintenance.modes import MODES

    call = parse_call(prompt.strip())
    if call is None or CommandRegistry.discover().find(call.name) is None:
        return SubmitPrompt(prompt_text(prompt))
    if call.name == "compact":
        return _compact_intent(call.args)
    raise UsageError(
        f"musepi: /{call.name} needs the screen. Without one, /compact [{'|'.join(MODES)}] [focus] works, "
        f"and //{call.name} sends the text as it is."
    )


def _compact_intent(args: str) -> Intent:
    # Deferred: only where it is asked for. The screen, which shares this module, starts without it.
    from musepi_tui.commands.builtin.compact import split_mode
    from musepi_tui.maintenance.modes import refuse_mode

    mode, focus = split_mode(args)
    refusal = refuse_mode(mode, focus)
    if refusal is not None:
        raise UsageError(f"musepi: {refusal}")
    return Compact(mode, focus)


def extension_line(failure: ExtensionFailed) -> str:
    """A handler that was passed over, as a line for a person."""
    text = f"extension {failure.extension} failed at {failure.event}: {failure.error}"
    return f"{text}; it is not called any more" if failure.switched_off else text


def tell_rescue(runtime: SessionRuntime) -> bool:
    """After closing: says where unsaved entries went. Whether there were any."""
    for path in runtime.rescue_files:
        print_error(f"session: not everything could be written; the rest is in {path}")
    if runtime.lost is not None:
        print_error(f"session: {runtime.lost}")
    return runtime.lost is not None or bool(runtime.rescue_files)
