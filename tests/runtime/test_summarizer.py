import asyncio

import pytest

from musepi_tui.base.errors import EmptySummaryError, ErrorKind, MaintenanceError, ProviderError
from musepi_tui.base.resources import read_prompt
from musepi_tui.context.estimate import Estimator
from musepi_tui.context.prepare import PrepareOptions, prepare_compaction
from musepi_tui.context.request import upsert_request
from musepi_tui.providers.types import ThinkingLevel
from musepi_tui.runtime.candidates import Candidate, Chain
from musepi_tui.runtime.events import SummaryRetryEnded, SummaryRetryScheduled, SummaryRetryStarted
from musepi_tui.runtime.services import llm_templates
from musepi_tui.runtime.staging import SummaryMemory
from musepi_tui.runtime.summarizer import SummaryOrder, Tools, summarize
from musepi_tui.runtime.summary_requests import Extras
from musepi_tui.session.messages import Cost, StopReason, Usage
from musepi_tui.settings.schema import RetrySettings
from tests.support.builders import a, compaction, path, stub_count
from tests.support.clock import FakeClock
from tests.support.fake_gateway import FakeGateway, model, prompt_of
from tests.support.sketch import parts, sketch

WHOLE_TURNS = "u500 a500 u500 a500"
SPLIT_TURN = "u100 a200 t900 a300 u50 a900 t900 a100"


