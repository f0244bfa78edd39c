import asyncio

import pytest

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.runtime.events import RetryEnded, RetryScheduled
from musepi_tui.runtime.retry import RetryLimits, RetryWait, delay_before, is_retryable
from musepi_tui.runtime.tasks import CancelKind, CancelStack
from tests.support.clock import FakeClock

LIMITS = RetryLimits()


def failure(kind: ErrorKind = ErrorKind.SERVER, *, hint_s: float | None = None, retryable: bool = True):
    return ProviderError("overloaded", kind=kind, retry_after_s=hint_s, retryable=retryable)


def test_delays_double_up_to_the_longest():
    assert [delay_before(attempt, LIMITS, None) for attempt in range(1, 8)] == [2, 4, 8, 16, 32, 60, 60]


@pytest.mark.parametrize(
    ("hint_s", "expected"),
    [
        pytest.param(0.5, 2, id="shorter hint"),
        pytest.param(12.0, 12, id="longer hint"),
        pytest.param(None, 2, id="no hint"),
    ],
)
def test_a_hint_only_lengthens_the_delay(hint_s, expected):
    assert delay_before(1, LIMITS, hint_s) == expected


@pytest.mark.parametrize(
    ("error", "limits", "expected"),
    [
        pytest.param(failure(), LIMITS, True, id="server"),
        pytest.param(failure(retryable=False), LIMITS, False, id="deterministic"),
        pytest.param(failure(ErrorKind.OVERFLOW), LIMITS, False, id="overflow"),
        pytest.param(failure(ErrorKind.AUTH), LIMITS, False, id="auth"),
        pytest.param(failure(ErrorKind.QUOTA), LIMITS, False, id="quota"),
        pytest.param(failure(ErrorKind.REFUSAL), LIMITS, False, id="refusal"),
        pytest.param(failure(), RetryLimits(enabled=False), False, id="switched off"),
    ],
)
def test_what_is_retried(error, limits, expected):
    assert is_retryable(error, limits) is expected


async def test_tries_are_announced_and_end_once():
    told: list[object] = []
    clock = FakeClock()
    wait = RetryWait(RetryLimits(max_retries=2), clock, told.append, CancelStack())
    for _ in range(2):
        assert wait.allows(failure(), has_answered=True)
        await wait.before_next(failure())
    assert not wait.allows(failure(), has_answered=True)
    wait.failed(failure())
    assert clock.slept == [2, 4]
    assert told == [
        RetryScheduled(1, 2, 2.0, "overloaded"),
        RetryScheduled(2, 2, 4.0, "overloaded"),
        RetryEnded(success=False, attempt=2, error="overloaded"),
    ]


async def test_nothing_is_announced_when_the_first_answer_came():
    told: list[object] = []
    RetryWait(LIMITS, FakeClock(), told.append, CancelStack()).succeeded()
    assert told == []


async def test_esc_ends_the_wait():
    told: list[object] = []
    cancels = CancelStack()
    clock = FakeClock()
    clock.hold()

    async def wait():
        with RetryWait(LIMITS, clock, told.append, cancels) as retries:
            await retries.before_next(failure())

    waiting = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    assert cancels.cancel_first() is CancelKind.RETRY
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert told[-1] == RetryEnded(success=False, attempt=1, error="Retry cancelled")
