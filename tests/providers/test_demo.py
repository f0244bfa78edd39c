import asyncio
import json
import stat
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest

from musepi_tui.base.tokenizer import load_tokenizer
from musepi_tui.context.estimate import Estimator
from musepi_tui.context.merge import merge_split_turn
from musepi_tui.context.prepare import PrepareOptions, prepare_compaction
from musepi_tui.context.serialize import serialize_conversation
from musepi_tui.context.threshold import parse_threshold, resolve_threshold
from musepi_tui.context.usage import measure_context
from musepi_tui.providers.demo import project
from musepi_tui.providers.demo.spec import DEMO_MODEL, make_provider
from musepi_tui.providers.demo.stream import Pace
from musepi_tui.providers.types import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    Request,
    StreamDone,
    StreamError,
    StreamStart,
    ThinkingLevel,
)
from musepi_tui.session.messages import (
    AssistantMessage,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultMessage,
    text_of,
    tool_calls_of,
)
from tests.support.builders import a, dev, path, u
from tests.support.clock import FakeClock
from tests.support.demo import NO_KEY, DemoTalk

PROMPTS = ["fix the bug", "explain the code", "make a table", "add a feature", "hello there"]
QUICK = Pace(0, 0, words=40)


@pytest.fixture
def provider():
    made = make_provider(pace=QUICK, clock=FakeClock())
    yield made
    made.close()


@pytest.fixture
def talk(provider, tmp_path):
    return DemoTalk(provider, tmp_path)


def _folder(provider):
    return provider.extra_roots()[0]


def _results(talk):
    return [text_of(message.content) for message in talk.messages if isinstance(message, ToolResultMessage)]


def _answers(talk):
    return [message for message in talk.messages if isinstance(message, AssistantMessage)]


def _without_ids(message):
    return [
        (type(block).__name__, getattr(block, "arguments", None), getattr(block, "text", ""))
        for block in message
    ]


async def test_fixing_shows_a_failing_run_a_diff_and_a_passing_run(talk, provider):
    final = await talk.say("Please fix the bug")
    tools = [[call.name for call in tool_calls_of(answer)] for answer in _answers(talk)]
    assert tools == [["ls", "read", "grep"], ["bash"], ["read", "read"], ["edit"], ["bash"], []]
    runs = [text for text in _results(talk) if "Ran " in text]
    assert "FAILED (failures=2)" in runs[0]
    assert runs[1].rstrip().endswith("OK")
    assert project.FIX in (_folder(provider) / project.LEDGER).read_text()
    assert "12 tests, OK" in final


async def test_only_the_first_answer_says_that_this_is_a_script(talk):
    await talk.say("make a table")
    await talk.say("explain the code")
    labelled = ["a script, not a model" in text_of(answer.content) for answer in _answers(talk)]
    assert labelled == [True, False, False, False]


async def test_the_bug_is_put_back_for_a_second_time(talk):
    await talk.say("fix it")
    await talk.say("fix it")
    assert sum("FAILED" in text for text in _results(talk)) == 2
    assert "put the bug back" in text_of(_answers(talk)[6].content)


async def test_additions_are_made_again_after_the_fix_is_kept(talk, provider):
    await talk.say("fix it")
    for _ in range(2):
        final = await talk.say("add a feature")
        assert "15 tests, OK" in final
    assert project.FIX in (_folder(provider) / project.LEDGER).read_text()


@pytest.mark.parametrize("prompt", PROMPTS)
async def test_every_answer_has_form(talk, prompt):
    final = await talk.say(prompt)
    assert "| --- |" in final or "| ---: |" in final or "| --- | ---: |" in final
    assert "\n- " in final or "\n1. " in final
    assert "{{" not in final


async def test_explaining_uses_code_table_list_and_quote(talk):
    final = await talk.say("how does it work?")
    assert all(mark in final for mark in ("```python", "| --- |", "\n1. ", "\n- ", "\n> "))
    assert "fix the bug" in final
    await talk.say("fix the bug")
    assert "keeps all three" in await talk.say("explain")


async def test_free_text_is_told_what_can_be_shown(talk):
    final = await talk.say("Bonjour, 你好, what is the meaning of liff?")
    assert all(f"`{prompt}`" in final for prompt in PROMPTS[:4])


async def test_the_table_comes_from_the_real_search(talk, provider):
    file = _folder(provider) / project.REPORT
    file.write_text(file.read_text() + "\n\ndef invented_by_the_test():\n    pass\n")
    assert "| `invented_by_the_test` | `tally/report.py` |" in await talk.say("make a table")


