import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from musepi_tui.runtime.desk import Desk
from musepi_tui.runtime.events import (
    AgentSettled,
    AgentStarted,
    IntentSettled,
    Phase,
    PhaseChanged,
    SessionReady,
)
from musepi_tui.runtime.intents import (
    Cancel,
    CloneSession,
    Compact,
    DeleteSession,
    ExportSession,
    Flush,
    ForkSession,
    Handoff,
    MoveSession,
    NavigateTree,
    NewSession,
    OpenSession,
    Retry,
    SelectModel,
    SetLabel,
    SetName,
    SetThinking,
    SubmitPrompt,
    WaitForSession,
)
from musepi_tui.runtime.options import SessionChoice
from musepi_tui.runtime.saving import Saver
from musepi_tui.runtime.session import SessionRuntime
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.lock import WriterLock
from musepi_tui.storage.paths import artifact_folder, session_folder
from tests.support.clock import FakeClock
from tests.support.fake_provider import Hang
from tests.support.harness import Harness, reopened, running
from tests.support.lines import chain, header_line, record, user_record, write_lines


def types_in(path: Path) -> list[str]:
    return [head.type for head in load_session(path).tree.path()]


def texts_in(path: Path) -> list[str]:
    found = (json.loads(line) for line in path.read_bytes().splitlines())
    return [
        str(line["message"]["content"])
        for line in found
        if line["type"] == "message" and line["message"]["role"] == "user"
    ]


def user_ids(path: Path) -> list[str]:
    return [head.id for head in load_session(path).heads if head.role == "user"]


async def changed(harness: Harness, reason: str) -> SessionReady:
    return await harness.wait_for(SessionReady, lambda event: event.reason == reason)


@pytest.fixture
def stored(tmp_path: Path, project: Path) -> Path:
    lines = [*chain("one", "two"), user_record("x1", "e1", "other branch", 5)]
    return write_lines(tmp_path / "stored.jsonl", header_line(cwd=str(project)), *lines)


async def test_fork_goes_on_in_a_copy_with_every_branch(scripted, stored):
    _, options = scripted(("answer",))
    before = stored.read_bytes()
    async with running(reopened(options, stored)) as harness:
        settled = await harness.settle(ForkSession())
        ready = await changed(harness, "fork")
        assert settled.data == {"sessionId": ready.view.header.id, "sessionFile": str(harness.file)}
        assert ready.view.header.parent_session == str(stored)
        assert len(ready.view.tree) == 3
        await harness.prompt("three")
        assert "three" in texts_in(harness.file)[-1]
    assert stored.read_bytes() == before


async def test_fork_before_a_user_message_gives_its_text_back(scripted):
    _, options = scripted(("1",), ("2",))
    async with running(options) as harness:
        await harness.prompt("first")
        await harness.prompt("second")
        source = harness.file
        settled = await harness.settle(ForkSession(user_ids(source)[1]))
        assert settled.data is not None
        assert settled.data["text"] == "second"
        assert await changed(harness, "branch")
        assert [text for text in texts_in(harness.file) if "first" in text]
        assert len(user_ids(harness.file)) == 1
        assert len(user_ids(source)) == 2


async def test_fork_before_the_first_message_gets_its_file_with_the_next_prompt(scripted):
    _, options = scripted(("1",), ("2",))
    async with running(options) as harness:
        await harness.prompt("first")
        source = harness.file
        await harness.settle(ForkSession(user_ids(source)[0]))
        copy = harness.file
        assert not copy.exists()
        await harness.prompt("again")
        loaded = load_session(copy)
        assert loaded.issues == ()
        assert [head.type for head in loaded.heads] == types_in(copy)
        assert types_in(copy).count("model_change") == 1
        assert (len(user_ids(copy)), loaded.header.parent_session) == (1, str(source))


async def test_clone_copies_the_path_alone(scripted, stored):
    _, options = scripted()
    async with running(reopened(options, stored)) as harness:
        assert (await harness.settle(CloneSession())).ok
        ready = await changed(harness, "clone")
        assert [head.id for head in ready.view.tree.path()] == ["e1", "x1"]
        assert len(ready.view.tree) == 2


