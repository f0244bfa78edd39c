import pytest

from musepi_tui.context.estimate import SPARE_COUNTS, Estimator, estimate_tokens, stored_estimate
from musepi_tui.session.messages import (
    BashExecution,
    BranchSummary,
    CompactionSummary,
    FileMention,
    ImageBlock,
    ThinkingBlock,
    UnknownMessage,
)
from tests.support.builders import PIXEL, a, call, dev, stub_count, t, u

IMAGE = ImageBlock(PIXEL, "image/png")


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (u("12345678"), 2),
        (u("1234", images=2), 1 + 2400),
        (dev("123456789"), 3),
        (t("1234"), 1),
        (a("1234", thinking="12345678"), 3),
        (a("", [call("read", path="a.py")]), 1 + 4),
        (BashExecution("ls -l", "12345678"), 2 + 2),
        (BranchSummary("1234"), 1),
        (CompactionSummary("1234", images=(IMAGE,)), 1 + 5024),
        (FileMention(({"path": "a.py", "content": "12345678"},)), 1 + 2),
        (UnknownMessage("odd", {"text": "12345678"}), 0),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, int) else str(value),
)
def test_estimate_counts_what_the_role_sends(message, tokens):
    assert estimate_tokens(message, stub_count) == tokens


def test_estimate_leaves_out_signatures_when_asked():
    signed = a("1234")
    signed = type(signed)(**{**_fields(signed), "content": (*signed.content, ThinkingBlock("", "s" * 40))})
    assert estimate_tokens(signed, stub_count) == 11
    assert estimate_tokens(signed, stub_count, exclude_encrypted=True) == 1


def test_estimator_counts_a_message_object_once():
    counted = []
    estimate = Estimator(lambda text: counted.append(text) or len(text))
    message = u("hello")
    assert estimate(message) == estimate(message) == 5
    assert counted == ["hello"]


def test_estimator_counts_again_what_it_did_not_retain():
    counted = []
    estimate = Estimator(lambda text: counted.append(text) or len(text))
    kept, gone = u("kept"), u("gone")
    estimate(kept), estimate(gone)
    estimate.retain([kept])
    estimate(kept), estimate(gone)
    assert counted == ["kept", "gone", "gone"]


def test_stored_estimate_adds_everything_else_of_the_request():
    assert stored_estimate([u("1234"), a("12345678")], Estimator(stub_count), 100) == 103


def _fields(message):
    return {name: getattr(message, name) for name in type(message).__dataclass_fields__}


def counting():
    """An estimator, and the texts it counted so far."""
    counted = []

    def count(text):
        counted.append(text)
        return stub_count(text)

    return Estimator(count), counted


def test_total_goes_on_from_the_messages_it_knows():
    messages = (u("1234"), u("12345678"), dev("1234"))
    estimator, counted = counting()
    assert [estimator.total(messages[:2]), estimator.total(messages)] == [3, 4]
    assert estimator.total((messages[0], u("1234"), messages[2])) == 3
    assert estimator.total(messages[:1]) == 1
    assert estimator.total(()) == 0
    assert len(counted) == 4


def test_trim_waits_until_there_is_much_to_forget():
    kept = u("1234")
    estimator, counted = counting()
    for gone in [kept, *(u(f"{number:04}") for number in range(100))]:
        estimator(gone)
    estimator.trim((kept,))
    many = [u(f"{number:04}") for number in range(SPARE_COUNTS)]
    for gone in many:
        estimator(gone)
    estimator.trim((kept,))
    before = len(counted)
    estimator(kept)
    assert len(counted) == before
    estimator(many[0])
    assert len(counted) == before + 1
