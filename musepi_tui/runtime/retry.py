"""Turn-level retry: which failures, how long to wait (providers 7.3, 7.5)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import TracebackType

from musepi_tui.base.clock import Clock
from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.runtime.events import Event, RetryEnded, RetryScheduled
from musepi_tui.runtime.tasks import CancelKind, CancelStack, cancel_once

_NEVER = frozenset(
    {
        ErrorKind.OVERFLOW,
        ErrorKind.PAYLOAD,
        ErrorKind.ABORTED,
        ErrorKind.AUTH,
        ErrorKind.QUOTA,
        ErrorKind.REFUSAL,
    }
)
"""Kinds that another try cannot help, whatever a header says (providers 7.1)."""

TRIES_FOR_UNREACHED = 2
"""Tries for a server that cannot be reached and never answered: its address is probably wrong, and with all
ten tries the line that says so would come after six minutes."""
_UNREACHED = frozenset({"refused", "dns"})


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """The settings ``retry.*``, delays in seconds."""

    enabled: bool = True
    max_retries: int = 10
    base_delay_s: float = 2.0
    max_delay_s: float = 60.0


def delay_before(attempt: int, limits: RetryLimits, hint_s: float | None) -> float:
    """Seconds to wait before retry ``attempt`` (1 is the first): doubling, at least the server's hint."""
    doubled = limits.base_delay_s * 2.0 ** min(attempt - 1, 30)
    return max(min(doubled, limits.max_delay_s), hint_s or 0.0)


def is_retryable(error: ProviderError, limits: RetryLimits) -> bool:
    """Whether the same request is sent again after this failure."""
    return limits.enabled and error.retryable and error.kind not in _NEVER


class RetryWait:
    """The retries of one request: counts, announces, waits; Esc ends the wait.

    For a ``with`` block: tries that the block breaks off, by a cancel for one, get their end too.
    """

    def __init__(
        self,
        limits: RetryLimits,
        clock: Clock,
        emit: Callable[[Event], None],
        cancels: CancelStack,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._emit = emit
        self._cancels = cancels
        self._attempt = 0

    def __enter__(self) -> "RetryWait":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._finish(success=False, error="Retry cancelled")

    def allows(self, error: ProviderError, *, has_answered: bool) -> bool:
        """Whether another try follows this failure: it may help, and not all tries are used.

        ``has_answered``: the server did so before, in this conversation.
        """
        most = self._limits.max_retries
        if error.cause in _UNREACHED and not has_answered:
            most = min(most, TRIES_FOR_UNREACHED)
        return is_retryable(error, self._limits) and self._attempt < most

    async def before_next(self, error: ProviderError) -> None:
        """Announces the next try and waits for it.

        Raises ``CancelledError`` when the wait was cancelled, by Esc or with the turn.
        """
        self._attempt += 1
        delay_s = delay_before(self._attempt, self._limits, error.retry_after_s)
        self._emit(RetryScheduled(self._attempt, self._limits.max_retries, delay_s, str(error)))
        await self._sleep(delay_s)

    def succeeded(self) -> None:
        """The answer came."""
        self._finish(success=True, error=None)

    def failed(self, error: ProviderError) -> None:
        """No further try is made."""
        self._finish(success=False, error=str(error))

    def _finish(self, *, success: bool, error: str | None) -> None:
        if self._attempt:
            self._emit(RetryEnded(success, self._attempt, error))
        self._attempt = 0

    async def _sleep(self, delay_s: float) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a retry waits inside a task")
        with self._cancels.pushed(CancelKind.RETRY, partial(cancel_once, task)):
            await self._clock.sleep(delay_s)
