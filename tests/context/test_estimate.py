import pytest

from musepi_tui.context.estimate import Estimator, estimate_tokens, stored_estimate
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