class Desk:
    """A summarizer's surroundings."""

    def __init__(self, *models):
        self.gateway = FakeGateway(*(models or (model(),)))
        self.clock = FakeClock()
        self.told, self.progress, self.events = [], [], []
        self.memory = SummaryMemory()

    def run(self, entries, keep=900, *, reserve=16_384, manual=False, extras=None, windows=None):
        preparation = prepare_compaction(entries, PrepareOptions(keep), Estimator(stub_count))
        candidates = tuple(
            Candidate(row, None, (windows or {}).get(row.id, row.context_window)) for row in self.gateway.rows
        )
        order = SummaryOrder(preparation, Chain(candidates), reserve, extras or Extras(), manual=manual)
        tools = Tools(
            self.gateway,
            self.clock,
            stub_count,
            llm_templates(),
            RetrySettings(),
            self.told.append,
            self.progress.append,
            self.events.append,
            self.memory,
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
    await desk.run(entries, extras=Extras(focus="the API work"))
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
    assert desk.events == [
        SummaryRetryScheduled(1, 10, 2.0, "server is down"),
        SummaryRetryStarted(1),
        SummaryRetryEnded(success=False, attempt=1, error="server is down"),
        SummaryRetryScheduled(2, 10, 4.0, "server is down"),
        SummaryRetryStarted(2),
        SummaryRetryEnded(success=True, attempt=2),
    ]


async def test_a_try_that_is_cancelled_gets_its_end():
    desk = Desk()

    def reply(*_):
        if desk.clock.slept:
            desk.gateway.gate = asyncio.Event()  # the second answer does not come
        return error()

    desk.gateway.reply = reply
    running = asyncio.ensure_future(desk.run(sketch(WHOLE_TURNS)))
    await desk.gateway.wait_for_requests(2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert desk.events == [
        SummaryRetryScheduled(1, 10, 2.0, "server is down"),
        SummaryRetryStarted(1),
        SummaryRetryEnded(success=False, attempt=1, error="Retry cancelled"),
    ]


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
    with pytest.raises(MaintenanceError, match="too large for the largest window of 4,000"):
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
    desk.gateway.wanted_thinking = ThinkingLevel.MAX
    await desk.run(sketch(WHOLE_TURNS))
    assert desk.gateway.requests[0][1].thinking is ThinkingLevel.HIGH


async def test_control_tokens_are_defused_for_harmony_models():
    desk = Desk(model("openai/gpt-oss-120b"))
    entries = path(*(part for part in parts("u500 a500")), *parts("u500 a500"))
    await desk.run(entries)
    assert "<|start|>" not in desk.gateway.prompts[0]


LONG = "u3000 a3000 u3000 a3000 u500 a500"
NARROW = model(context_window=13_500, max_tokens=1_000)
"""Its window holds what ``LONG`` gives to summarise in four parts only."""


def timed_out(_):
    failure = error(ErrorKind.TRANSPORT)
    failure.cause = "timeout"
    return failure


def kinds(desk):
    """What each request was: one for the whole, a segment, a merge."""
    return [
        "merge"
        if prompt.startswith("<segment-summaries>")
        else "segment"
        if "of a longer conversation" in prompt
        else "single"
        for prompt in desk.gateway.prompts
    ]


async def test_a_history_too_long_for_one_request_is_taken_apart():
    desk = Desk(model(context_window=16_000, max_tokens=4_000))
    summary = await desk.run(sketch(LONG), 900)
    assert kinds(desk) == ["segment"] * 4 + ["merge"]
    assert [request.max_tokens for _, request in desk.gateway.requests] == [4_000] * 5
    assert (summary.stages, desk.memory.staged_models) == (2, {"test/model"})
    assert (desk.progress[-1].done, desk.progress[-1].total, desk.progress[-1].is_staged) == (5, 5, True)


async def test_a_request_that_took_too_long_is_taken_apart_once():
    desk = Desk(model(context_window=20_000, max_tokens=1_000))
    desk.gateway.reply = lambda row, request: (
        timed_out(row) if prompt_of(request).count("[User]") > 1 else a("## Goal\nPart")
    )
    summary = await desk.run(sketch(LONG), 900)
    assert kinds(desk) == ["single", "segment", "segment", "segment", "segment", "merge"]
    assert summary.stages == 2


async def test_a_short_request_that_took_too_long_goes_to_the_next_model():
    desk = Desk(model(), model("second"))
    desk.gateway.reply = lambda row, _: timed_out(row) if row.id == "model" else a("## Goal\nText")
    assert (await desk.run(sketch(WHOLE_TURNS))).model == "test/second"
    assert kinds(desk) == ["single", "single"]
    assert desk.clock.slept == []


async def test_segments_that_take_too_long_go_to_the_next_model_without_a_wait():
    desk = Desk(model(context_window=20_000, max_tokens=1_000), model("second"))
    desk.gateway.reply = lambda row, _: timed_out(row) if row.id == "model" else a("## Goal\nText")
    assert (await desk.run(sketch(LONG), 900)).model == "test/second"
    assert desk.clock.slept == []
    assert kinds(desk)[-1] == "single"


async def test_a_model_that_needed_stages_starts_with_them_the_next_time():
    desk = Desk(model(context_window=20_000, max_tokens=1_000))
    desk.memory.note_stages("test/model", 2)
    await desk.run(sketch(LONG), 900)
    assert "single" not in kinds(desk)
    desk.gateway.requests.clear()
    await desk.run(sketch(WHOLE_TURNS))
    assert kinds(desk) == ["single"]
    assert desk.memory.staged_models == set()


async def test_a_model_counts_as_staged_when_one_of_its_pieces_was():
    desk = Desk(NARROW)
    summary = await desk.run(sketch(f"{LONG} u100 a900 t900 a300"), 400)
    assert kinds(desk).count("single") == 1
    assert summary.stages == 2
    assert desk.memory.staged_models == {"test/model"}


async def test_history_and_prefix_together_run_four_requests_at_most():
    desk = Desk(model(context_window=16_000, max_tokens=1_000))
    desk.gateway.gate = asyncio.Event()
    long_turn = " ".join(["u3000"] + ["a3000"] * 6)
    running = asyncio.ensure_future(desk.run(sketch(f"{' '.join(['u3000 a3000'] * 4)} {long_turn}"), 900))
    await desk.gateway.wait_for_requests(4)
    await asyncio.sleep(0.05)
    assert len(desk.gateway.requests) == 4
    desk.gateway.gate.set()
    await running
    assert kinds(desk).count("merge") >= 2


async def test_what_was_answered_is_not_asked_for_again_by_the_next_pass():
    desk = Desk(NARROW)
    failed = []

    def reply(_, request):
        if "part 3 of" in prompt_of(request) and not failed:
            failed.append(1)
            return error()
        return a("## Goal\nPart")

    desk.gateway.reply = reply
    with pytest.raises(ProviderError):
        await desk.run(sketch(LONG), 900, manual=True)
    before = list(desk.gateway.prompts)
    await desk.run(sketch(LONG), 900, manual=True)
    again = desk.gateway.prompts[len(before) :]
    assert [prompt for prompt in again if prompt in before] == [
        prompt for prompt in before if "part 3 of" in prompt
    ]


async def test_a_whole_summary_that_was_answered_is_remembered_until_a_compaction_is_stored():
    desk = Desk()
    for _ in range(2):
        await desk.run(sketch(WHOLE_TURNS))
    assert len(desk.gateway.requests) == 1
    desk.memory.forget_texts()
    await desk.run(sketch(WHOLE_TURNS))
    assert len(desk.gateway.requests) == 2


async def test_the_prompt_of_an_extension_takes_the_place_of_the_summary_prompt_alone():
    desk = Desk()
    await desk.run(sketch(SPLIT_TURN), extras=Extras("focus", ("a line",), "OWN PROMPT"))
    history, prefix = desk.gateway.prompts
    assert history.endswith("- a line\n</additional-context>\n\nOWN PROMPT\n\nAdditional focus: focus")
    assert f"\n\n{read_prompt('compaction-turn-prefix')}\n\nAdditional focus: focus" in prefix


async def test_the_carried_request_is_not_given_to_the_model():
    desk = Desk()
    stored = upsert_request("OLD TEXT", "Do it.")
    await desk.run(path(*parts("u500 a500"), compaction(stored, "e2"), *parts(WHOLE_TURNS)))
    (prompt,) = desk.gateway.prompts
    assert "<previous-summary>\nOLD TEXT\n</previous-summary>" in prompt
    assert "last-request" not in prompt


async def test_candidates_are_skipped_by_the_size_their_requests_would_have():
    """The first holds no part of it, the second only parts, and nobody asks the third."""
    desk = Desk(
        model("tiny", context_window=3_000, max_tokens=500),
        model("small", context_window=16_000, max_tokens=500),
        model("big"),
    )
    summary = await desk.run(sketch(LONG), 900)
    assert summary.model == "test/small"
    assert {row.id for row, _ in desk.gateway.requests} == {"small"}


async def test_a_staged_pass_that_is_tried_again_shows_its_progress_from_the_start():
    desk = Desk(NARROW)
    failed = []

    def reply(_, request):
        if "part 4 of" in prompt_of(request) and not failed:
            failed.append(1)
            return error()
        return a("## Goal\nPart")

    desk.gateway.reply = reply
    await desk.run(sketch(LONG), 900)
    assert (desk.progress[-1].done, desk.progress[-1].total) == (5, 5)
    assert all(report.done <= report.total for report in desk.progress)
