import asyncio
from pathlib import Path

import pytest

from musepi_tui.base.errors import ErrorKind
from musepi_tui.runtime.events import (
    AgentEnded,
    AgentSettled,
    AgentStarted,
    ApprovalAsked,
    ApprovalClosed,
    AssistantDelta,
    AssistantEnded,
    AssistantStarted,
    EntryAppended,
    IntentSettled,
    Phase,
    PhaseChanged,
    RetryEnded,
    RetryScheduled,
    RuntimeFault,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from musepi_tui.runtime.intents import AnswerApproval, Cancel, Retry, SubmitPrompt, TakeQueue
from musepi_tui.session.messages import (
    AssistantMessage,
    StopReason,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from musepi_tui.storage.loading import load_session
from tests.support.builders import call
from tests.support.fake_provider import Bug, Hang, failure
from tests.support.harness import running

SHOWN = ("PhaseChanged", "UsageChanged", "AssistantDelta", "Notice", "ModelChanged")


def results(harness) -> list[ToolResultMessage]:
    return [message for message in harness.messages() if isinstance(message, ToolResultMessage)]


async def test_a_prompt_and_its_answer_are_told_in_order(scripted):
    _, options = scripted((ThinkingBlock("let me see"), "The answer."))
    async with running(options) as harness:
        before = await harness.prompt("a question")
    names = harness.names(before, without=(*SHOWN, "EntryAppended", "IntentSettled"))
    assert names == [
        "AgentStarted",
        "TurnStarted",
        "AssistantStarted",
        "AssistantEnded",
        "TurnEnded",
        "AgentEnded",
        "AgentSettled",
    ]
    assert harness.texts() == ["a question", "The answer."]


async def test_deltas_add_up_to_the_stored_answer(scripted):
    _, options = scripted(("The whole answer.",))
    async with running(options) as harness:
        await harness.prompt("go")
    pieces = [event.event for event in harness.of(AssistantDelta)]
    assert "".join(piece.delta for piece in pieces if hasattr(piece, "delta")) == "The whole answer."
    started, ended = harness.of(AssistantStarted)[0], harness.of(AssistantEnded)[0]
    stored = next(event for event in harness.of(EntryAppended) if event.live_id == started.live_id)
    assert ended.entry_id == stored.entry.id


async def test_tool_results_are_stored_in_call_order_and_sent_back(scripted, project: Path):
    (project / "a.txt").write_text("alpha")
    (project / "b.txt").write_text("beta")
    provider, options = scripted(
        (call("read", "c1", path="a.txt"), call("read", "c2", path="b.txt")), ("both read",)
    )
    async with running(options) as harness:
        await harness.prompt("read both")
    assert [(result.tool_call_id, result.is_error) for result in results(harness)] == [
        ("c1", False),
        ("c2", False),
    ]
    assert "alpha" in text_of(results(harness)[0].content)
    sent = provider.requests[1].messages
    assert [type(message).__name__ for message in sent] == [
        "UserMessage",
        "AssistantMessage",
        "ToolResultMessage",
        "ToolResultMessage",
    ]
    assert len(harness.of(TurnStarted)) == len(harness.of(TurnEnded)) == 2
    assert len(harness.of(AgentStarted)) == len(harness.of(AgentEnded)) == len(harness.of(AgentSettled)) == 1


async def test_independent_reads_run_side_by_side_and_writes_after_them(scripted, project: Path):
    (project / "a.txt").write_text("alpha")
    _, options = scripted(
        (
            call("grep", "c1", pattern="alpha"),  # starts a child process, so it takes longer than c2
            call("read", "c2", path="a.txt"),
            call("edit", "c3", path="a.txt", edits=[{"oldText": "alpha", "newText": "omega"}]),
            call("read", "c4", path="a.txt"),
        ),
    )
    async with running(options) as harness:
        await harness.prompt("go")
    steps = [(type(event), event.call_id) for event in harness.of(ToolStarted, ToolEnded)]
    assert steps.index((ToolStarted, "c2")) < steps.index((ToolEnded, "c1"))
    assert steps.index((ToolStarted, "c3")) > steps.index((ToolEnded, "c2"))
    assert steps.index((ToolStarted, "c4")) > steps.index((ToolEnded, "c3"))
    assert "omega" in text_of(results(harness)[3].content)


@pytest.mark.parametrize(
    ("bad_call", "said"),
    [
        pytest.param(call("fly", "c1"), 'There is no tool "fly"', id="unknown tool"),
        pytest.param(call("read", "c1"), "path", id="missing argument"),
        pytest.param(
            ToolCallBlock("c1", "read", {}, parse_error="unexpected end"), "unexpected end", id="broken JSON"
        ),
        pytest.param(call("read", "c1", path="nowhere.txt"), "nowhere.txt", id="tool error"),
    ],
)
async def test_a_call_that_cannot_run_gets_an_error_result(scripted, bad_call, said):
    _, options = scripted((bad_call,), ("sorry",))
    async with running(options) as harness:
        await harness.prompt("go")
    (result,) = results(harness)
    assert result.is_error
    assert said in text_of(result.content)
    assert harness.texts()[-1] == "sorry"


async def test_calls_of_a_cut_off_answer_are_not_run(scripted, project: Path):
    _, options = scripted((call("write", "c1", path="x", content="half"), StopReason.LENGTH), ("again",))
    async with running(options) as harness:
        await harness.prompt("go")
    assert results(harness)[0].is_error
    assert not (project / "x").exists()
    assert harness.texts()[-1] == "again"


async def test_calls_over_the_cap_are_answered_without_running(scripted):
    calls = tuple(call("ls", f"c{number}") for number in range(66))
    _, options = scripted(calls, ("ok",), settings=("agent.maxIdenticalCalls=100",))
    async with running(options) as harness:
        await harness.prompt("go")
    assert [result.is_error for result in results(harness)] == [False] * 64 + [True] * 2


async def test_steering_is_delivered_after_the_tool_results(scripted):
    gate = asyncio.Event()
    provider, options = scripted((Hang(gate), call("ls", "c1")), ("changed course",))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("start"))
        await harness.wait_for(AssistantStarted)
        settled = await harness.settle(SubmitPrompt("turn left"))
        assert settled.ok
        assert harness.runtime.view().steering == ("turn left",)
        gate.set()
        await harness.wait_for(AgentSettled)
    kinds = [type(message).__name__ for message in provider.requests[1].messages]
    assert kinds == ["UserMessage", "AssistantMessage", "ToolResultMessage", "UserMessage"]
    assert harness.runtime.view().steering == ()
    assert len(harness.of(AgentStarted)) == 1


async def test_follow_ups_wait_until_the_agent_would_stop(scripted):
    gate = asyncio.Event()
    provider, options = scripted((Hang(gate), call("ls", "c1")), ("first done",), ("second done",))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("start"))
        await harness.wait_for(AssistantStarted)
        harness.runtime.send(SubmitPrompt("and then this", delivery="follow_up"))
        harness.runtime.send(SubmitPrompt("but first that", delivery="steer"))
        await asyncio.sleep(0)
        gate.set()
        await harness.wait_for(AgentSettled)
    assert len(provider.requests) == 3
    asked = [
        text_of(message.content)
        for message in provider.requests[2].messages
        if isinstance(message, UserMessage)
    ]
    assert asked == ["start", "but first that", "and then this"]
    assert len(harness.of(AgentSettled)) == 1


