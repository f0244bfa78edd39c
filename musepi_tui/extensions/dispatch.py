"""Calls the handlers of extensions: in order, bounded in time, every failure contained (SAF-121)."""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from musepi_tui.extensions.api import Context, Handler, Host
from musepi_tui.extensions.points import LIMITS_S, USUAL_LIMIT_S, Hook, Payload, Result, read_result

FAILURES_IN_A_ROW = 3
"""After so many failures without a success a handler is not called any more in this session (SAF-121)."""

_LOG = logging.getLogger("musepi.extensions")


@dataclass(slots=True)
class Registration:
    """A handler of an extension and how it has fared."""

    extension: str
    hook: Hook
    handler: Handler
    failures: int = 0

    @property
    def is_off(self) -> bool:
        """Whether it failed too often."""
        return self.failures >= FAILURES_IN_A_ROW


@dataclass(frozen=True, slots=True)
class Failure:
    """A handler that failed: which, where, and a line about it. ``switched_off``: it is not called again."""

    extension: str
    event: str
    error: str
    switched_off: bool = False


@dataclass(slots=True)
class Dispatcher:
    """All handlers in the order they were registered. ``report`` is told every failure."""

    host: Host
    report: Callable[[Failure], None]
    registrations: list[Registration] = field(default_factory=list[Registration])

    def register(self, extension: str, hook: Hook, handler: Handler) -> None:
        """Adds a handler behind all others."""
        self.registrations.append(Registration(extension, hook, handler))

    def listens(self, hook: Hook) -> bool:
        """Whether anybody would be called; lets the caller save the work of a payload."""
        return any(each.hook is hook and not each.is_off for each in self.registrations)

    async def answers(self, hook: Hook, payload: Payload) -> AsyncIterator[tuple[str, Result]]:
        """The extension and its answer, one after the other; who reads may stop at any of them.

        A handler that raises, takes too long or answers with something unusable is reported and passed over.
        Raises only ``CancelledError``.
        """
        for registration in [each for each in self.registrations if each.hook is hook]:
            if registration.is_off:
                continue
            result = await self._call(registration, payload)
            if result is not None:
                yield registration.extension, result

    async def tell(self, hook: Hook, payload: Payload) -> None:
        """Calls all handlers; their answers are ignored."""
        async for _ in self.answers(hook, payload):
            pass

    async def _call(self, registration: Registration, payload: Payload) -> Result | None:
        hook = registration.hook
        limit_s = LIMITS_S.get(hook, USUAL_LIMIT_S)
        context = Context(registration.extension, self.host)
        try:
            async with asyncio.timeout(limit_s):
                answer = await _run(registration.handler, payload, context)
            result = read_result(hook, answer)
        except TimeoutError as error:
            self._failed(registration, error, f"took more than {limit_s:g} s")
        except (SystemExit, Exception) as error:  # noqa: BLE001 - extension dispatch is one of the three borders
            self._failed(registration, error, f"{type(error).__name__}: {error}")
        else:
            registration.failures = 0
            return result
        return None

    def _failed(self, registration: Registration, error: BaseException, text: str) -> None:
        registration.failures += 1
        event = registration.hook.value
        _LOG.error("extension %s failed at %s", registration.extension, event, exc_info=error)
        self.report(Failure(registration.extension, event, text, switched_off=registration.is_off))


async def _run(handler: Handler, payload: Payload, context: Context) -> object:
    if inspect.iscoroutinefunction(handler):
        return await handler(payload, context)
    answer = await asyncio.to_thread(handler, payload, context)
    # A callable object or a wrapped coroutine function shows only now what it is.
    return await answer if inspect.isawaitable(answer) else answer