async def test_a_denied_command_ends_the_script_with_its_reason(provider, tmp_path):
    talk = DemoTalk(provider, tmp_path, refused=frozenset({"bash"}))
    final = await talk.say("fix the bug")
    assert "> The user denied this call." in final
    assert project.BUG in (_folder(provider) / project.LEDGER).read_text()


async def test_a_denied_edit_ends_the_script_too(provider, tmp_path):
    talk = DemoTalk(provider, tmp_path, refused=frozenset({"edit"}))
    assert "not carried out" in await talk.say("fix the bug")


async def test_without_tools_it_says_what_is_missing(talk):
    talk.specs = ()
    final = await talk.say("fix the bug")
    assert "I would use grep, ls, read" in final


async def test_a_message_in_between_starts_its_own_topic(talk):
    talk.messages += [u("fix the bug"), a(calls=tool_calls_of(await talk.ask()) or ()), u("no, make a table")]
    answer = await talk.ask()
    assert [call.name for call in tool_calls_of(answer)] == ["grep", "find", "read", "read"]


@pytest.mark.parametrize(
    "messages",
    [
        [u("hi"), a("hello"), dev("go on with the latest request")],
        [u("Earlier work.\n\n<summary>\n## Goal\nx\n</summary>"), a("working on it")],
    ],
    ids=["asked to continue", "prompt lost in a compaction"],
)
async def test_nothing_is_left_to_do(talk, messages):
    talk.messages = messages
    assert "Nothing is left to do" in text_of((await talk.ask()).content)


async def test_a_reminder_within_a_turn_does_not_end_it(talk):
    talk.messages = [u("fix the bug")]
    first = await talk.ask()
    talk.messages += [first, *[await talk._run(call) for call in tool_calls_of(first)], dev("a reminder")]
    assert [call.name for call in tool_calls_of(await talk.ask())] == ["bash"]


async def test_the_answer_depends_on_the_messages_alone(talk):
    await talk.say("fix the bug")
    history = talk.messages
    for end in range(2, len(history)):
        if isinstance(history[end], AssistantMessage):
            talk.messages = history[:end]
            again = await talk.ask()
            assert _without_ids(again.content) == _without_ids(history[end].content)


async def test_a_resumed_session_goes_on_in_a_new_folder(talk, provider, tmp_path):
    await talk.say("fix the bug")
    other = make_provider(pace=QUICK, clock=FakeClock())
    resumed = DemoTalk(other, tmp_path)
    resumed.messages = list(talk.messages)
    assert "Definitions" in await resumed.say("make a table")
    assert _folder(other) != _folder(provider)
    assert str(_folder(other)) in _results(resumed)[-1] + _results(resumed)[-4]
    other.close()


async def test_a_project_that_vanished_is_made_again(talk, provider):
    await talk.say("make a table")
    (_folder(provider) / project.LEDGER).unlink()
    assert "`split_evenly`" in await talk.say("make a table")


def test_the_folder_is_private_and_removed_at_the_end(provider):
    folder = _folder(provider)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / project.LEDGER).is_file()
    provider.close()
    assert not folder.exists()
    assert _folder(provider) != folder


