import asyncio
import contextlib
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.errors import ErrorKind, MaintenanceError, ProviderError
from musepi_tui.base.resources import read_prompt, render_prompt
from musepi_tui.context.stages import SerialMessage
from musepi_tui.runtime.staging import MOST_IN_FLIGHT, Gate, SummaryMemory, ask_all, summarize_in_stages
from musepi_tui.runtime.summary_requests import Extras, Piece
from tests.support.builders import stub_count, words

S = 32_000
"""Segment budget where the window is not known."""


def piece(*sizes, previous=None, extras=None, name="history"):
    """A history of messages of these sizes, each with its place in front; a negative one is a tool result."""
    messages = tuple(
        SerialMessage(f"m{index} {words(abs(size))}", abs(size), size < 0) for index, size in enumerate(sizes)
    )
    return Piece(
        name=name,
        messages=messages,
        instruction="SUMMARISE",
        merging="MERGE",
        previous=previous,
        extras=extras or Extras(),
        limit_tokens=800,
        segment_limit_tokens=500,
        overhead_tokens=100,
    )


class Model:
    """Answers prompts; ``sizes`` tokens a summary. ``refuse`` fails the prompts it accepts."""

    def __init__(self, size=10, name=""):
        self.size, self.name = size, name
        self.prompts, self.limits = [], []
        self.refuse = lambda prompt: False
        self.running = self.most_running = 0
        self.gate = None
        self.busy = asyncio.Event()

    async def ask(self, prompt, limit_tokens):
        self.prompts.append(prompt)
        number = len(self.prompts)
        self.limits.append(limit_tokens)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        if self.running == MOST_IN_FLIGHT:
            self.busy.set()
        try:
            if self.gate is not None:
                await self.gate.wait()
            await asyncio.sleep(0)
            if self.refuse(prompt):
                raise ProviderError("down", kind=ErrorKind.SERVER)
            return f"summary {number} {self.name}{words(self.size)}"
        finally:
            self.running -= 1

    @property
    def merges(self):
        return [prompt for prompt in self.prompts if prompt.startswith("<segment-summaries>")]

    @property
    def segments(self):
        return [prompt for prompt in self.prompts if prompt.startswith("<conversation>")]


async def staged(model, made, *, window=None, memory=None, expected=None):
    ask = model.ask if memory is None else memory.remembering("test/model", model.ask)
    counts = [] if expected is None else expected
    return await summarize_in_stages(made, window, Gate().closing(ask), stub_count, counts.append)


async def test_each_part_is_asked_for_and_one_merge_makes_the_summary():
    model = Model()
    made = piece(1_500, 1_500, -1_800, 900, previous="OLD", extras=Extras("the API", ("a line",)))
    done = await staged(model, made, window=16_000)
    assert done.stages == 2
    assert [prompt.split()[1] for prompt in model.segments] == ["m0", "m3"]
    for index, prompt in enumerate(model.segments, 1):
        instruction = render_prompt("compaction-segment", index=str(index), count="2")
        assert prompt.endswith(f"\n</conversation>\n\n{instruction}")
    assert model.limits == [500, 500, 800]
    (merge,) = model.merges
    assert '<segment index="1">\nsummary 1' in merge
    assert "\n\n<previous-summary>\nOLD\n</previous-summary>\n\n" in merge
    assert "\n\n<additional-context>\n- a line\n</additional-context>\n\nMERGE" in merge
    assert merge.endswith("\n\nMERGE\n\nAdditional focus: the API")


async def test_segments_know_nothing_of_what_came_before():
    model = Model()
    await staged(model, piece(3_000, 3_000, previous="OLD", extras=Extras("the API")), window=16_000)
    assert all("OLD" not in prompt and "the API" not in prompt for prompt in model.segments)


async def test_a_single_segment_still_gets_a_merge():
    model = Model()
    assert (await staged(model, piece(900))).stages == 2
    assert (len(model.segments), len(model.merges)) == (1, 1)


async def test_ten_long_summaries_are_merged_in_three_rounds():
    model = Model(9_000 - stub_count("summary 10 "))
    expected = []
    done = await staged(model, piece(*[S] * 10), expected=expected)
    assert done.stages == 4
    assert [prompt.count("<segment index") for prompt in model.merges] == [3, 3, 3, 2 + 1, 2]
    assert [("MERGE" in prompt) for prompt in model.merges] == [True] * 5
    assert sum(expected) == len(model.prompts) == 15


async def test_only_the_last_merge_takes_the_previous_summary_and_the_prompt_of_an_extension():
    model = Model(9_000)
    await staged(model, piece(*[S] * 4, previous="OLD", extras=Extras("focus", ("line",), "OWN PROMPT")))
    *rounds, last = model.merges
    assert len(rounds) == 1
    assert all(part not in rounds[0] for part in ("OLD", "focus", "line", "OWN PROMPT"))
    assert last.endswith("OWN PROMPT\n\nAdditional focus: focus")
    assert "OLD" in last


async def test_answers_keep_the_order_of_the_prompts():
    async def ask(prompt, _):
        for _ in range(int(prompt)):
            await asyncio.sleep(0)
        return f"answer {prompt}"

    assert await ask_all(["5", "1", "3"], 1, ask) == ["answer 5", "answer 1", "answer 3"]