async def test_steering_during_the_last_answer_becomes_the_next_prompt(scripted):
    gate = asyncio.Event()
    provider, options = scripted(("almost", Hang(gate)), ("now this",))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("start"))
        await harness.wait_for(AssistantDelta)
        await harness.settle(SubmitPrompt("one more thing"))
        gate.set()
        await harness.wait_for(AgentSettled)
    assert harness.texts() == ["start", "almost", "one more thing", "now this"]
    assert len(provider.requests) == 2


async def test_cancel_keeps_what_was_received(scripted):
    provider, options = scripted(("Half an ans", Hang()))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("go"))
        await harness.wait_for(AssistantDelta, lambda event: getattr(event.event, "content", "") != "")
        settled = await harness.settle(Cancel())
        assert settled.data == {"cancelled": "turn"}
        await harness.wait_for(AgentSettled)
        answer = harness.messages()[-1]
        assert isinstance(answer, AssistantMessage)
        assert (answer.stop_reason, answer.error_message) == (StopReason.ABORTED, "Interrupted by user")
        assert text_of(answer.content) == "Half an ans"
        assert harness.of(AssistantEnded)[0].entry_id is not None
        assert provider.closed == 1
        assert harness.runtime.outcome.stop == "aborted"
        assert harness.runtime.view().phase is Phase.IDLE


async def test_finished_calls_of_a_cancelled_answer_are_answered(scripted):
    _, options = scripted((call("ls", "c1"), Hang()))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("go"))
        await harness.wait_for(AssistantDelta)
        await harness.settle(Cancel())
        await harness.wait_for(AgentSettled)
    (result,) = results(harness)
    assert (result.tool_call_id, result.is_error, text_of(result.content)) == ("c1", True, "aborted")