async def test_a_full_disk_is_an_error_with_a_remedy(provider, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    events = [event async for event in provider.stream(DEMO_MODEL, NO_KEY, Request("", (u("fix"),)))]
    assert isinstance(events[-1], StreamError)
    assert "TMPDIR" in str(events[-1].error)
    assert events[-1].message.stop_reason is StopReason.ERROR


async def test_the_stream_keeps_the_contract(talk):
    talk.messages = [u("fix the bug")]
    answer = await talk.ask()
    kinds = [type(event) for event in talk.events]
    assert (kinds[0], kinds[-1], kinds.count(StreamDone)) == (StreamStart, StreamDone, 1)
    started = [event.content_index for event in talk.events if isinstance(event, BlockStart)]
    ended = [event for event in talk.events if isinstance(event, BlockEnd)]
    assert started == [event.content_index for event in ended] == list(range(len(answer.content)))
    for end, block in zip(ended, answer.content, strict=True):
        deltas = "".join(
            event.delta
            for event in talk.events
            if isinstance(event, BlockDelta) and event.content_index == end.content_index
        )
        match block:
            case TextBlock():
                assert deltas == end.content == block.text
            case ThinkingBlock():
                assert deltas == end.content == block.thinking
            case _:
                assert json.loads(deltas) == block.arguments
                assert end.tool_call == block
    assert answer.stop_reason is StopReason.TOOL_USE


async def test_thinking_can_be_switched_off(provider):
    request = Request("", (u("hello"),), thinking=ThinkingLevel.OFF)
    events = [event async for event in provider.stream(DEMO_MODEL, NO_KEY, request)]
    assert not [event for event in events if isinstance(event, BlockStart) and event.kind == "thinking"]


async def test_what_was_said_is_kept_when_it_is_stopped():
    clock = FakeClock()
    clock.hold()
    provider = make_provider(pace=Pace(0.4, 0.016, words=2), clock=clock)
    stream = provider.stream(DEMO_MODEL, NO_KEY, Request("", (u("hello"),), thinking=ThinkingLevel.OFF))
    seen = []

    async def read():
        async for event in stream:
            seen.append(event)

    reader = asyncio.create_task(read())
    while len([event for event in seen if isinstance(event, BlockDelta)]) < 3:
        clock.advance(0.5)
        await asyncio.sleep(0.001)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await stream.aclose()
    await stream.aclose()
    partial = stream.partial()
    assert partial.stop_reason is StopReason.ABORTED
    assert text_of(partial.content) == "".join(event.delta for event in seen if isinstance(event, BlockDelta))
    assert text_of(partial.content).startswith("**I am the demo")
    provider.close()


async def test_an_answer_takes_a_few_seconds(tmp_path):
    clock = FakeClock()
    provider = make_provider(clock=clock)
    talk = DemoTalk(provider, tmp_path)
    times = [clock.monotonic()]
    for prompt in PROMPTS:
        await talk.say(prompt)
        times.append(clock.monotonic())
    assert all(2 < end - start < 12 for start, end in pairwise(times))
    provider.close()


async def test_usage_grows_and_its_prefix_comes_from_the_cache(talk):
    await talk.say("fix the bug")
    usages = [answer.usage for answer in _answers(talk)]
    assert usages[0].cache_read == 0
    for before, after in pairwise(usages):
        assert after.cache_read == before.input + before.cache_read
        assert after.total_tokens == after.input + after.cache_read + after.output > before.total_tokens


async def test_three_prompts_of_any_kind_lead_to_one_compaction(provider, tmp_path):
    count = load_tokenizer("auto").count
    estimate = Estimator(count)
    talk = DemoTalk(provider, tmp_path)
    other = count(talk.system) + sum(
        count(f"{tool.name}{tool.description}{json.dumps(tool.parameters)}") for tool in talk.specs
    )
    threshold = resolve_threshold(parse_threshold("auto"), DEMO_MODEL.context_window or 0, None)
    room = threshold.tokens - other
    sizes = []
    for prompt in PROMPTS:
        begin = len(talk.messages)
        await talk.say(prompt)
        sizes.append(sum(estimate(message) for message in talk.messages[begin:]))
    assert 2 * max(sizes) <= room < 3 * min(sizes)


async def test_what_a_compaction_leaves_passes_the_guard(provider, tmp_path):
    count = load_tokenizer("auto").count
    estimate = Estimator(count)
    talk = DemoTalk(provider, tmp_path)
    other = count(talk.system) + sum(
        count(f"{tool.name}{tool.description}{json.dumps(tool.parameters)}") for tool in talk.specs
    )
    window = DEMO_MODEL.context_window or 0
    threshold = resolve_threshold(parse_threshold("auto"), window, None)
    figures = []
    for prompt in ("hello there", "fix the bug", "explain the code"):
        await talk.say(prompt)
        figures.append(measure_context(talk.messages, estimate, other_tokens=other).decision)
    assert figures[1] <= threshold.tokens < figures[2] < window
    entries = path(*talk.messages)
    options = PrepareOptions(10_000, window=window, threshold=threshold, other_tokens=other)
    plan = prepare_compaction(entries, options, estimate)
    assert plan is not None
    texts = []
    for messages, instruction in (
        (plan.history_messages, "compaction-summary"),
        (plan.prefix_messages, "compaction-turn-prefix"),
    ):
        talk.messages = [u(_summary_request(messages, instruction))]
        texts.append(text_of((await talk.ask()).content))
    summary = merge_split_turn(texts[0], texts[1] if plan.is_split_turn else None)
    elided = sum(elision.tokens for elision in plan.elisions)
    residual = other + count(summary) + 60 + plan.tokens.kept - elided
    assert residual <= 0.8 * threshold.tokens
    assert count(summary) < 0.1 * window


def _summary_request(messages, instruction):
    text = Path(__file__).parents[2].joinpath("prompts", f"{instruction}.md").read_text()
    return f"<conversation>\n{serialize_conversation(messages)}\n</conversation>\n\n{text}"


@pytest.mark.parametrize("is_there", [True, False])
def test_python3_is_named_plainly_where_there_is_one(tmp_path, monkeypatch, is_there):
    if is_there:
        (tmp_path / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    python = "python3" if is_there else sys.executable
    assert project.tests_command(Path("/a b")) == f"{python} -IB -m unittest discover -s '/a b'"
