import pytest

from musepi_tui.base.errors import ErrorKind, ProviderError, SummaryRejectedError
from musepi_tui.base.resources import read_prompt
from musepi_tui.providers.types import BlockDelta, ThinkingLevel
from musepi_tui.runtime.candidates import Candidate
from musepi_tui.runtime.summary_call import PROGRESS_INTERVAL_S, Caller, Progress, Tally
from musepi_tui.session.messages import StopReason, Usage
from tests.support.builders import a
from tests.support.clock import FakeClock
from tests.support.fake_gateway import FakeGateway, model


class Desk:
    def __init__(self, row=None, thinking=None):
        self.clock = FakeClock()
        self.reports = []
        self.gateway = FakeGateway(row or model())
        self.tally = Tally(self.clock, self.reports.append)
        self.caller = Caller(Candidate(row or model(), thinking), self.gateway, self.clock, self.tally)


def usage(tokens):
    return Usage(input=tokens, output=1, total_tokens=tokens + 1)


async def test_a_request_is_a_lone_user_message_without_tools_or_cache():
    desk = Desk(model(reasoning=True), ThinkingLevel.LOW)
    desk.gateway.reply = lambda *_: a("<summary>\n## Goal\nX\n</summary>")
    assert await desk.caller.ask("PROMPT", 500) == "## Goal\nX"
    ((_, request),) = desk.gateway.requests
    assert request.system == read_prompt("summarization-system")
    assert desk.gateway.prompts == ["PROMPT"]
    assert (request.tools, request.max_tokens, request.thinking) == ((), 500, ThinkingLevel.LOW)
    assert (request.cache_retention, request.session_id) == ("none", None)


async def test_the_output_limit_of_the_model_holds():
    desk = Desk(model(max_tokens=300))
    await desk.caller.ask("PROMPT", 500)
    assert desk.gateway.requests[0][1].max_tokens == 300


async def test_what_failed_and_cut_off_answers_cost_is_counted():
    desk = Desk()
    answers = iter([a("x", stop=StopReason.LENGTH, usage=usage(10)), a("## Goal", usage=usage(20))])
    desk.gateway.reply = lambda *_: next(answers)
    await desk.caller.ask("PROMPT", 500)
    assert desk.tally.usage.input == 30


@pytest.mark.parametrize("kind", [ErrorKind.SERVER, ErrorKind.ABORTED, ErrorKind.OVERFLOW])
async def test_a_failed_request_raises_what_the_provider_said_and_closes_its_stream(kind):
    desk = Desk()
    desk.gateway.reply = lambda *_: ProviderError("no", kind=kind, status=500)
    with pytest.raises(ProviderError) as caught:
        await desk.caller.ask("PROMPT", 500)
    assert (caught.value.kind, caught.value.status) == (kind, 500)
    assert desk.gateway.streams[0].closed


async def test_an_answer_that_repeats_itself_is_refused():
    desk = Desk()
    desk.gateway.reply = lambda *_: a("the same long line over and over\n" * 40)
    with pytest.raises(SummaryRejectedError):
        await desk.caller.ask("PROMPT", 500)


async def test_a_stream_without_an_end_is_a_failure_that_passes():
    desk = Desk()

    class Endless:
        async def __aiter__(self):
            return
            yield

        async def aclose(self):
            self.closed = True

    desk.gateway.open = lambda *_: Endless()
    with pytest.raises(ProviderError, match="ended without an end") as failure:
        await desk.caller.ask("PROMPT", 500)
    assert failure.value.retryable


def test_the_tally_counts_the_requests_of_all_pieces():
    desk = Desk()
    desk.tally.begin(["history", "prefix"], 1)
    desk.tally.begin(["history"], 0)
    desk.tally.expect("history", 5)
    desk.tally.answered("history")
    desk.tally.answered("prefix")
    assert desk.reports[-1] == Progress(2, 6, 0, 0)


def test_a_piece_that_is_tried_again_is_counted_anew():
    desk = Desk()
    for _ in range(2):
        desk.tally.begin(["history"], 0)
        desk.tally.expect("history", 3)
        desk.tally.answered("history")
    assert desk.reports[-1] == Progress(1, 3, 0, 0)


def test_growing_answers_are_reported_now_and_then():
    desk = Desk()
    for _ in range(10):
        desk.tally.watch(BlockDelta("text", 0, "x" * 40))
    assert [report.output_tokens for report in desk.reports] == [10]
    desk.clock.advance(PROGRESS_INTERVAL_S)
    desk.tally.watch(BlockDelta("text", 0, "x" * 40))
    assert desk.reports[-1].output_tokens == 110
