import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from musepi_tui.base.errors import ErrorKind, NotASessionFileError, SessionBusyError, SessionError
from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.runtime.events import (
    AgentSettled,
    AssistantDelta,
    AssistantStarted,
    EntryAppended,
    IntentSettled,
    MaintenanceEnded,
    MaintenanceStarted,
    ModelChanged,
    Notice,
    Phase,
    PhaseChanged,
    QueueChanged,
    SessionReady,
    UsageChanged,
)
from musepi_tui.runtime.intents import (
    Cancel,
    Compact,
    NewSession,
    OpenSession,
    SelectModel,
    SetMode,
    SetThinking,
    SubmitPrompt,
)
from musepi_tui.runtime.options import SessionChoice
from musepi_tui.runtime.session import SessionRuntime
from musepi_tui.session.entries import CompactionEntry
from musepi_tui.session.messages import (
    CompactionSummary,
    StopReason,
    Usage,
    UserMessage,
    text_of,
)
from musepi_tui.storage.loading import load_session
from tests.support.builders import call
from tests.support.fake_provider import Hang, failure
from tests.support.harness import Harness, reopened, running


def types_in(path: Path) -> list[str]:
    return [head.type for head in load_session(path).tree.path()]


async def test_a_new_session_is_ready_and_writes_nothing(scripted, musepi_home: Path):
    _, options = scripted()
    async with running(options) as harness:
        view = harness.of(SessionReady)[0].view
        assert (view.phase, view.model.key, view.mode) == (Phase.IDLE, "local/m1", "yolo")
        assert view.tail == ()
    assert not (musepi_home / "sessions").exists()


async def test_the_file_is_there_once_the_first_prompt_is_accepted(scripted):
    _, options = scripted(("hi", Hang()))
    async with running(options) as harness:
        settled = await harness.settle(SubmitPrompt("hello"))
        assert settled.ok
        assert types_in(harness.file)[:2] == ["model_change", "message"]


async def test_prompts_sent_before_the_session_is_loaded_run_afterwards(scripted):
    provider, options = scripted(("1",), ("2",))
    async with SessionRuntime.open(options) as runtime, asyncio.TaskGroup() as group:
        harness = Harness(runtime)
        collecting = group.create_task(harness.collect())
        runtime.send(SubmitPrompt("one"))
        runtime.send(SubmitPrompt("two"))
        await harness.wait_for(QueueChanged, lambda event: event.steering == ("one", "two"))
        assert runtime.view().phase is Phase.LOADING
        runtime.begin()
        runtime.begin()
        await harness.wait_for(AgentSettled)
        collecting.cancel()
    assert [text_of(message.content) for message in harness.messages()] == ["one", "1", "two", "2"]
    assert len(harness.of(SessionReady)) == 1
    assert all(event.ok for event in harness.of(IntentSettled))


async def test_other_intents_are_refused_while_loading(scripted):
    _, options = scripted()
    async with SessionRuntime.open(options) as runtime, asyncio.TaskGroup() as group:
        harness = Harness(runtime)
        collecting = group.create_task(harness.collect())
        settled = await harness.settle(Compact())
        assert (settled.ok, settled.error) == (False, "The session is still being loaded.")
        collecting.cancel()


async def test_a_resumed_session_sends_what_it_would_have_sent(scripted, project: Path):
    (project / "a.txt").write_text("alpha")
    first, options = scripted((call("read", "c1", path="a.txt"),), ("It says alpha.",), ("going on",))
    async with running(options) as harness:
        await harness.prompt("read it")
        path, live = harness.file, harness.runtime.context_messages()
    second, again = scripted(("going on",))
    async with running(reopened(again, path)) as harness:
        view = harness.of(SessionReady)[0].view
        assert harness.runtime.context_messages() == live
        assert view.model.key == "local/m1"
        assert view.tree.leaf_id == live[-1][0]
        await harness.prompt("go on")
    assert second.requests[0].messages[:-1] == tuple(message for _, message in live)
    assert second.requests[0].system == first.requests[0].system
    assert types_in(path).count("model_change") == 1