@pytest.mark.parametrize(("intent", "what"), [(ForkSession(), "fork"), (CloneSession(), "clone")])
async def test_a_session_without_a_file_cannot_be_copied(intent, what, scripted):
    _, options = scripted()
    for choice in (SessionChoice(), SessionChoice("memory")):
        async with running(replace(options, session=choice)) as harness:
            settled = await harness.settle(intent)
            assert settled.error == f"Cannot {what}: this session is not saved"
            assert (await harness.settle(SetName("still works"))).ok


@pytest.mark.parametrize(
    "intent", [NewSession(), ForkSession(), CloneSession()], ids=["new", "fork", "clone"]
)
async def test_what_is_sent_right_behind_a_switch_is_for_the_other_session(intent, scripted, stored):
    _, options = scripted(("answer",))
    async with running(reopened(options, stored)) as harness:
        before = stored.read_bytes()
        harness.runtime.send(intent)
        harness.runtime.send(SubmitPrompt("for the other one"))
        await harness.wait_for(AgentSettled)
        assert stored.read_bytes() == before
        assert texts_in(harness.file)[-1] == "for the other one"
        assert all(event.ok for event in harness.of(IntentSettled))


async def test_a_move_that_is_refused_lets_what_was_sent_behind_it_through(scripted, tmp_path):
    _, options = scripted(("answer",))
    options = replace(options, session=SessionChoice("memory"))
    async with running(options) as harness:
        await harness.prompt("one")
        after = len(harness.events)
        harness.runtime.send(MoveSession(str(tmp_path)))
        harness.runtime.send(SubmitPrompt("two"))
        await harness.wait_for(AgentSettled, after=after)
        assert "cannot move" in str([event.error for event in harness.of(IntentSettled)]).lower()


SLOW = """
import asyncio
from pathlib import Path
from musepi_tui.extensions.api import *

def activate(api):
    api.on("session_switch", wait)

async def wait(event, ctx):
    ctx.notify("switched")
    while not Path({go!r}).exists():
        await asyncio.sleep(0.005)
    ctx.notify("done")
"""


async def test_a_slow_extension_holds_up_nothing_in_the_new_session(scripted, musepi_home, tmp_path):
    (musepi_home / "extensions").mkdir()
    (musepi_home / "extensions" / "slow.py").write_text(SLOW.format(go=str(tmp_path / "go")))
    _, options = scripted(("answer", Hang()))
    async with running(options) as harness:
        harness.runtime.send(NewSession())
        harness.runtime.send(SubmitPrompt("hi"))
        await harness.notice("switched")
        await harness.wait_for(PhaseChanged, lambda event: event.phase is Phase.STREAMING)
        (tmp_path / "go").touch()
        await harness.notice("done")
        await asyncio.sleep(0.01)
        assert harness.runtime.view().phase is Phase.STREAMING
        assert len(harness.of(AgentStarted)) == 1


async def test_copying_waits_for_no_turn(scripted):
    _, options = scripted(("hi", Hang()))
    async with running(options) as harness:
        await harness.settle(SubmitPrompt("hello"))
        for intent in (ForkSession(), CloneSession(), MoveSession(".."), NewSession()):
            assert (await harness.settle(intent)).error == "wait for the turn to end or press esc"


async def test_an_unknown_entry_leaves_everything_as_it_was(scripted, stored):
    _, options = scripted(("answer",))
    async with running(reopened(options, stored)) as harness:
        settled = await harness.settle(ForkSession("nowhere"))
        assert settled.error == "Entry nowhere not found"
        await harness.prompt("three")
        assert harness.file == stored
        assert "three" in texts_in(stored)[-1]


@pytest.mark.parametrize("content", [b"", b"no session\n", None], ids=["empty", "broken", "missing"])
async def test_a_session_that_cannot_be_opened_leaves_the_old_one(content, scripted, stored, tmp_path):
    _, options = scripted(("answer",))
    other = tmp_path / "other.jsonl"
    if content is not None:
        other.write_bytes(content)
    async with running(reopened(options, stored)) as harness:
        assert not (await harness.settle(OpenSession(str(other)))).ok
        await harness.prompt("three")
        assert harness.file == stored
        assert "three" in texts_in(stored)[-1]


async def test_a_failed_load_gives_the_lock_of_the_other_session_back(
    scripted, stored, tmp_path, monkeypatch
):
    from musepi_tui.runtime import assembly

    _, options = scripted()
    other = write_lines(tmp_path / "other.jsonl", header_line(id="o"), *chain("a"))
    async with running(reopened(options, stored)) as harness:

        def fails(*_):
            raise RuntimeError("a bug")

        monkeypatch.setattr(assembly, "build_desk", fails)
        assert not (await harness.settle(OpenSession(str(other)))).ok
        monkeypatch.undo()
        assert (await harness.settle(OpenSession(str(other)))).ok