async def test_cancel_ends_a_running_command_within_two_seconds(scripted):
    _, options = scripted(
        (call("bash", "c1", command="sleep 60"), call("bash", "c2", command="echo never")), ("never",)
    )
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("go"))
        await harness.wait_for(ToolStarted)
        async with asyncio.timeout(3):
            await harness.settle(Cancel())
            await harness.wait_for(AgentSettled)
    assert [(result.tool_call_id, result.is_error) for result in results(harness)] == [
        ("c1", True),
        ("c2", True),
    ]
    assert len(harness.of(ToolStarted)) == len(harness.of(ToolEnded)) == 1
    assert harness.texts()[-1] != "never"


async def test_the_queue_stays_when_a_turn_is_cancelled(scripted):
    provider, options = scripted(("x", Hang()))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("go"))
        await harness.wait_for(AssistantDelta)
        await harness.settle(SubmitPrompt("one"))
        await harness.settle(SubmitPrompt("two", delivery="follow_up"))
        await harness.settle(Cancel())
        await harness.wait_for(AgentSettled)
        assert len(provider.requests) == 1
        taken = await harness.settle(TakeQueue())
        assert taken.data == {"text": "one\n\ntwo"}
        assert harness.runtime.view().steering == ()


async def test_what_stayed_in_the_queue_goes_before_the_next_prompt(scripted):
    provider, options = scripted(("x", Hang()), ("1",), ("2",))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("go"))
        await harness.wait_for(AssistantDelta)
        await harness.settle(SubmitPrompt("older"))
        await harness.settle(Cancel())
        await harness.wait_for(AgentSettled)
        await harness.prompt("newer")
    asked = [text_of(message.content) for message in harness.messages() if isinstance(message, UserMessage)]
    assert asked == ["go", "older", "newer"]
    assert len(provider.requests) == 3


async def test_a_failed_answer_is_asked_for_again(scripted):
    provider, options = scripted(("half", failure(text="the server is busy")), ("whole",))
    async with running(options) as harness:
        await harness.prompt("go")
        path = harness.file
    assert harness.of(RetryScheduled)[0].error == "the server is busy"
    assert harness.of(RetryEnded) == [RetryEnded(success=True, attempt=1)]
    assert [type(message).__name__ for message in provider.requests[1].messages] == ["UserMessage"]
    stored = [entry for entry in load_session(path).read_path() if entry.type == "message"]
    assert [entry.message.stop_reason for entry in stored[1:]] == [StopReason.ERROR, StopReason.STOP]
    assert PhaseChanged(Phase.RETRYING) in harness.events
    assert harness.runtime.outcome.stop == "ok"


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(failure(ErrorKind.AUTH, "bad key", status=401), id="auth"),
        pytest.param(failure(ErrorKind.QUOTA, "no money", status=402), id="quota"),
        pytest.param(failure(ErrorKind.OVERFLOW, "too long", status=400), id="overflow"),
        pytest.param(failure(ErrorKind.NOT_FOUND, "no such model", status=404), id="not found"),
        pytest.param(failure(ErrorKind.REFUSAL, "refused"), id="refusal"),
        pytest.param(failure(ErrorKind.RATE_LIMIT, "later", status=429, retry_after_s=600), id="long wait"),
    ],
)
async def test_a_failure_that_another_try_cannot_help_ends_the_turn(scripted, error):
    provider, options = scripted((error,))
    async with running(options) as harness:
        await harness.prompt("go")
        assert harness.runtime.outcome.stop == "error"
        assert harness.runtime.outcome.error
    assert len(provider.requests) == 1
    answer = harness.messages()[-1]
    assert answer.stop_reason is StopReason.ERROR
    assert str(error) in answer.error_message
    assert len(harness.notices("error")) == 1
    assert harness.of(RetryScheduled) == []


async def test_the_last_failure_is_told_when_all_tries_are_used(scripted):
    provider, options = scripted(*[(failure(text="busy"),)] * 3, settings=("retry.maxRetries=2",))
    async with running(options) as harness:
        await harness.prompt("go")
    assert len(provider.requests) == 3
    assert harness.of(RetryEnded) == [RetryEnded(success=False, attempt=2, error="busy")]
    assert len(harness.notices("error")) == 1