async def test_the_end_of_a_stored_session_is_there_before_it_is_loaded(scripted):
    _, options = scripted(("answer",))
    async with running(options) as harness:
        await harness.prompt("question")
        path = harness.file
    async with SessionRuntime.open(reopened(options, path)) as runtime:
        view = runtime.view()
        assert [text_of(entry.message.content) for entry in view.tail if entry.type == "message"] == [
            "question",
            "answer",
        ]
        assert view.tail_is_whole
        assert runtime.read_entry(view.tail[-1].id) == view.tail[-1]


async def test_figures_of_a_resumed_session_are_there_before_the_first_prompt(scripted):
    _, options = scripted(("answer", Usage(input=900, output=100, cache_read=50, total_tokens=1050)))
    async with running(options) as harness:
        await harness.prompt("question")
        path = harness.file
    async with running(reopened(options, path)) as harness:
        assert harness.of(SessionReady)[0].view.meter.context_tokens == 1050
        meter = (await harness.wait_for(UsageChanged, lambda event: event.meter.totals.output > 0)).meter
        assert (meter.totals.input, meter.totals.output, meter.totals.cache_read) == (900, 100, 50)


async def test_a_session_that_another_runtime_writes_is_refused_at_once(scripted):
    _, options = scripted(("answer",))
    async with running(options) as harness:
        await harness.prompt("question")
        with pytest.raises(SessionBusyError, match="pid"):
            async with SessionRuntime.open(reopened(options, harness.file)):
                pass
    async with running(reopened(options, harness.file)):
        pass


async def test_a_file_that_is_no_session_is_refused_at_once(scripted, tmp_path: Path):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"some":"thing"}\n')
    _, options = scripted()
    with pytest.raises(NotASessionFileError):
        async with SessionRuntime.open(reopened(options, path)):
            pass
    assert path.read_text() == '{"some":"thing"}\n'


async def test_a_session_of_a_newer_version_is_refused_at_once(scripted, tmp_path: Path):
    path = tmp_path / "s.jsonl"
    path.write_text(
        '{"type":"session","version":9,"id":"x","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}\n'
    )
    _, options = scripted()
    with pytest.raises(SessionError, match="version 9"):
        async with SessionRuntime.open(reopened(options, path)):
            pass


async def test_damage_in_a_session_file_is_told_once_it_is_loaded(scripted):
    _, options = scripted(("a",), ("b",))
    async with running(options) as harness:
        await harness.prompt("one")
        path = harness.file
    with path.open("ab") as file:
        file.write(b'{"type":"message","id":"torn')
    async with running(reopened(options, path)) as harness:
        assert (await harness.notice("unreadable line")).level == "warning"
        await harness.prompt("two")
    assert types_in(path).count("message") == 4


async def test_opening_the_session_that_is_open_changes_nothing(scripted):
    _, options = scripted(("a",))
    async with running(options) as harness:
        await harness.prompt("one")
        assert (await harness.settle(OpenSession(str(harness.file)))).ok
        assert [event.reason for event in harness.of(SessionReady)] == ["start", "resume"]
        assert len(harness.runtime.context_messages()) == 2


async def test_the_body_of_the_block_may_fail_as_it_likes(scripted):
    _, options = scripted()
    with pytest.raises(ZeroDivisionError):
        async with SessionRuntime.open(options):
            raise ZeroDivisionError


async def test_closing_in_mid_answer_stores_what_was_received(scripted):
    _, options = scripted(("Half an ans", call("ls", "c1"), Hang()))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("go"))
        await harness.wait_for(
            AssistantDelta, lambda event: getattr(event.event, "tool_call", None) is not None
        )
        started = time.monotonic()
        await harness.runtime.close()
        assert time.monotonic() - started < 5
        path = harness.file
        await harness.collected()
        count = len(harness.events)
        harness.runtime.send(SubmitPrompt("too late"))
        await asyncio.sleep(0.01)
    entries = [entry for entry in load_session(path).read_path() if entry.type == "message"]
    assert [type(entry.message).__name__ for entry in entries] == [
        "UserMessage",
        "AssistantMessage",
        "ToolResultMessage",
    ]
    assert entries[1].message.stop_reason is StopReason.ABORTED
    assert text_of(entries[1].message.content) == "Half an ans"
    assert PhaseChanged(Phase.CLOSING) in harness.events
    assert harness.events[count:] == []


