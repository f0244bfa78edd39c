import json
from dataclasses import replace
from pathlib import Path

import pytest

from musepi_tui.runtime.events import Notice, SessionReady
from musepi_tui.runtime.intents import MoveSession, OpenSession, RenameSession
from musepi_tui.runtime.options import SessionChoice
from musepi_tui.storage.glance import glance_at
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.lock import WriterLock
from musepi_tui.storage.paths import session_folder
from tests.support.harness import Harness, reopened, running
from tests.support.lines import chain, header_line, user_record, write_lines


@pytest.fixture
def stored(tmp_path: Path, project: Path) -> Path:
    return write_lines(tmp_path / "stored.jsonl", header_line(cwd=str(project)), *chain("one", "two"))


@pytest.fixture
def rollout(tmp_path: Path) -> Path:
    """A small Codex session of a folder that is gone."""
    payloads = [
        ("session_meta", {"id": "0198c0de-0000-7000-8000-0000000c0de0", "cwd": str(tmp_path / "gone")}),
        ("response_item", {"type": "message", "role": "user", "content": [_text("fix it")]}),
        (
            "response_item",
            {"type": "message", "role": "assistant", "content": [_text("done", "output_text")]},
        ),
        ("response_item", {"type": "message", "role": "critic", "content": [_text("hm")]}),
    ]
    lines = [
        json.dumps({"timestamp": f"2025-06-15T10:00:0{second}.000Z", "type": kind, "payload": payload})
        for second, (kind, payload) in enumerate(payloads)
    ]
    source = tmp_path / "rollout-2025-06-15.jsonl"
    source.write_text("".join(f"{line}\n" for line in lines))
    return source


def _text(text: str, kind: str = "input_text") -> dict[str, str]:
    return {"type": kind, "text": text}


async def told(harness: Harness, words: str) -> str:
    return (await harness.wait_for(Notice, lambda event: words in event.text)).text


async def test_an_import_tells_what_was_copied_what_not_and_where(scripted, stored, rollout):
    _, options = scripted()
    async with running(reopened(options, stored)) as harness:
        assert (await harness.settle(OpenSession(str(rollout)))).ok
        assert await told(harness, "Copied") == (
            f"Copied {rollout} into a new session, {harness.file}. The original stays as it is."
        )
        counts = await told(harness, "Carried over")
        assert "1 assistant" in counts
        assert "1 user" in counts
        assert "left out 1 message/critic" in counts
        first = harness.file
        await harness.settle(OpenSession(str(stored)))
        await harness.settle(OpenSession(str(rollout)))
        assert await told(harness, "before") == f"It was copied before, as {first}."


async def test_an_import_opened_here_belongs_to_this_folder(scripted, stored, rollout, project):
    _, options = scripted()
    before = rollout.read_bytes()
    async with running(reopened(options, stored)) as harness:
        assert (await harness.settle(OpenSession(str(rollout), "fork", str(project)))).ok
        view = harness.runtime.view()
        assert (view.header.cwd, view.cwd) == (str(project), project)
        assert harness.file.parent == session_folder(options.paths, project)
        assert str(harness.file) in await told(harness, "Copied")
    assert rollout.read_bytes() == before


async def test_here_is_the_folder_the_intent_names(scripted, stored, tmp_path):
    _, options = scripted()
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    other = write_lines(tmp_path / "other.jsonl", header_line(id="o", cwd=str(there)), *chain("a"))
    async with running(reopened(options, stored)) as harness:
        assert (await harness.settle(OpenSession(str(other), "fork", str(here)))).ok
        assert harness.runtime.view().cwd == here
        assert (await harness.settle(OpenSession(str(other), "move", str(here)))).ok
    assert load_session(other).header.cwd == str(here)


async def test_a_view_tells_where_tools_work_when_the_folder_is_gone(scripted, tmp_path, project):
    _, options = scripted()
    lost = write_lines(tmp_path / "s.jsonl", header_line(cwd=str(tmp_path / "gone")), *chain("a"))
    async with running(reopened(options, lost)) as harness:
        view = harness.runtime.view()
        assert (view.header.cwd, view.cwd) == (str(tmp_path / "gone"), project)


async def test_a_session_that_may_only_be_read_is_read_again(scripted, stored):
    _, options = scripted()
    lock = WriterLock(stored)
    lock.acquire()
    async with running(replace(reopened(options, stored), on_busy="read_only")) as harness:
        assert len(harness.runtime.view().tree) == 2
        write_lines(stored, stored.read_bytes(), user_record("x1", "e2", "newer", 5))
        assert (await harness.settle(OpenSession(str(stored), "again"))).ok
        ready = await harness.wait_for(SessionReady, lambda event: event.reason == "reload")
        assert (len(ready.view.tree), ready.view.read_only) == (3, True)
        lock.release()
        assert (await harness.settle(OpenSession(str(stored), "again"))).ok
        assert not harness.runtime.view().read_only


async def test_a_session_in_memory_cannot_be_moved_and_says_so(scripted, tmp_path):
    _, options = scripted(("1",))
    async with running(replace(options, session=SessionChoice("memory"))) as harness:
        await harness.prompt("hello")
        settled = await harness.settle(MoveSession(str(tmp_path)))
        assert settled.error == "Cannot move: this session is not saved"


@pytest.mark.parametrize(("name", "known"), [(" The  plan\n", "The plan"), ("", None)])
async def test_a_stored_session_is_renamed(name, known, scripted, stored, tmp_path):
    _, options = scripted()
    other = write_lines(tmp_path / "other.jsonl", header_line(id="o"), *chain("a"))
    async with running(reopened(options, stored)) as harness:
        settled = await harness.settle(RenameSession(str(other), name))
        assert (settled.ok, settled.data) == (True, {"name": known})
    assert glance_at(other).title == (known or "a")
    loaded = load_session(other)
    assert (loaded.name, loaded.issues) == (known, ())


async def test_open_and_held_sessions_are_not_renamed_from_the_list(scripted, stored, tmp_path):
    _, options = scripted()
    other = write_lines(tmp_path / "other.jsonl", header_line(id="o"), *chain("a"))
    lock, before = WriterLock(other), other.read_bytes()
    lock.acquire()
    async with running(reopened(options, stored)) as harness:
        assert "open here" in str((await harness.settle(RenameSession(str(stored), "x"))).error)
        assert "another musepi" in str((await harness.settle(RenameSession(str(other), "x"))).error)
    lock.release()
    assert other.read_bytes() == before