async def test_cancel_during_the_wait_gives_an_aborted_turn(scripted):
    provider, options = scripted((failure(),), settings=("retry.baseDelayMs=60000",))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("go"))
        await harness.wait_for(RetryScheduled)
        settled = await harness.settle(Cancel())
        assert settled.data == {"cancelled": "retry"}
        await harness.wait_for(AgentSettled)
    assert harness.messages()[-1].stop_reason is StopReason.ABORTED
    assert harness.of(RetryEnded)[0].success is False
    assert len(provider.requests) == 1


async def test_cancel_of_a_try_ends_the_retries(scripted):
    _, options = scripted((failure(),), ("text", Hang()))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("go"))
        await harness.wait_for(AssistantDelta)
        assert (await harness.settle(Cancel())).data == {"cancelled": "turn"}
        await harness.wait_for(AgentSettled)
    assert harness.of(RetryEnded) == [RetryEnded(success=False, attempt=1, error="Retry cancelled")]


async def test_calls_of_a_failed_answer_never_run(scripted, project: Path):
    provider, options = scripted(
        (call("write", "c1", path="x", content="1"), failure(ErrorKind.TRANSPORT, "cut")), ("fine",)
    )
    async with running(options) as harness:
        await harness.prompt("go")
    assert not (project / "x").exists()
    assert [type(message).__name__ for message in provider.requests[1].messages] == ["UserMessage"]
    assert results(harness)[0].is_error


async def test_a_failed_turn_can_be_repeated(scripted):
    provider, options = scripted((failure(ErrorKind.NOT_FOUND, "no model"),), ("now it works",))
    async with running(options) as harness:
        await harness.prompt("go")
        before = len(harness.events)
        settled = await harness.settle(Retry())
        await harness.wait_for(AgentSettled, after=before)
        assert settled.ok
    assert [type(message).__name__ for message in provider.requests[1].messages] == ["UserMessage"]
    assert harness.texts()[-1] == "now it works"


async def test_a_prompt_that_never_got_an_answer_can_be_repeated(scripted):
    provider, options = scripted((Bug(),), ("now it works",))
    async with running(options) as harness:
        await harness.prompt("go")
        before = len(harness.events)
        assert (await harness.settle(Retry())).ok
        await harness.wait_for(AgentSettled, after=before)
    assert harness.texts() == ["go", "now it works"]
    assert len(provider.requests) == 2


async def test_a_bug_in_the_turn_is_told_and_the_program_goes_on(scripted, caplog):
    _, options = scripted((Bug(),), ("fine",))
    async with running(options) as harness:
        await harness.prompt("go")
        assert harness.of(RuntimeFault) == [RuntimeFault("turn", "ValueError: a bug")]
        assert harness.runtime.outcome.stop == "error"
        assert harness.runtime.view().phase is Phase.IDLE
        await harness.prompt("again")
    assert len(harness.of(AssistantStarted)) == len(harness.of(AssistantEnded)) == 2
    assert len(harness.of(AgentStarted)) == len(harness.of(AgentEnded)) == 2
    assert harness.texts()[-1] == "fine"
    assert "Traceback" in caplog.text


async def test_nothing_is_repeated_when_the_last_turn_succeeded(scripted):
    _, options = scripted(("fine",))
    async with running(options) as harness:
        await harness.prompt("go")
        assert not (await harness.settle(Retry())).ok


async def test_messages_in_the_queue_stay_when_the_turn_fails(scripted):
    gate = asyncio.Event()
    provider, options = scripted((Hang(gate), failure(ErrorKind.AUTH, "bad key")))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("go"))
        await harness.wait_for(AssistantStarted)
        await harness.settle(SubmitPrompt("more"))
        gate.set()
        await harness.wait_for(AgentSettled)
        assert harness.runtime.view().steering == ("more",)
    assert any("queue" in text for text in harness.notices("error"))
    assert len(provider.requests) == 1


async def test_a_runaway_turn_is_stopped_by_the_round_limit(scripted):
    scripts = [(call("ls", f"c{number}", path="." + "/" * number),) for number in range(5)]
    provider, options = scripted(*scripts, settings=("agent.maxRounds=3",))
    async with running(options) as harness:
        await harness.prompt("go")
        assert harness.runtime.outcome.stop == "budget"
    assert len(provider.requests) == 3
    assert len(results(harness)) == 3