async def test_move_takes_the_file_along_and_tools_work_there(scripted, tmp_path):
    _, options = scripted(("1",), ("2",))
    there = tmp_path / "there"
    there.mkdir()
    async with running(options) as harness:
        await harness.prompt("first")
        source = harness.file
        artifact_folder(source).mkdir()
        (artifact_folder(source) / "0.bash.log").write_text("out")
        assert (await harness.settle(MoveSession(str(there)))).ok
        ready = await changed(harness, "move")
        assert harness.file == session_folder(options.paths, there) / source.name
        assert (ready.view.header.cwd, source.exists()) == (str(there), False)
        assert (artifact_folder(harness.file) / "0.bash.log").exists()
        await harness.prompt("second")
        assert len(user_ids(harness.file)) == 2
        await harness.settle(NewSession())
        assert (await changed(harness, "new")).view.header.cwd == str(there)


async def test_a_move_that_fails_leaves_the_session_usable(scripted, tmp_path):
    _, options = scripted(("1",), ("2",))
    there = tmp_path / "there"
    there.mkdir()
    async with running(options) as harness:
        await harness.prompt("first")
        source = harness.file
        taken = session_folder(options.paths, there) / source.name
        taken.parent.mkdir(parents=True)
        taken.write_text("mine")
        settled = await harness.settle(MoveSession(str(there)))
        assert settled.error == f"{taken} exists already; nothing was moved"
        await harness.prompt("second")
        assert (harness.file, len(user_ids(source))) == (source, 2)


@pytest.mark.parametrize("folder", ["nowhere", "."])
async def test_a_move_to_nowhere_is_refused_and_one_to_here_does_nothing(folder, scripted, stored, project):
    _, options = scripted()
    async with running(reopened(options, stored)) as harness:
        settled = await harness.settle(MoveSession(folder))
        error = f"{project.resolve() / 'nowhere'}: there is no such folder" if folder == "nowhere" else None
        assert settled.error == error
        assert len(harness.of(SessionReady)) == 1


async def test_an_empty_session_moves_without_a_file(scripted, tmp_path):
    _, options = scripted(("1",))
    there = tmp_path / "there"
    there.mkdir()
    async with running(options) as harness:
        assert (await harness.settle(MoveSession(str(there)))).ok
        await harness.prompt("hello")
        assert harness.file.parent == session_folder(options.paths, there)
        assert load_session(harness.file).header.cwd == str(there)


async def test_a_session_of_another_folder_is_opened_here_as_a_copy(scripted, stored, tmp_path, project):
    _, options = scripted()
    there = tmp_path / "there"
    there.mkdir()
    other = write_lines(tmp_path / "other.jsonl", header_line(id="o", cwd=str(there)), *chain("a"))
    async with running(reopened(options, stored)) as harness:
        assert (await harness.settle(OpenSession(str(other), "fork"))).ok
        assert harness.runtime.view().header.cwd == str(project)
        assert (await harness.settle(OpenSession(str(other), "move"))).ok
        assert harness.file == other
        assert load_session(other).header.cwd == str(project)


async def test_delete_moves_a_stored_session_to_the_trash_but_not_the_open_one(scripted, stored, tmp_path):
    _, options = scripted()
    other = write_lines(tmp_path / "other.jsonl", header_line(id="o"), *chain("a"))
    async with running(reopened(options, stored)) as harness:
        refused = await harness.settle(DeleteSession(str(stored)))
        assert refused.error == "this session is open here; go to another one first"
        assert (await harness.settle(DeleteSession(str(other), permanently=True))).ok
        assert (other.exists(), stored.exists()) == (False, True)


async def test_name_and_label_are_stored(scripted, stored):
    _, options = scripted()
    async with running(reopened(options, stored)) as harness:
        assert (await harness.settle(SetName("  The parser "))).ok
        assert harness.runtime.view().name == "The parser"
        assert (await harness.settle(SetLabel("here"))).data == {"entryId": "x1"}
        assert (await harness.settle(SetLabel("there", "e1"))).ok
        assert (await harness.settle(SetLabel("", "e1"))).ok
        assert (await harness.settle(SetLabel("x", "nowhere"))).error == "Entry nowhere not found"
    loaded = load_session(stored)
    assert loaded.name == "The parser"
    labels = [json.loads(line) for line in stored.read_bytes().splitlines()]
    assert [(line["targetId"], line.get("label")) for line in labels if line["type"] == "label"] == [
        ("x1", "here"),
        ("e1", "there"),
        ("e1", None),
    ]


