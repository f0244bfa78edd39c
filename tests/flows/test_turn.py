"""A prompt over real HTTP: tools, thinking, failures, cancel."""

import asyncio
from pathlib import Path

import pytest

from musepi_tui.runtime.events import (
    AgentSettled,
    AssistantDelta,
    AssistantStarted,
    EntryAppended,
    RetryEnded,
    RetryScheduled,
    UsageChanged,
)
from musepi_tui.runtime.intents import Cancel, SubmitPrompt
from musepi_tui.session.messages import (
    AssistantMessage,
    StopReason,
    ThinkingBlock,
    ToolResultMessage,
    text_of,
    tool_calls_of,
)
from tests.support.harness import running, write_models
from tests.support.server import drop_reply, status_reply


def sent_text(request) -> str:
    return str(request.body)


async def test_a_prompt_with_thinking_and_two_parallel_calls(over_http, server, reply, project: Path):
    (project / "a.txt").write_text("alpha")
    (project / "b.txt").write_text("beta")
    server.script(
        reply(
            thinking="Both files are needed.",
            text="I read both.",
            tools=[("read", {"path": "a.txt"}, "one"), ("read", {"path": "b.txt"}, "two")],
        ),
        reply(text="They say alpha and beta."),
    )
    async with running(over_http(row={"reasoning": True}, thinking="medium")) as harness:
        await harness.prompt("what do they say")
        assert harness.runtime.outcome.stop == "ok"
    first, *found, last = [message for message in harness.messages()[1:]]
    assert isinstance(first, AssistantMessage)
    assert [block.thinking for block in first.content if isinstance(block, ThinkingBlock)] == [
        "Both files are needed."
    ]
    assert [call.id for call in tool_calls_of(first)] == ["one", "two"]
    assert [
        (result.tool_call_id, result.is_error) for result in found if isinstance(result, ToolResultMessage)
    ] == [
        ("one", False),
        ("two", False),
    ]
    assert text_of(last.content) == "They say alpha and beta."
    assert "alpha" in sent_text(server.requests[1])
    assert "beta" in sent_text(server.requests[1])


async def test_usage_of_the_server_reaches_the_meter(over_http, server, reply, api):
    names = (
        {"input_tokens": 700, "output_tokens": 50, "cache_read_input_tokens": 250}
        if api == "anthropic-messages"
        else {"prompt_tokens": 950, "completion_tokens": 50, "prompt_tokens_details": {"cached_tokens": 250}}
    )
    server.script(reply(text="hi", usage=names))
    async with running(over_http()) as harness:
        await harness.prompt("hello")
    meter = harness.of(UsageChanged)[-1].meter
    assert (meter.context_tokens, meter.estimated, meter.window) == (1000, False, 100_000)
    assert (meter.totals.input, meter.totals.output, meter.totals.cache_read) == (700, 50, 250)


async def test_too_many_requests_once_goes_unnoticed(over_http, server, reply):
    server.script(
        status_reply(429, {"error": {"message": "slow down"}}, {"retry-after": "0"}), reply(text="hi")
    )
    async with running(over_http()) as harness:
        await harness.prompt("hello")
        assert harness.runtime.outcome.stop == "ok"
    assert len(server.requests) == 2
    assert harness.of(RetryScheduled) == []
    assert harness.texts() == ["hello", "hi"]


async def test_too_many_requests_again_and_again_is_told_and_retried(over_http, server, reply):
    busy = status_reply(429, {"error": {"message": "slow down"}}, {"retry-after": "0"})
    server.script(*[busy] * 3, reply(text="hi"))
    async with running(over_http()) as harness:
        await harness.prompt("hello")
        assert harness.runtime.outcome.stop == "ok"
    assert len(harness.of(RetryScheduled)) == 1
    assert harness.of(RetryEnded) == [RetryEnded(success=True, attempt=1)]
    assert harness.texts()[-1] == "hi"


