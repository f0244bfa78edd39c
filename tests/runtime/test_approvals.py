import asyncio

import pytest

from musepi_tui.runtime.approvals import Approvals, Question, Verdict
from musepi_tui.runtime.events import ApprovalAsked, ApprovalClosed
from musepi_tui.tools.types import ToolView

VIEW = ToolView("text", "bash")


def question(rule: str | None = "bash(make *)") -> Question:
    return Question("call-1", "bash", {"command": "make x"}, "bash runs commands", rule, VIEW)


def approvals(*, interactive: bool = True, timeout_s: float | None = None):
    told: list[object] = []
    return Approvals(told.append, interactive=interactive, timeout_s=timeout_s), told


async def ask(door: Approvals, asked: Question) -> "asyncio.Task[Verdict]":
    waiting = asyncio.ensure_future(door.ask(asked))
    await asyncio.sleep(0)
    return waiting


async def test_a_question_is_told_and_waits_for_its_answer():
    door, told = approvals()
    waiting = await ask(door, question())
    request_id = told[0].request_id
    assert told == [
        ApprovalAsked(
            request_id, "call-1", "bash", {"command": "make x"}, "bash runs commands", "bash(make *)", VIEW
        )
    ]
    assert not waiting.done()
    assert door.answer(request_id, "allow", None) is None
    assert await waiting == Verdict()
    assert told[1:] == [ApprovalClosed(request_id, "allow", "")]
    assert door.grants == ()


async def test_allow_session_grants_the_rule_that_was_shown():
    door, told = approvals()
    waiting = await ask(door, question())
    assert door.answer(told[0].request_id, "allow_session", None) is None
    assert (await waiting).refusal is None
    assert door.grants == ("bash(make *)",)


async def test_other_open_questions_for_the_same_rule_are_allowed_with_it():
    door, told = approvals()
    first, second = await ask(door, question()), await ask(door, question())
    door.answer(told[0].request_id, "allow_session", None)
    async with asyncio.timeout(1):
        assert (await first, await second) == (Verdict(), Verdict())
    assert [event.decision for event in told[2:]] == ["allow_session", "allow_session"]


async def test_allow_session_is_refused_when_no_rule_was_offered():
    door, told = approvals()
    waiting = await ask(door, question(rule=None))
    assert door.answer(told[0].request_id, "allow_session", None) is not None
    assert not waiting.done()
    waiting.cancel()


@pytest.mark.parametrize(
    ("decision", "stop"), [pytest.param("deny", False), pytest.param("deny_and_stop", True)]
)
async def test_a_denial_gives_the_model_the_reason(decision, stop):
    door, told = approvals()
    waiting = await ask(door, question())
    door.answer(told[0].request_id, decision, "not now")
    verdict = await waiting
    assert verdict.stop is stop
    assert "not now" in (verdict.refusal or "")
    assert told[1] == ApprovalClosed(told[0].request_id, "deny", "not now")


async def test_an_unknown_or_used_id_is_an_error():
    door, told = approvals()
    waiting = await ask(door, question())
    door.answer(told[0].request_id, "allow", None)
    await waiting
    assert door.answer(told[0].request_id, "allow", None) is not None
    assert door.answer("approval-99", "allow", None) is not None


async def test_nobody_to_ask_denies_at_once_and_counts():
    door, told = approvals(interactive=False)
    verdict = await door.ask(question())
    assert verdict.refusal == (
        "needs approval and nobody can give it: bash runs commands. "
        "Allow it with --set 'permissions.allow=[\"bash(make *)\"]' or --approval-mode."
    )
    asked, closed = told
    assert door.withheld == 1
    assert (closed.request_id, closed.decision, closed.reason) == (asked.request_id, "deny", verdict.refusal)


async def test_no_answer_in_time_is_a_denial():
    door, told = approvals(timeout_s=0.01)
    verdict = await door.ask(question())
    assert "nobody can give it" in (verdict.refusal or "")
    assert told[1].decision == "deny"
    assert door.answer(told[0].request_id, "allow", None) is not None


async def test_a_cancelled_question_is_closed():
    door, told = approvals()
    waiting = await ask(door, question())
    waiting.cancel()
    await asyncio.wait([waiting])
    assert [type(event) for event in told] == [ApprovalAsked, ApprovalClosed]