async def test_the_name_given_at_the_start_is_stored_with_the_first_message(scripted):
    _, options = scripted(("1",))
    async with running(replace(options, name="Parser work")) as harness:
        assert not harness.file.exists()
        await harness.prompt("hello")
        assert load_session(harness.file).name == "Parser work"


async def test_flush_says_what_is_unsaved(scripted, stored):
    _, options = scripted()
    async with running(reopened(options, stored)) as harness:
        assert (await harness.settle(Flush())).data == {"unsaved": 0}


@pytest.mark.parametrize(
    ("intent", "part"),
    [
        (Flush(), "flush"),
        (ExportSession("out.md"), "export_session"),
        (DeleteSession("/nowhere.jsonl"), "delete_session"),
        (ForkSession(), "fork_session"),
        (MoveSession(".."), "move_session"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_bug_on_the_way_ends_the_intent_with_an_error(intent, part, scripted, stored, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise LookupError("a bug")

    _, options = scripted()
    async with running(reopened(options, stored)) as harness:
        match part:
            case "flush":
                monkeypatch.setattr(Saver, "flush", fail)
            case "export_session":
                monkeypatch.setattr("musepi_tui.runtime.exporting.export_session", fail)
            case "delete_session":
                monkeypatch.setattr("musepi_tui.runtime.exchange.delete_session", fail)
            case _:
                monkeypatch.setattr(f"musepi_tui.runtime.switching.{part}", fail)
        settled = await harness.settle(intent)
        monkeypatch.undo()
        assert settled.error is not None
        assert "stopped unexpectedly" in settled.error


@pytest.mark.parametrize("intent", [CloneSession(), MoveSession("..")], ids=["clone", "move"])
async def test_a_bug_before_a_switch_holds_no_prompt_for_ever(intent, scripted, stored, monkeypatch):
    async def fail(_: Desk) -> int:
        raise LookupError("a bug")

    _, options = scripted(("answer",))
    async with running(reopened(options, stored)) as harness:
        monkeypatch.setattr(Desk, "save_all", fail)
        harness.runtime.send(intent)
        harness.runtime.send(SubmitPrompt("go on"))
        await harness.wait_for(AgentSettled)
        monkeypatch.undo()
        assert [event.ok for event in harness.of(IntentSettled)] == [False, True]
        assert texts_in(stored)[-1] == "go on"


async def test_a_session_in_memory_leaves_nothing_behind(scripted, musepi_home):
    _, options = scripted(("1",), ("2",))
    async with running(replace(options, session=SessionChoice("memory"))) as harness:
        await harness.prompt("one")
        await harness.prompt("two")
        view = harness.runtime.view()
        assert (view.file, view.unsaved) == (None, 0)
        assert len(harness.messages()) == 4
        await harness.settle(NewSession())
        assert harness.runtime.view().file is None
    assert not (musepi_home / "sessions").exists()


# -- sessions that may only be read


def held(path: Path) -> WriterLock:
    lock = WriterLock(path)
    lock.acquire()
    return lock


CHANGES = [
    SubmitPrompt("hello"),
    Compact(),
    Handoff(),
    NavigateTree("y1"),
    Retry(),
    SelectModel("local", "m1"),
    SetThinking("high"),
    SetName("x"),
    SetLabel("x"),
    MoveSession("/"),
]


async def test_a_busy_session_is_shown_and_refuses_every_change(scripted, stored):
    _, options = scripted()
    lock, before = held(stored), stored.read_bytes()
    async with running(replace(reopened(options, stored), on_busy="read_only")) as harness:
        view = harness.runtime.view()
        assert (view.read_only, view.can_wait, len(view.tree)) == (True, True, 3)
        for intent in CHANGES:
            settled = await harness.settle(intent)
            assert settled.error is not None
            assert settled.error.startswith(f"{view.read_only_cause}; close it, or use --fork ")
        assert (await harness.settle(Flush())).data == {"unsaved": 0}
    lock.release()
    assert stored.read_bytes() == before


async def test_a_busy_session_can_be_forked(scripted, stored):
    _, options = scripted(("answer",))
    lock = held(stored)
    async with running(replace(reopened(options, stored), on_busy="read_only")) as harness:
        assert (await harness.settle(ForkSession())).ok
        assert not harness.runtime.view().read_only
        await harness.prompt("three")
        assert "three" in texts_in(harness.file)[-1]
    lock.release()


async def test_a_newer_session_is_shown_unless_forced(scripted, tmp_path):
    _, options = scripted(("answer",))
    path = write_lines(tmp_path / "s.jsonl", header_line(4), *chain("a"), record("odd", "o1", "e1"))
    first = path.read_bytes()
    opened = reopened(options, path)
    async with running(replace(opened, on_busy="read_only")) as harness:
        settled = await harness.settle(SubmitPrompt("hello"))
        assert "session file version 4 is newer than this musepi understands (3)" in str(settled.error)
        assert not (await harness.settle(WaitForSession())).ok
    assert path.read_bytes() == first
    async with running(replace(opened, force=True)) as harness:
        await harness.prompt("hello")
    assert path.read_bytes().startswith(first)
    assert json.loads(path.read_bytes().split(b"\n")[0])["version"] == 4


async def test_waiting_takes_the_session_over_once_it_is_free(scripted, stored):
    _, options = scripted(("answer",))
    lock = held(stored)
    opened = replace(reopened(options, stored), on_busy="read_only", clock=FakeClock())
    async with running(opened) as harness:
        harness.runtime.send(WaitForSession())
        assert not (await harness.settle(SetName("not yet"))).ok
        with stored.open("ab") as file:
            file.write(json.dumps(user_record("y1", "x1", "written meanwhile", 9)).encode() + b"\n")
        lock.release()
        ready = await changed(harness, "resume")
        assert (ready.view.read_only, "y1" in ready.view.tree) == (False, True)
        assert (await harness.settle(SetName("mine now"))).ok


async def test_cancel_ends_the_wait(scripted, stored):
    _, options = scripted()
    lock = held(stored)
    opened = replace(reopened(options, stored), on_busy="read_only", clock=FakeClock())
    async with running(opened) as harness:
        harness.runtime.send(WaitForSession())
        assert (await harness.settle(Cancel())).data == {"cancelled": "waiting"}
        lock.release()
        await asyncio.sleep(0.05)
        assert harness.runtime.view().read_only


async def test_a_prompt_typed_before_a_busy_session_was_loaded_comes_back(scripted, stored):
    _, options = scripted()
    lock = held(stored)
    opened = replace(reopened(options, stored), on_busy="read_only")
    async with SessionRuntime.open(opened) as runtime, asyncio.TaskGroup() as group:
        harness = Harness(runtime)
        collecting = group.create_task(harness.collect())
        intent_id = runtime.send(SubmitPrompt("too early"))
        runtime.begin()
        settled = await harness.wait_for(IntentSettled, lambda event: event.intent_id == intent_id)
        assert str(settled.error).startswith("session is open in another musepi")
        collecting.cancel()
    lock.release()


async def test_what_is_opened_for_writing_is_remembered(scripted, stored, tmp_path):
    _, options = scripted()
    other = write_lines(tmp_path / "other.jsonl", header_line(id="o"), *chain("a"))
    lock, seen = held(other), []
    opened = replace(reopened(options, stored), on_busy="read_only", remember=seen.append)
    async with running(opened) as harness:
        await harness.settle(OpenSession(str(other)))
        assert harness.runtime.view().read_only
        await harness.settle(OpenSession(str(stored)))
        await asyncio.sleep(0.05)
    lock.release()
    assert seen == [stored, stored]


async def test_a_session_of_another_tool_is_imported_and_opened(scripted, stored, tmp_path):
    from tests.support.shared import shared_path

    _, options = scripted()
    source = tmp_path / "claude.jsonl"
    shutil.copy(shared_path("fixtures", "sessions", "claude-code-compacted.jsonl"), source)
    before = source.read_bytes()
    async with running(reopened(options, stored)) as harness:
        assert (await harness.settle(OpenSession(str(source)))).ok
        ready = await changed(harness, "import")
        assert ready.view.file not in (None, source)
        assert "message" in types_in(harness.file)
    assert source.read_bytes() == before