async def test_a_stream_cut_in_the_middle_is_asked_for_again(over_http, server, reply):
    whole = reply(text="one two three four five six seven eight")
    server.script(whole.cut(6), whole)
    async with running(over_http()) as harness:
        await harness.prompt("count")
        assert harness.runtime.outcome.stop == "ok"
    answers = [message for message in harness.messages() if isinstance(message, AssistantMessage)]
    assert [answer.stop_reason for answer in answers] == [StopReason.ERROR, StopReason.STOP]
    assert text_of(answers[0].content).startswith("one")
    assert len(harness.of(RetryScheduled)) == 1
    assert "one two" not in sent_text(server.requests[1])


async def test_cancel_in_mid_stream_keeps_the_text_and_closes_the_connection(over_http, server, reply):
    server.script(reply(text="one two three four five six").stall(6), reply(text="fine"))
    async with running(over_http()) as harness:
        harness.runtime.send(SubmitPrompt("count"))
        await harness.wait_for(AssistantDelta, lambda event: bool(getattr(event.event, "delta", "")))
        await harness.settle(Cancel())
        async with asyncio.timeout(2):
            await harness.wait_for(AgentSettled)
        answer = harness.messages()[-1]
        assert answer.stop_reason is StopReason.ABORTED
        assert text_of(answer.content).startswith("one")
        before = await harness.prompt("again")
        assert harness.of(EntryAppended)[-1] in harness.events[before:]
    assert harness.texts()[-1] == "fine"
    assert "one two" not in sent_text(server.requests[1])
    assert server.disconnects == 1


async def test_steering_and_follow_up_over_http(over_http, server, reply):
    server.script(
        reply(text="looking", tools=[("ls", {})], rate=50), reply(text="turned"), reply(text="finished")
    )
    async with running(over_http()) as harness:
        harness.runtime.send(SubmitPrompt("start"))
        await harness.wait_for(AssistantStarted)
        harness.runtime.send(SubmitPrompt("later", delivery="follow_up"))
        harness.runtime.send(SubmitPrompt("now"))
        await harness.wait_for(AgentSettled)
    asked = [text for text in harness.texts() if text in ("start", "now", "later")]
    assert asked == ["start", "now", "later"]
    assert len(server.requests) == 3


ERRORS = {
    "401": (status_reply(401, {"error": {"message": "invalid x-api-key"}}), 1, "key"),
    "403": (status_reply(403, {"error": {"message": "forbidden"}}), 1, "local"),
    "404": (status_reply(404, {"error": {"message": "model m1 not found"}}), 1, "m1"),
    "400": (status_reply(400, {"error": {"message": "max_tokens is odd"}}), 1, "max_tokens is odd"),
    "429 quota": (status_reply(429, {"error": {"code": "insufficient_quota", "message": "quota"}}), 1, ""),
    "500": (status_reply(500, {"error": {"message": "internal error"}}), 6, "internal error"),
    "503 html": (status_reply(503, "<html><title>Down</title></html>", content_type="text/html"), 6, ""),
    "dropped": (drop_reply(), 6, ""),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_a_failure_is_one_clear_line_and_the_program_goes_on(over_http, server, reply, name):
    failing, tries, said = ERRORS[name]
    server.script(*[failing] * tries, reply(text="recovered"))
    async with running(over_http("retry.maxRetries=1")) as harness:
        await harness.prompt("hello")
        assert harness.runtime.outcome.stop == "error"
        (notice,) = harness.notices("error")
        assert said in notice
        assert "Traceback" not in notice
        assert "\n" not in notice.strip()
        assert len(server.requests) == tries
        await harness.prompt("again")
    assert harness.texts()[-1] == "recovered"
    assert harness.texts()[0] == "hello"


async def test_a_wrong_address_names_it_with_the_remedy(over_http, api, musepi_home: Path):
    options = over_http("retry.maxRetries=0", "retry.requestRetries=0")
    write_models(musepi_home, api, "http://127.0.0.1:9")
    async with running(options) as harness:
        await harness.prompt("hello")
        assert harness.runtime.outcome.stop == "error"
    (notice,) = harness.notices("error")
    assert "127.0.0.1" in notice