async def test_closing_ends_a_running_command(scripted):
    _, options = scripted((call("bash", "c1", command="echo started; sleep 60"),))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("go"))
        await harness.wait_for(PhaseChanged, lambda event: event.phase is Phase.TOOLS)
        await asyncio.sleep(0.2)
        started = time.monotonic()
        await harness.runtime.close()
        assert time.monotonic() - started < 5
    entries = [entry for entry in load_session(harness.file).read_path() if entry.type == "message"]
    assert entries[-1].message.is_error


async def test_a_missing_key_gives_the_prompt_back(scripted, musepi_home: Path):
    provider, options = scripted()
    (musepi_home / "models.json").unlink()
    async with running(replace(options, model=None)) as harness:
        settled = await harness.settle(SubmitPrompt("hello"))
        assert not settled.ok
        assert "No model is configured" in settled.error
        assert harness.notices("error")
        await harness.wait_for(AgentSettled)
        assert harness.runtime.view().phase is Phase.IDLE
        assert not harness.runtime.view().turn_open
    assert provider.requests == []


async def test_the_demo_is_chosen_when_it_may_and_nothing_else_is_there(scripted, musepi_home: Path):
    _, options = scripted()
    (musepi_home / "models.json").unlink()
    async with running(replace(options, model=None, allow_demo=True)) as harness:
        assert harness.runtime.view().model.key == "demo/demo"


async def test_an_unknown_model_is_told_and_the_program_goes_on(scripted):
    _, options = scripted()
    async with running(replace(options, model="nowhere-model-xyz")) as harness:
        assert harness.runtime.view().model is None
        assert (await harness.notice("nowhere-model-xyz")).level == "error"
        settled = await harness.settle(SelectModel("local", "m1"))
        assert settled.ok
        await harness.prompt("hello")
    assert harness.texts() == ["hello", "done"]


async def test_a_broken_models_file_is_told_after_the_session_is_ready(scripted, musepi_home: Path):
    _, options = scripted()
    (musepi_home / "models.json").write_text("{ broken")
    async with running(replace(options, model="demo/demo")) as harness:
        await harness.wait_for(Notice, lambda event: event.source == "models")
    ready = harness.events.index(harness.of(SessionReady)[0])
    assert all(harness.events.index(event) > ready for event in harness.of(Notice))


async def test_a_chosen_model_is_stored_at_once_in_a_started_session(scripted, musepi_home: Path):
    _, options = scripted(("a",), ("b",))
    models = json.loads((musepi_home / "models.json").read_text())
    row = models["providers"]["local"]["models"][0]
    models["providers"]["local"]["models"].append(
        row | {"id": "m2", "reasoning": True, "contextWindow": 50_000}
    )
    (musepi_home / "models.json").write_text(json.dumps(models))
    async with running(options) as harness:
        await harness.prompt("one")
        assert (await harness.settle(SelectModel("local", "m2"))).ok
        assert (await harness.settle(SetThinking("high"))).ok
        assert harness.of(ModelChanged)[-1].thinking_level == "high"
        assert harness.runtime.view().meter.window == 50_000
        assert not (await harness.settle(SetThinking("enormous"))).ok
        await harness.prompt("two")
        path = harness.file
    assert [kind for kind in types_in(path) if kind != "message"] == [
        "model_change",
        "model_change",
        "thinking_level_change",
        "thinking_level_change",
    ]
    async with running(reopened(options, path)) as harness:
        view = harness.runtime.view()
        assert (view.model.key, view.thinking_level) == ("local/m2", "high")


