from dataclasses import replace

import pytest

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.compat import compat_of
from musepi_tui.providers.retry import limits_of, over_cap, request_delay_s, shrunk_request
from musepi_tui.providers.types import Model, Request, Timeouts

REMOTE = Model("x", "m", "openai-completions", "https://x.example/v1")
LOCAL = Model("x", "m", "openai-completions", "http://127.0.0.1:7777/v1")
DEEPSEEK = Model("deepseek", "m", "openai-completions", "https://api.deepseek.com")


@pytest.mark.parametrize(
    ("model", "timeouts", "expected"),
    [
        (REMOTE, Timeouts(), (10, 100, 120)),
        (LOCAL, Timeouts(), (2, 300, 300)),
        (DEEPSEEK, Timeouts(), (10, 300, 300)),
        (DEEPSEEK, Timeouts(idle_s=7), (10, 100, 7)),
        (LOCAL, Timeouts(1, 2, 3), (1, 2, 3)),
        (LOCAL, Timeouts(0, 0, 0), (0, 0, 0)),
        (replace(REMOTE, compat={"idleTimeoutMs": 5000}), Timeouts(idle_s=7), (10, 100, 5)),
        (replace(REMOTE, compat={"idleTimeoutMs": 600_000}), Timeouts(), (10, 600, 600)),
        (replace(REMOTE, compat={"idleTimeoutMs": 0}), Timeouts(), (10, 100, 0)),
    ],
)
def test_time_limits_follow_the_row_then_the_person_then_the_vendor(model, timeouts, expected):
    found = limits_of(model, compat_of(model), timeouts)
    assert (found.connect_s, found.first_event_s, found.idle_s) == expected


@pytest.mark.parametrize(("attempt", "longest"), [(1, 0.5), (2, 1.0), (3, 2.0), (9, 8.0)])
def test_delay_doubles_up_to_its_limit(attempt, longest):
    delays = [request_delay_s(attempt, 0.5, None) for _ in range(50)]
    assert all(0.75 * longest <= delay <= longest for delay in delays)


def test_hint_is_waited_for_in_full():
    assert request_delay_s(1, 0.5, 7.5) == 7.5
    assert request_delay_s(5, 0.5, 0.0) >= 6


@pytest.mark.parametrize(
    ("hint", "cap", "refused"), [(61, 60, True), (60, 60, False), (900, 0, False), (None, 60, False)]
)
def test_wait_over_the_cap_is_refused(hint, cap, refused):
    error = ProviderError("x", kind=ErrorKind.RATE_LIMIT, retryable=True, retry_after_s=hint)
    assert (over_cap(error, cap) is not None) is refused


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("input length and `max_tokens` exceed context limit: 100 + 20000 > 20,050, decrease", 18_926),
        ("input length and `max_tokens` exceed context limit: 20000 + 20000 > 21000", None),
        ("prompt is too long", None),
    ],
)
def test_limit_shrinks_when_only_the_sum_is_too_long(text, expected):
    error = ProviderError(text, kind=ErrorKind.OVERFLOW)
    found = shrunk_request(error, Request("", ()))
    assert (found and found.max_tokens) == expected
