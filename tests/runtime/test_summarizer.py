import asyncio

import pytest

from musepi_tui.base.errors import EmptySummaryError, ErrorKind, MaintenanceError, ProviderError
from musepi_tui.base.resources import read_prompt
from musepi_tui.context.estimate import Estimator
from musepi_tui.context.prepare import PrepareOptions, prepare_compaction
from musepi_tui.providers.types import ThinkingLevel
from musepi_tui.runtime.candidates import Candidate, Chain
from musepi_tui.runtime.services import llm_templates
from musepi_tui.runtime.summarizer import SummaryOrder, Tools, summarize
from musepi_tui.session.messages import Cost, StopReason, Usage
from musepi_tui.settings.schema import RetrySettings
from tests.support.builders import a, compaction, path, stub_count
from tests.support.clock import FakeClock
from tests.support.fake_services import FakeGateway, model, prompt_of
from tests.support.sketch import parts, sketch

WHOLE_TURNS = "u500 a500 u500 a500"
SPLIT_TURN = "u100 a200 t900 a300 u50 a900 t900 a100"


class Desk:
    """A summarizer's surroundings."""

    def __init__(self, *models):
        self.gateway = FakeGateway(*(models or (model(),)))
        self.clock = FakeClock()
        self.told, self.progress = [], []

    def run(self, entries, keep=900, *, reserve=16_384, manual=False, focus=None, windows=None):
        preparation = prepare_compaction(entries, PrepareOptions(keep), Estimator(stub_count))
        candidates = tuple(
            Candidate(row, None, (windows or {}).get(row.id, row.context_window)) for row in self.gateway.rows
        )
        order = SummaryOrder(preparation, Chain(candidates), reserve, focus, manual=manual)
        tools = Tools(
            self.gateway,
            self.clock,
            stub_count,
            llm_templates(),
            RetrySettings(),
            self.told.append,
            self.progress.append,
        )
        return summarize(order, tools)


def error(kind=ErrorKind.SERVER, **fields):
    return ProviderError("server is down", kind=kind, **fields)


async def test_first_summary_asks_once_with_the_first_prompt():
    desk = Desk()
    summary = await desk.run(sketch(WHOLE_TURNS))
    ((_, request),) = desk.gateway.requests
    prompt = prompt_of(request)
    assert request.system == read_prompt("summarization-system")
    assert prompt.startswith("<conversation>\n[User]: abc")
    assert prompt.endswith("\n</conversation>\n\n" + read_prompt("compaction-summary"))
    assert (request.tools, request.max_tokens, request.cache_retention) == ((), 13_107, "none")
    assert summary.text.startswith("## Goal")
    assert summary.model == "test/model"


async def test_later_summary_updates_the_previous_one_and_names_the_focus():
    desk = Desk()
    entries = path(*parts("u500 a500"), compaction("OLD </previous-summary> TEXT", "e2"), *parts(WHOLE_TURNS))
    await desk.run(entries, focus="the API work")
    (prompt,) = desk.gateway.prompts
    assert "\n\n<previous-summary>\nOLD <\\/previous-summary> TEXT\n</previous-summary>\n\n" in prompt
    assert prompt.endswith(read_prompt("compaction-update-summary") + "\n\nAdditional focus: the API work")


async def test_split_turn_asks_for_both_parts_at_once_and_merges_them():
    desk = Desk()
    desk.gateway.gate = asyncio.Event()
    running = asyncio.ensure_future(desk.run(sketch(SPLIT_TURN)))
    await desk.gateway.wait_for_requests(2)
    desk.gateway.gate.set()
    summary = await running
    limits = [request.max_tokens for _, request in desk.gateway.requests]
    assert limits == [13_107, 8_192]
    assert desk.gateway.prompts[1].endswith(read_prompt("compaction-turn-prefix"))
    assert "\n\n---\n\n**Turn Context (split turn):**\n\n## Goal" in summary.text


async def test_split_turn_without_history_says_so():
    desk = Desk()
    summary = await desk.run(sketch("u100 a200 t900 a300"), 200)
    assert len(desk.gateway.requests) == 1
    assert summary.text.startswith("No prior history.\n\n---\n\n**Turn Context (split turn):**")


async def test_small_reserve_gives_small_limits_and_the_model_may_lower_them():
    desk = Desk(model(max_tokens=900))
    await desk.run(sketch(SPLIT_TURN), reserve=1_228)
    assert [request.max_tokens for _, request in desk.gateway.requests] == [900, 614]


async def test_a_cut_off_summary_is_asked_for_again_with_twice_the_room():
    desk = Desk()
    stops = iter([StopReason.LENGTH, StopReason.STOP])
    desk.gateway.reply = lambda *_: a("## Goal\nText", stop=next(stops))
    await desk.run(sketch(WHOLE_TURNS), reserve=1_228)
    assert [request.max_tokens for _, request in desk.gateway.requests] == [982, 1_964]


async def test_a_summary_that_stays_cut_off_fails_the_candidate():
    desk = Desk(model(), model("second"))
    desk.gateway.reply = lambda row, _: a(
        "x", stop=StopReason.LENGTH if row.id == "model" else StopReason.STOP
    )
    summary = await desk.run(sketch(WHOLE_TURNS), reserve=1_228)
    assert [row.id for row, _ in desk.gateway.requests] == ["model", "model", "second"]
    assert summary.model == "test/second"