async def test_four_requests_at_most_run_at_once():
    model = Model()
    model.gate = asyncio.Event()
    running = asyncio.ensure_future(staged(model, piece(*[S] * 9)))
    async with asyncio.timeout(5):
        await model.busy.wait()
    await asyncio.sleep(0.01)
    assert len(model.prompts) == MOST_IN_FLIGHT
    model.gate.set()
    await running
    assert model.most_running == MOST_IN_FLIGHT


async def test_after_a_failure_nothing_is_started_and_what_runs_is_waited_for():
    model = Model()
    model.refuse = lambda prompt: " m2 " in prompt.replace("\n", " ")
    with pytest.raises(ProviderError, match="down"):
        await staged(model, piece(*[S] * 12))
    assert model.running == 0
    assert len(model.segments) < 12
    assert model.merges == []


async def test_a_failed_third_segment_leaves_only_what_was_not_answered_for_the_next_try():
    memory, first, second = SummaryMemory(), Model(), Model()
    first.refuse = lambda prompt: " m2 " in prompt.replace("\n", " ")
    made = piece(*[S] * 5)
    with pytest.raises(ProviderError):
        await staged(first, made, memory=memory)
    answered = [prompt for prompt in first.segments if not first.refuse(prompt)]
    await staged(second, made, memory=memory)
    assert {prompt.split()[1] for prompt in second.segments} >= {"m2"}
    assert not {*answered} & {*second.segments}
    assert {*answered} | {*second.segments} >= {prompt for prompt in first.segments}
    assert len(answered) + len(second.segments) == 5


async def test_answers_are_remembered_by_model_limit_and_prompt():
    memory, model = SummaryMemory(), Model()
    await memory.remembering("test/model", model.ask)("prompt", 800)
    await memory.remembering("test/model", model.ask)("prompt", 800)
    assert list(memory.texts) == [hashlib.sha256(b"test/model\n800\nprompt").hexdigest()]
    for key, limit in (("test/other", 800), ("test/model", 500)):
        await memory.remembering(key, model.ask)("prompt", limit)
    assert len(model.prompts) == 3
    memory.forget_texts()
    await memory.remembering("test/model", model.ask)("prompt", 800)
    assert len(model.prompts) == 4


async def test_text_that_is_no_unicode_can_be_remembered():
    memory, model = SummaryMemory(), Model()
    await memory.remembering("m", model.ask)("half a pair \ud800", 1)
    assert len(memory.texts) == 1


async def test_a_closed_gate_lets_nothing_out_and_says_why():
    gate, model = Gate(), Model()
    gate.close(MaintenanceError("first"))
    gate.close(MaintenanceError("second"))
    with pytest.raises(MaintenanceError, match="first"):
        await gate.passing(model.ask)("prompt", 1)
    assert model.prompts == []


async def test_a_failure_behind_a_passing_gate_leaves_it_open():
    gate, model = Gate(), Model()
    model.refuse = lambda prompt: prompt == "bad"
    with pytest.raises(ProviderError):
        await gate.passing(model.ask)("bad", 1)
    assert await gate.passing(model.ask)("good", 1)


@given(
    st.lists(st.integers(-20_000, 20_000).filter(bool), min_size=1, max_size=25),
    st.integers(1, 12_000),
    st.sampled_from([None, 8_192, 60_000, 200_000]),
)
async def test_every_request_fits_the_budget_and_its_prompts_and_at_most_four_run(sizes, size, window):
    """Invariant 37. Messages that cannot be parted, and two summaries that are, may be larger."""
    model = Model(size)
    made = piece(*sizes)
    await staged(model, made, window=window)
    assert model.most_running <= MOST_IN_FLIGHT
    budget = 32_000 if window is None else min(32_000, max(2_000, window // 4))
    results = sum(abs(each) for each in sizes if each < 0)
    segment = stub_count(read_prompt("compaction-segment")) + 20 + 4 * len(sizes)
    largest = max(budget, *sizes, 0) + results
    assert all(stub_count(prompt) <= largest + segment for prompt in model.segments)
    for prompt in model.merges:
        parts = prompt.count("<segment index")
        assert stub_count(prompt) <= max(budget, 2 * (size + 4)) + 100 + 20 * parts


@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=12), st.sets(st.integers(0, 11)), st.data())
async def test_no_answered_request_is_sent_twice_however_often_it_is_tried(sizes, bad, data):
    """Invariant 38."""
    memory, made = SummaryMemory(), piece(*sizes)
    answered, model = set(), Model(data.draw(st.integers(1, 9_000), label="summary"))
    for attempt in range(3):
        failing = bad if attempt < 2 else set()
        model = Model(model.size, f"of try {attempt} ")
        model.refuse = lambda prompt, failing=failing: prompt.split()[1] in {f"m{index}" for index in failing}
        with contextlib.suppress(ProviderError):
            await staged(model, made, window=16_000, memory=memory)
        sent = model.prompts
        assert len(sent) == len(set(sent))
        assert not answered & set(sent)
        answered |= {prompt for prompt in sent if not model.refuse(prompt)}
    assert model.running == 0
