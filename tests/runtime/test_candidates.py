import pytest

from musepi_tui.base.errors import EmptySummaryError, ErrorKind, ProviderError
from musepi_tui.providers.types import ThinkingLevel
from musepi_tui.runtime.candidates import (
    Candidate,
    Switch,
    Wait,
    after_failure,
    configured_names,
    find_chain,
    next_action,
)
from musepi_tui.settings.schema import ModelRoles, RetrySettings
from tests.support.fake_gateway import FakeGateway, model

CURRENT = model("current", compaction_target="test/target")
TARGET, SMALL, HUGE = (
    model("target"),
    model("small"),
    model("huge", provider="other", context_window=2_000_000),
)
RETRY = RetrySettings()
SECOND = Candidate(SMALL, None, 200_000)


def chain(configured=None, *, override=None, rows=(CURRENT, TARGET, SMALL, HUGE), roles=None):
    return find_chain(configured, override, roles or ModelRoles(small="test/small"), FakeGateway(*rows))


def keys(found):
    return [candidate.model.key for candidate in found.candidates]


def failure(kind, **fields):
    cause = fields.pop("cause", None)
    error = ProviderError("x", kind=kind, **fields)
    error.cause = cause
    return error


def test_chain_goes_from_configured_to_current_to_roles_to_the_largest():
    assert keys(chain("other/huge:low, small")) == ["other/huge", "test/small", "test/target", "test/current"]
    assert keys(chain()) == ["test/target", "test/current", "test/small", "other/huge"]


def test_the_largest_model_nobody_named_comes_last():
    rows = (CURRENT, TARGET, SMALL, HUGE, model("spare", context_window=900_000))
    assert keys(chain("other/huge", rows=rows))[-1] == "test/spare"
    assert keys(chain(rows=(CURRENT, TARGET, SMALL))) == ["test/target", "test/current", "test/small"]


def test_the_demo_is_no_fallback():
    rows = (CURRENT, model("demo", provider="demo", source="demo", context_window=9_000_000))
    assert keys(chain(rows=rows)) == ["test/current"]


@pytest.mark.parametrize(
    ("configured", "key", "level"),
    [
        ("small", "test/small", ThinkingLevel.LOW),
        ("smol:high", "test/small", ThinkingLevel.HIGH),
        ("slow:off", "other/huge", ThinkingLevel.OFF),
        ("slow", "other/huge", None),
    ],
)
def test_a_role_stands_for_its_model_and_its_level_gives_way(configured, key, level):
    roles = ModelRoles(small="test/small:low", slow="other/huge")
    found = chain(configured, roles=roles).candidates[0]
    assert (found.model.key, found.thinking) == (key, level)


def test_a_role_without_a_model_is_unknown():
    assert chain("slow").unknown == ("slow",)


def test_an_endpoint_comes_first_and_stands_for_the_first_model():
    found = find_chain(
        "test/small", 9_000, ModelRoles(), FakeGateway(CURRENT, SMALL), "http://summaries.example/x"
    )
    endpoint = found.candidates[0]
    assert (endpoint.name, endpoint.model.key, endpoint.window) == ("summaries.example", "test/small", 9_000)
    assert keys(found)[1:] == ["test/small", "test/current"]


def test_after_a_failed_endpoint_the_same_provider_may_still_be_asked():
    endpoint = Candidate(CURRENT, None, None, "http://summaries.example/x")
    rest = (Candidate(CURRENT), SECOND)
    assert after_failure(endpoint, failure(ErrorKind.AUTH), rest) == rest


def test_chain_reports_configured_names_without_a_model_or_a_key():
    found = chain(("nobody/knows", "test/current"))
    assert found.unknown == ("nobody/knows",)
    assert keys(found)[0] == "test/current"


def test_chain_leaves_out_a_current_model_without_key():
    gateway = FakeGateway(CURRENT, SMALL)
    gateway.rows = [SMALL]
    assert keys(find_chain(None, None, ModelRoles(), gateway)) == ["test/small"]


def test_configured_level_and_window_are_kept():
    found = chain("test/small:high", override=50_000).candidates[0]
    assert (found.thinking, found.window) == (ThinkingLevel.HIGH, 50_000)