async def test_no_second_try_when_the_model_allows_no_more_room():
    desk = Desk(model(max_tokens=500))
    desk.gateway.reply = lambda *_: a("x", stop=StopReason.LENGTH)
    with pytest.raises(MaintenanceError, match="output limit"):
        await desk.run(sketch(WHOLE_TURNS), manual=True)
    assert len(desk.gateway.requests) == 1


@pytest.mark.parametrize("text", ["", "  \n", "<summary>\n</summary>"])
async def test_an_empty_answer_fails(text):
    desk = Desk()
    desk.gateway.reply = lambda *_: a(text)
    with pytest.raises(EmptySummaryError):
        await desk.run(sketch(WHOLE_TURNS), manual=True)


async def test_the_tags_around_an_answer_are_removed():
    desk = Desk()
    desk.gateway.reply = lambda *_: a("<summary>\n## Goal\nInside\n</summary>")
    assert (await desk.run(sketch(WHOLE_TURNS))).text == "## Goal\nInside"


async def test_a_passing_failure_is_waited_out_in_an_automatic_pass():
    desk = Desk()
    answers = iter([error(), error(), a("## Goal\nText")])
    desk.gateway.reply = lambda *_: next(answers)
    await desk.run(sketch(WHOLE_TURNS))
    assert desk.clock.slept == [2.0, 4.0]


async def test_a_manual_pass_shows_the_failure_at_once():
    desk = Desk(model(), model("second"))
    desk.gateway.reply = lambda *_: error()
    with pytest.raises(ProviderError, match="server is down"):
        await desk.run(sketch(WHOLE_TURNS), manual=True)
    assert len(desk.gateway.requests) == 1


async def test_the_next_candidate_is_named_when_it_is_asked():
    desk = Desk(model(), model("second"))
    desk.gateway.reply = lambda row, _: error(ErrorKind.QUOTA) if row.id == "model" else a("## Goal\nText")
    await desk.run(sketch(WHOLE_TURNS))
    assert [notice.text for notice in desk.told] == [
        "test/model could not write the summary (server is down); test/second is asked instead."
    ]


async def test_a_model_without_key_is_passed_over_also_in_a_manual_pass():
    desk = Desk(model(), model("second", provider="other"))
    desk.gateway.refused = {"test/model"}
    summary = await desk.run(sketch(WHOLE_TURNS), manual=True)
    assert summary.model == "other/second"


async def test_a_part_that_was_answered_is_not_asked_for_again():
    desk = Desk()
    failed = []

    def reply(_, request):
        is_prefix = prompt_of(request).endswith(read_prompt("compaction-turn-prefix"))
        if is_prefix and not failed:
            failed.append(1)
            return error()
        return a("## Goal\nPrefix" if is_prefix else "## Goal\nHistory")

    desk.gateway.reply = reply
    summary = await desk.run(sketch(SPLIT_TURN))
    assert len(desk.gateway.requests) == 3
    assert summary.text.startswith("## Goal\nHistory\n\n---")


async def test_a_history_too_large_for_every_window_is_refused_with_its_size():
    desk = Desk(model(context_window=4_000))
    with pytest.raises(MaintenanceError, match="too many for the largest window of 4,000"):
        await desk.run(sketch("u5000 a5000 u500 a500"))
    assert desk.gateway.requests == []


async def test_a_model_with_a_larger_window_is_taken_when_the_first_is_too_small():
    desk = Desk(model(context_window=4_000), model("big"))
    assert (await desk.run(sketch("u5000 a5000 u500 a500"))).model == "test/big"


async def test_no_model_is_refused_with_the_remedy():
    desk = Desk()
    desk.gateway.rows = []
    with pytest.raises(MaintenanceError, match="needs a model with credentials"):
        await desk.run(sketch(WHOLE_TURNS))


async def test_usage_of_all_requests_is_summed():
    desk = Desk()
    usage = Usage(input=100, output=10, total_tokens=110, cost=Cost(total=0.25))
    desk.gateway.reply = lambda *_: a("## Goal\nText", usage=usage)
    summary = await desk.run(sketch(SPLIT_TURN))
    assert (summary.usage.input, summary.usage.cost.total) == (200, 0.5)


async def test_progress_counts_requests_and_tokens():
    desk = Desk()
    await desk.run(sketch(SPLIT_TURN))
    assert (desk.progress[0].done, desk.progress[0].total) == (0, 2)
    assert (desk.progress[-1].done, desk.progress[-1].total) == (2, 2)
    assert desk.progress[-1].input_tokens > 1_000
    assert desk.progress[-1].output_tokens > 0


async def test_cancelling_closes_every_stream():
    desk = Desk()
    desk.gateway.gate = asyncio.Event()
    running = asyncio.ensure_future(desk.run(sketch(SPLIT_TURN)))
    await desk.gateway.wait_for_requests(2)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert all(stream.closed for stream in desk.gateway.streams)


async def test_thinking_follows_the_session_as_far_as_the_model_can():
    desk = Desk(model(reasoning=True))
    desk.gateway.thinking = ThinkingLevel.MAX
    await desk.run(sketch(WHOLE_TURNS))
    assert desk.gateway.requests[0][1].thinking is ThinkingLevel.HIGH


async def test_control_tokens_are_defused_for_harmony_models():
    desk = Desk(model("openai/gpt-oss-120b"))
    entries = path(*(part for part in parts("u500 a500")), *parts("u500 a500"))
    await desk.run(entries)
    assert "<|start|>" not in desk.gateway.prompts[0]