async def test_choices_before_the_first_prompt_leave_one_entry(scripted):
    _, options = scripted(("a",))
    async with running(options) as harness:
        await harness.settle(SelectModel("demo", "demo"))
        await harness.settle(SelectModel("local", "m1"))
        await harness.prompt("one")
    assert types_in(harness.file) == ["model_change", "message", "message"]


async def test_the_approval_mode_can_be_changed(scripted):
    _, options = scripted()
    async with running(options) as harness:
        assert (await harness.settle(SetMode("ask"))).ok
        assert harness.runtime.view().mode == "ask"
        assert not (await harness.settle(SetMode("anything"))).ok


async def test_a_new_session_takes_the_place_of_the_old_one(scripted):
    _, options = scripted(("a",), ("b",))
    async with running(options) as harness:
        await harness.prompt("one")
        first = harness.file
        assert (await harness.settle(NewSession())).ok
        ready = harness.of(SessionReady)[-1]
        assert ready.reason == "new"
        assert ready.view.tree.leaf_id is None
        assert ready.view.model.key == "local/m1"
        await harness.prompt("two")
        second = harness.file
        assert first != second
        assert (await harness.settle(OpenSession(str(first)))).ok
        assert harness.of(SessionReady)[-1].reason == "resume"
        assert [text_of(message.content) for _, message in harness.runtime.context_messages()] == ["one", "a"]
    assert types_in(second) == ["model_change", "message", "message"]


async def test_a_session_that_cannot_be_opened_leaves_the_old_one(scripted, tmp_path: Path):
    _, options = scripted(("a",), ("b",))
    async with running(options) as harness:
        await harness.prompt("one")
        settled = await harness.settle(OpenSession(str(tmp_path / "missing.jsonl")))
        assert not settled.ok
        await harness.prompt("two")
        assert harness.runtime.view().phase is Phase.IDLE
    assert harness.texts() == ["one", "a", "two", "b"]


async def test_switching_is_refused_during_a_turn(scripted):
    _, options = scripted(("a", Hang()))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("one"))
        await harness.wait_for(AssistantDelta)
        settled = await harness.settle(NewSession())
        assert (settled.ok, settled.error) == (False, "wait for the turn to end or press esc")


async def test_a_session_of_a_folder_that_is_gone_works_here_with_a_notice(
    scripted, tmp_path: Path, project: Path
):
    path = tmp_path / "s.jsonl"
    header = {
        "type": "session",
        "version": 3,
        "id": "x",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "cwd": "/gone",
    }
    path.write_text(json.dumps(header) + "\n")
    provider, options = scripted(("a",))
    async with running(replace(reopened(options, path), model="local/m1")) as harness:
        assert (await harness.notice("/gone")).level == "warning"
        await harness.prompt("where are you")
    assert str(project) in provider.requests[0].system


LONG = "word " * 4000


def long_scripts():
    """Three turns that fill a window of 12,000 tokens, then whatever is asked."""
    return [
        (LONG, Usage(4000 * (turn + 1), 1000, total_tokens=4000 * (turn + 1) + 1000)) for turn in range(2)
    ]


async def long_session(harness: Harness) -> None:
    await harness.prompt("first " + LONG[:200])
    await harness.prompt("second")


SMALL = ("compaction.keepRecentTokens=100",)


async def test_compact_summarises_older_history(scripted):
    provider, options = scripted(
        *long_scripts(), ("next",), summary=("## Goal\nEverything so far.",), settings=SMALL
    )
    async with running(options) as harness:
        await long_session(harness)
        before = len(harness.events)
        settled = await harness.settle(Compact())
        assert settled.ok, settled.error
        names = harness.names(before, without=("PhaseChanged", "MaintenanceProgress", "UsageChanged"))
        assert names == ["MaintenanceStarted", "EntryAppended", "MaintenanceEnded", "IntentSettled"]
        ended = harness.of(MaintenanceEnded)[0]
        assert (ended.reason, ended.aborted, ended.error) == ("manual", False, None)
        assert PhaseChanged(Phase.MAINTAINING) in harness.events
        assert harness.runtime.view().phase is Phase.IDLE
        assert harness.of(AgentSettled)[-1] in harness.events[:before]
        await harness.prompt("third")
        path, live = harness.file, harness.runtime.context_messages()
    assert "Everything so far." in text_of(provider.requests[-1].messages[0].content)
    entry = next(entry for entry in load_session(path).read_path() if isinstance(entry, CompactionEntry))
    assert (ended.result.entry_id, entry.reason) == (entry.id, "manual")
    async with running(reopened(options, path)) as harness:
        assert harness.runtime.context_messages() == live