async def test_equal_calls_are_warned_about_and_then_end_the_turn(scripted):
    scripts = [(call("ls", f"c{number}"),) for number in range(10)]
    provider, options = scripted(*scripts, settings=("agent.maxIdenticalCalls=2",))
    async with running(options) as harness:
        await harness.prompt("go")
        assert harness.runtime.outcome.stop == "budget"
    texts = [text_of(result.content) for result in results(harness)]
    assert len(provider.requests) == 4
    assert ["times in a row" in text for text in texts] == [False, True, True, True]


async def ask(harness) -> ApprovalAsked:
    harness.runtime.send(SubmitPrompt("go"))
    return await harness.wait_for(ApprovalAsked)


async def test_an_allowed_call_runs(scripted, project: Path):
    _, options = scripted((call("write", "c1", path="x.txt", content="hi"),), ("done",), mode="ask")
    async with running(options) as harness:
        asked = await ask(harness)
        assert (asked.tool, asked.arguments["path"]) == ("write", "x.txt")
        assert not (project / "x.txt").exists()
        assert (await harness.settle(AnswerApproval(asked.request_id, "allow"))).ok
        await harness.wait_for(AgentSettled)
    assert (project / "x.txt").read_text() == "hi"


async def test_a_denied_call_tells_the_model_why(scripted, project: Path):
    provider, options = scripted((call("write", "c1", path="x.txt", content="hi"),), ("pity",), mode="ask")
    async with running(options) as harness:
        asked = await ask(harness)
        await harness.settle(AnswerApproval(asked.request_id, "deny", "use y.txt"))
        await harness.wait_for(AgentSettled)
    assert "use y.txt" in text_of(results(harness)[0].content)
    assert len(provider.requests) == 2
    assert not (project / "x.txt").exists()
    assert harness.of(ToolStarted) == []


async def test_deny_and_stop_ends_the_turn(scripted):
    provider, options = scripted((call("write", "c1", path="x.txt", content="hi"),), ("never",), mode="ask")
    async with running(options) as harness:
        asked = await ask(harness)
        await harness.settle(AnswerApproval(asked.request_id, "deny_and_stop"))
        await harness.wait_for(AgentSettled)
        assert harness.runtime.outcome.stop == "denied"
    assert len(provider.requests) == 1
    assert results(harness)[0].is_error


async def test_deny_and_stop_asks_about_no_other_call(scripted):
    _, options = scripted(
        (call("bash", "c1", command="echo one"), call("bash", "c2", command="echo two")), mode="ask"
    )
    async with running(options) as harness:
        asked = await ask(harness)
        await harness.wait_for(ApprovalAsked, lambda event: event.call_id == "c2")
        await harness.settle(AnswerApproval(asked.request_id, "deny_and_stop"))
        await harness.wait_for(AgentSettled)
    assert [(result.tool_call_id, result.is_error) for result in results(harness)] == [
        ("c1", True),
        ("c2", True),
    ]
    assert len(harness.of(ApprovalClosed)) == 2


async def test_allow_session_is_asked_once(scripted):
    _, options = scripted(
        (call("bash", "c1", command="echo one"),),
        (call("bash", "c2", command="echo one"),),
        ("done",),
        mode="ask",
    )
    async with running(options) as harness:
        asked = await ask(harness)
        assert asked.rule is not None
        await harness.settle(AnswerApproval(asked.request_id, "allow_session"))
        await harness.wait_for(AgentSettled)
    assert len(harness.of(ApprovalAsked)) == 1
    assert [result.is_error for result in results(harness)] == [False, False]


async def test_cancel_closes_an_open_question(scripted):
    _, options = scripted((call("bash", "c1", command="echo one"),), mode="ask")
    async with running(options) as harness:
        asked = await ask(harness)
        await harness.settle(Cancel())
        await harness.wait_for(AgentSettled)
        late = await harness.settle(AnswerApproval(asked.request_id, "allow"))
        assert not late.ok
    assert text_of(results(harness)[0].content) == "aborted"


async def test_calls_are_withheld_when_nobody_can_be_asked(scripted):
    _, options = scripted(
        (call("bash", "c1", command="echo one"),), ("then not",), mode="ask", interactive=False
    )
    async with running(options) as harness:
        await harness.prompt("go")
        assert (harness.runtime.outcome.stop, harness.runtime.outcome.withheld) == ("ok", 1)
    assert "needs approval and nobody can give it" in text_of(results(harness)[0].content)
    assert harness.texts()[-1] == "then not"


async def test_an_empty_message_is_refused(scripted):
    _, options = scripted()
    async with running(options) as harness:
        assert not (await harness.settle(SubmitPrompt("  \n"))).ok
        assert harness.of(IntentSettled)[-1].error
