import pytest

from musepi_tui.providers.hints import find_delay_hint

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, "", 1.5),
        ({"retry-after": "2.5"}, "", 2.5),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, "", 30.0),
        ({"retry-after": "-4"}, "", 0.0),
        ({"retry-after": "soon"}, "try again in 12s", 12.0),
        ({"x-ratelimit-reset-after": "7"}, "", 7.0),
        ({"x-ratelimit-reset-ms": "800"}, "", 0.8),
        ({"x-ratelimit-reset": "1800000020"}, "", 20.0),
        ({"x-ratelimit-reset": "1800000020000"}, "", 20.0),
        ({"x-ratelimit-reset": "20"}, "", 20.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m2s"}, "", 62.0),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "1m2s"}, "", None),
        (
            {
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:40Z",
                "anthropic-ratelimit-requests-remaining": "5",
                "anthropic-ratelimit-requests-reset": "2027-01-15T09:00:00Z",
            },
            "",
            40.0,
        ),
        ({}, '{"retryDelay": "34.07s"}', 34.07),
        ({}, "Please retry in 250ms.", 0.25),
        ({}, "Please try again in 5 min", 300.0),
        ({}, "Limit reached, try again in 2h", 7200.0),
        ({}, "Your quota will reset after 1h2m3s.", 3723.0),
        ({}, "nothing of that kind", None),
        ({}, "", None),
    ],
)
def test_hint_is_found(headers, body, expected):
    found = find_delay_hint(headers, body, now_s=NOW)
    assert found == (expected if expected is None else pytest.approx(expected))