async def test_a_turn_over_the_threshold_is_followed_by_a_pass(scripted):
    _, options = scripted(
        *long_scripts(), settings=(*SMALL, "compaction.threshold=8000", "compaction.autoContinue=false")
    )
    async with running(options) as harness:
        await harness.prompt("first")
        assert harness.of(MaintenanceStarted) == []
        await harness.prompt("second")
    names = harness.names(without=("PhaseChanged", "MaintenanceProgress", "UsageChanged", "AssistantDelta"))
    assert names[-5:] == [
        "AgentEnded",
        "MaintenanceStarted",
        "EntryAppended",
        "MaintenanceEnded",
        "AgentSettled",
    ]
    assert harness.of(MaintenanceStarted)[0].reason == "threshold"
    assert harness.of(MaintenanceEnded)[0].error is None


async def test_compact_on_a_short_session_says_why_not(scripted):
    _, options = scripted(("a",))
    async with running(options) as harness:
        await harness.prompt("one")
        settled = await harness.settle(Compact())
        assert (settled.ok, settled.error) == (False, "Nothing to compact (session too small)")


async def test_a_cancelled_pass_leaves_everything_as_it_was(scripted):
    _, options = scripted(*long_scripts(), summary=("## Goal", Hang()), settings=SMALL)
    async with running(options) as harness:
        await long_session(harness)
        before, live = harness.file.read_bytes(), harness.runtime.context_messages()
        intent_id = harness.runtime.send(Compact())
        await harness.wait_for(MaintenanceStarted)
        settled = await harness.settle(Cancel())
        assert settled.data == {"cancelled": "compaction"}
        ended = await harness.wait_for(IntentSettled, lambda event: event.intent_id == intent_id)
        assert (ended.ok, ended.error) == (False, "Compaction cancelled")
        assert harness.of(MaintenanceEnded)[0].aborted
        assert harness.file.read_bytes() == before
        assert harness.runtime.context_messages() == live


async def test_messages_typed_during_a_pass_are_delivered_afterwards(scripted):
    gate = asyncio.Event()
    _, options = scripted(
        *long_scripts(),
        ("answer 3",),
        ("answer 4",),
        summary=("## Goal\nA summary.", Hang(gate)),
        settings=SMALL,
    )
    async with running(options) as harness:
        await long_session(harness)
        before = len(harness.events)
        harness.runtime.send(Compact())
        await harness.wait_for(MaintenanceStarted)
        assert (await harness.settle(SubmitPrompt("third"))).ok
        assert (await harness.settle(SubmitPrompt("fourth", delivery="follow_up"))).ok
        assert "Queued until the compaction ends" in harness.notices()
        gate.set()
        await harness.wait_for(AgentSettled, after=before)
    assert harness.texts()[-4:] == ["third", "answer 3", "fourth", "answer 4"]


async def test_messages_typed_during_a_failed_pass_are_delivered_too(scripted):
    gate = asyncio.Event()
    _, options = scripted(
        *long_scripts(),
        ("answer 3",),
        summary=(Hang(gate), failure(ErrorKind.AUTH, "bad key", status=401)),
        settings=SMALL,
    )
    async with running(options) as harness:
        await long_session(harness)
        before = len(harness.events)
        harness.runtime.send(Compact())
        await harness.wait_for(MaintenanceStarted)
        await harness.settle(SubmitPrompt("third"))
        gate.set()
        await harness.wait_for(AgentSettled, after=before)
        assert harness.of(MaintenanceEnded)[0].error
    assert harness.texts()[-2:] == ["third", "answer 3"]