@pytest.mark.parametrize(
    ("configured", "names"), [(None, ()), ("a/b, c:low ,", ("a/b", "c:low")), (("a", " b "), ("a", "b"))]
)
def test_configured_names(configured, names):
    assert configured_names(configured) == names


@pytest.mark.parametrize(
    ("configured", "session", "reasons", "level"),
    [
        (None, ThinkingLevel.HIGH, True, ThinkingLevel.HIGH),
        (ThinkingLevel.LOW, ThinkingLevel.HIGH, True, ThinkingLevel.LOW),
        (None, ThinkingLevel.MAX, True, ThinkingLevel.HIGH),
        (None, ThinkingLevel.HIGH, False, ThinkingLevel.OFF),
        (None, ThinkingLevel.OFF, True, ThinkingLevel.OFF),
        (ThinkingLevel.OFF, ThinkingLevel.HIGH, True, ThinkingLevel.OFF),
    ],
)
def test_thinking_level_of_a_summary(configured, session, reasons, level):
    assert Candidate(model(reasoning=reasons), configured).level(session) is level


@pytest.mark.parametrize(
    ("error", "attempt", "rest", "expected"),
    [
        (failure(ErrorKind.SERVER), 0, (SECOND,), Wait(2.0)),
        (failure(ErrorKind.SERVER), 3, (SECOND,), Wait(16.0)),
        (failure(ErrorKind.OVERLOADED), 5, (SECOND,), Switch((SECOND,))),
        (failure(ErrorKind.OVERLOADED), 5, (), Wait(60.0)),
        (failure(ErrorKind.RATE_LIMIT, retry_after_s=45), 0, (SECOND,), Switch((SECOND,))),
        (failure(ErrorKind.RATE_LIMIT, retry_after_s=45), 0, (), Wait(45.0)),
        (failure(ErrorKind.SERVER), 10, (SECOND,), Switch((SECOND,))),
        (failure(ErrorKind.SERVER), 10, (), None),
        (failure(ErrorKind.TRANSPORT, cause="timeout"), 0, (SECOND,), Switch((SECOND,))),
        (failure(ErrorKind.TRANSPORT, cause="timeout"), 0, (), None),
        (failure(ErrorKind.AUTH), 0, (SECOND,), Switch((SECOND,))),
        (failure(ErrorKind.QUOTA, retry_after_s=5), 0, (SECOND,), Switch((SECOND,))),
        (failure(ErrorKind.REFUSAL), 0, (), None),
        (failure(ErrorKind.ABORTED), 0, (SECOND,), None),
        (EmptySummaryError("empty"), 0, (SECOND,), Switch((SECOND,))),
    ],
)
def test_what_follows_a_failure_of_an_automatic_pass(error, attempt, rest, expected):
    assert next_action(error, attempt, rest, RETRY, manual=False) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (failure(ErrorKind.AUTH), Switch((SECOND,))),
        (failure(ErrorKind.SERVER), None),
        (failure(ErrorKind.RATE_LIMIT, retry_after_s=1), None),
        (EmptySummaryError("empty"), None),
    ],
)
def test_a_manual_pass_moves_on_only_after_a_refused_key(error, expected):
    assert next_action(error, 0, (SECOND,), RETRY, manual=True) == expected


def test_nothing_is_repeated_when_retries_are_switched_off():
    assert next_action(failure(ErrorKind.SERVER), 0, (), RetrySettings(enabled=False), manual=False) is None


def test_a_refused_key_rules_out_the_whole_provider():
    rest = (SECOND, Candidate(HUGE, None, 2_000_000))
    assert after_failure(Candidate(CURRENT), failure(ErrorKind.AUTH), rest) == rest[1:]


def test_an_overflow_leaves_only_larger_windows():
    rest = (SECOND, Candidate(HUGE, None, 2_000_000), Candidate(TARGET, None, None))
    failed = Candidate(CURRENT, None, 200_000)
    assert after_failure(failed, failure(ErrorKind.OVERFLOW), rest) == rest[1:]
