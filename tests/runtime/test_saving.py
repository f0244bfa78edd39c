import asyncio
import errno
import os
from pathlib import Path

import pytest

from musepi_tui.base.errors import SessionError
from musepi_tui.runtime.events import EntryAppended, Notice, SaveStateChanged
from musepi_tui.storage.entry_file import Changes, NotWritableError
from musepi_tui.storage.lines import Title, encode_slot
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.other_files import MemoryFile, ReadOnlyFile
from musepi_tui.storage.session_file import INLINE_BYTES
from tests.support.builders import a, u
from tests.support.history_desk import Desk, break_writes, desk_at
from tests.support.lines import chain, dump, header_line, user_record, write_lines


async def settled(desk: Desk) -> None:
    """Waits until nothing is tried in the background any more."""
    while running := tuple(desk.children._running):
        await desk.children.wait_all(running)


def ids(path: Path) -> list[str]:
    return [head.id for head in load_session(path, thorough=True).heads]


def break_syncs(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """The next ``times`` syncs fail."""
    real, left = os.fdatasync, times

    def sync(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            raise OSError(errno.EIO, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", sync)


async def test_lines_of_another_program_join_the_tree_and_the_leaf_stays(tmp_path):
    async with desk_at(write_lines(tmp_path / "s.jsonl", header_line(), *chain("a", "b"))) as desk:
        desk.history.append_message(u("one"))
        leaf = desk.history.tree.leaf_id
        with desk.path.open("ab") as other:
            other.write(dump(user_record("f1", leaf, "theirs")))
        mine = desk.history.append_message(u("two"))
        tree = desk.history.tree
        assert mine.parent_id == leaf
        assert (tree.leaf_id, tree.children(leaf)) == (mine.id, ("f1", mine.id))
        assert desk.history.entry("f1").message.content == "theirs"
        assert [type(event) for event in desk.told[-2:]] == [Notice, EntryAppended]
        assert desk.history.messages == desk.reloaded().messages


async def test_what_another_program_changed_counts_in_the_context(tmp_path):
    async with desk_at(tmp_path / "s.jsonl") as desk:
        first = desk.history.append_message(u("mine"))
        with desk.path.open("ab") as other:
            other.write(dump(user_record(first.id, first.parent_id, "theirs")))
        desk.history.append_message(u("two"))
        assert [message.content for message in desk.history.messages][0] == "theirs"
        assert desk.history.messages == desk.reloaded().messages


async def test_large_file_that_was_deleted_is_written_again_in_a_thread(tmp_path):
    async with desk_at(tmp_path / "s.jsonl") as desk:
        desk.history.append_message(u("x" * INLINE_BYTES))
        desk.path.unlink()
        late = desk.history.append_message(u("late"))
        assert EntryAppended(late, saved=False) in desk.told
        assert desk.saver.unsaved == 1
        await settled(desk)
        assert desk.saver.unsaved == 0
        assert desk.clock.slept == []
        assert ids(desk.path) == list(desk.history.tree.order)
        assert [notice.level for notice in desk.notices()] == ["warning"]
        assert all(head.length for head in desk.history.tree.heads.values())


async def test_failed_sync_counts_as_unsaved_until_the_tail_is_in_a_new_file(tmp_path, monkeypatch):
    async with desk_at(tmp_path / "s.jsonl") as desk:
        break_syncs(monkeypatch, 1)
        desk.history.append_message(u("one"))
        inode = desk.path.stat().st_ino
        await desk.saver._syncing
        assert SaveStateChanged(2) in desk.told
        assert [notice.text for notice in desk.notices()] == [
            f"session: could not sync {desk.path}: Input/output error"
        ]
        await settled(desk)
        assert desk.saver.unsaved == 0
        assert desk.path.stat().st_ino != inode
        assert ids(desk.path) == list(desk.history.tree.order)
        desk.history.append_message(a("answer"))
        assert desk.history.messages == desk.reloaded().messages


async def test_entry_policy_keeps_an_entry_that_could_not_be_synced(tmp_path, monkeypatch):
    async with desk_at(tmp_path / "s.jsonl", "entry") as desk:
        desk.history.append_message(u("one"))
        break_syncs(monkeypatch, 1)
        entry = desk.history.append_message(a("answer"))
        assert EntryAppended(entry, saved=False) in desk.told
        assert desk.saver.unsaved == 1
        await settled(desk)
        assert desk.saver.unsaved == 0
        assert ids(desk.path) == list(desk.history.tree.order)


async def test_sync_that_is_waited_for_says_when_it_fails(tmp_path, monkeypatch):
    async with desk_at(tmp_path / "s.jsonl") as desk:
        desk.history.append_message(u("one"))
        await settled(desk)
        break_syncs(monkeypatch, 1)
        with pytest.raises(SessionError, match="could not sync"):
            await desk.saver.sync_through_cancel()
        await settled(desk)
        assert desk.saver.unsaved == 0


async def test_what_is_written_while_the_file_is_written_anew_waits_and_keeps_its_order(tmp_path):
    async with desk_at(tmp_path / "s.jsonl") as desk:
        first = desk.history.append_message(u("one"))
        loop, entered, go_on = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        real = desk.file.rewrite

        def rewrite(changes: Changes):
            loop.call_soon_threadsafe(entered.set)
            asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(5)
            return real(changes)

        desk.file.rewrite = rewrite
        line = dump(user_record(first.id, first.parent_id, "changed"))[:-1]
        running = asyncio.ensure_future(desk.saver.rewrite(Changes(lines={first.id: line})))
        await entered.wait()
        desk.history.append_message(a("answer"))
        desk.history.append_message(u("two"))
        assert desk.saver.unsaved == 2
        go_on.set()
        await running
        assert desk.saver.unsaved == 0
        assert desk.notices() == []
        assert ids(desk.path) == list(desk.history.tree.order)
        assert all(head.length for head in desk.history.tree.heads.values())


async def test_cancel_during_a_rewrite_comes_too_late(tmp_path):
    async with desk_at(tmp_path / "s.jsonl") as desk:
        first = desk.history.append_message(u("one"))
        line = dump(user_record(first.id, first.parent_id, "changed"))[:-1]
        running = asyncio.ensure_future(desk.saver.rewrite(Changes(lines={first.id: line})))
        await asyncio.sleep(0)
        running.cancel()
        await running
        assert load_session(desk.path).read_path()[-1].message.content == "changed"


async def test_last_sync_that_fails_is_made_good_by_writing_anew(tmp_path, monkeypatch):
    async with desk_at(tmp_path / "s.jsonl") as desk:
        desk.history.append_message(u("one"))
        await settled(desk)
        desk.history.append_message(a("answer"))
        break_syncs(monkeypatch, 1)
        assert await desk.saver.finish(desk.history.header.id) is None
        assert ids(desk.path) == list(desk.history.tree.order)


async def test_unsynced_entries_are_rescued_when_nothing_helps(tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    async with desk_at(tmp_path / "s.jsonl") as desk:
        desk.history.append_message(u("one"))
        await settled(desk)
        entry = desk.history.append_message(a("answer"))
        break_syncs(monkeypatch, 99)
        desk.path.with_name("second-name.jsonl").hardlink_to(desk.path)  # so it cannot be written anew
        rescue = await desk.saver.finish(desk.history.header.id)
        assert ids(rescue) == [entry.id]


async def test_session_opened_for_reading_takes_nothing(tmp_path):
    path = write_lines(tmp_path / "s.jsonl", header_line(), *chain("a"))
    async with desk_at(path, file=ReadOnlyFile(path, "open elsewhere")) as desk:
        with pytest.raises(NotWritableError, match="open elsewhere"):
            desk.history.append_message(u("one"))
        assert desk.saver.unsaved == 0
        assert desk.told == []
        assert await desk.saver.finish(desk.history.header.id) is None


async def test_session_in_memory_writes_nothing(tmp_path):
    async with desk_at(tmp_path / "s.jsonl", file=MemoryFile()) as desk:
        entry = desk.history.append_message(u("one"))
        desk.history.append_message(a("answer"))
        assert EntryAppended(entry) in desk.told
        assert desk.saver.path is None
        assert desk.saver.flush()
        assert await desk.saver.finish(desk.history.header.id) is None
    assert list(tmp_path.iterdir()) == []


async def test_new_name_goes_into_the_slot_other_tools_read(tmp_path):
    slot = encode_slot(Title("old", "auto", "2026-01-01T00:00:00.000Z"))
    path = write_lines(tmp_path / "s.jsonl", slot, header_line(), *chain("a"))
    async with desk_at(path) as desk:
        assert desk.history.name == "old"
        desk.history.set_name("  new\nname ")
        assert desk.history.name == "new name"
        loaded = load_session(path)
        assert (loaded.slot["title"], loaded.slot["source"], loaded.name) == ("new name", "user", "new name")
        desk.history.set_name("")
        assert (desk.history.name, load_session(path).name) == (None, None)


async def test_slot_is_brought_up_to_date_when_writing_works_again(tmp_path, monkeypatch):
    slot = encode_slot(Title("old", "auto", "2026-01-01T00:00:00.000Z"))
    path = write_lines(tmp_path / "s.jsonl", slot, header_line(), *chain("a"))
    async with desk_at(path) as desk:
        mend = break_writes(monkeypatch)
        desk.history.append_message(u("one"))
        mend()
        desk.history.set_name("new")
        await settled(desk)
        assert load_session(path).slot["title"] == "new"
        assert desk.saver.unsaved == 0