async def test_compact_stops_a_running_turn_and_resumes_it(scripted):
    _, options = scripted(*long_scripts(), ("half", Hang()), settings=SMALL)
    async with running(options) as harness:
        await long_session(harness)
        before = len(harness.events)
        harness.runtime.send(SubmitPrompt("third"))
        await harness.wait_for(AssistantDelta, after=before)
        settled = await harness.settle(Compact())
        assert settled.ok, settled.error
        await harness.wait_for(AgentSettled, after=before)
    answers = [event.entry.message for event in harness.of(EntryAppended) if event.live_id]
    assert [answer.stop_reason for answer in answers[-2:]] == [StopReason.ABORTED, StopReason.STOP]
    assert "auto-continue" in [
        event.entry.custom_type for event in harness.of(EntryAppended) if event.entry.type == "custom_message"
    ]


async def test_a_second_compact_is_refused_while_one_runs(scripted):
    _, options = scripted(*long_scripts(), summary=("## Goal", Hang()), settings=SMALL)
    async with running(options) as harness:
        await long_session(harness)
        harness.runtime.send(Compact())
        await harness.wait_for(MaintenanceStarted)
        settled = await harness.settle(Compact())
        assert (settled.ok, settled.error) == (False, "Compaction already in progress")


async def test_a_summary_stands_in_front_of_the_live_messages(scripted):
    _, options = scripted(*long_scripts(), settings=SMALL)
    async with running(options) as harness:
        await long_session(harness)
        await harness.settle(Compact())
        messages = harness.runtime._stage.desk.history.messages
        assert isinstance(messages[0], CompactionSummary)
        assert not any(isinstance(message, CompactionSummary) for message in messages[1:])


async def test_stored_sessions_are_listed(scripted):
    _, options = scripted(("a",))
    async with running(options) as harness:
        await harness.prompt("one")
        listed = await harness.runtime.list_sessions()
        assert [row.path for row in listed] == [harness.file]


async def test_a_session_with_its_own_path_is_made_there(scripted, tmp_path: Path):
    _, options = scripted(("a",))
    path = tmp_path / "here.jsonl"
    async with running(replace(options, session=SessionChoice("new", path))) as harness:
        await harness.prompt("one")
    assert types_in(path) == ["model_change", "message", "message"]
    assert [type(message) for message in harness.messages()][0] is UserMessage


async def test_a_message_that_cannot_be_written_is_kept_and_told(scripted, monkeypatch: pytest.MonkeyPatch):
    _, options = scripted(("a",), ("b",))
    async with running(options) as harness:
        await harness.prompt("one")
        file = harness.runtime._stage.desk.history.saver._file
        real, file.append = file.append, _refuse
        await harness.prompt("two")
        assert harness.runtime.view().unsaved == 2
        assert any("could not write" in text for text in harness.notices("error"))
        assert [event.saved for event in harness.of(EntryAppended)][-2:] == [False, False]
        file.append = real
    assert [entry.type for entry in load_session(harness.file).read_path()].count("message") == 4
    assert harness.runtime.rescue_files == ()


def _refuse(_):
    raise SessionError("could not write") from OSError(28, "No space left on device")


async def test_answers_begin_only_after_the_prompt_is_stored(scripted):
    _, options = scripted(("a",))
    async with running(options) as harness:
        await harness.prompt("one")
    started = harness.events.index(harness.of(AssistantStarted)[0])
    stored = harness.events.index(harness.of(EntryAppended)[1])
    assert stored < started


async def test_a_bug_while_loading_is_told_and_ends_what_waits_for_the_session(scripted):
    def broken() -> ModelRegistry:
        raise ValueError("a bug")

    _, options = scripted(registry=broken)
    async with asyncio.TaskGroup() as group, SessionRuntime.open(options) as runtime:
        harness = Harness(runtime)
        group.create_task(harness.collect())
        runtime.begin()
        notice = await harness.notice("could not be loaded")
        settled = await harness.settle(SubmitPrompt("hello"))
    assert (notice.level, notice.source) == ("error", "session")
    assert "could not be loaded" in settled.error
