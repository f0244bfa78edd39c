import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from musepi_tui.base.errors import MaintenanceError, SessionError
from musepi_tui.runtime.cooling import context_heads
from musepi_tui.runtime.edits import CompactionDraft, Edit
from musepi_tui.runtime.events import EntryAppended, Notice, SaveStateChanged
from musepi_tui.runtime.history import History
from musepi_tui.session.entries import KEEP_NOTHING
from musepi_tui.session.messages import CompactionSummary
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage.loading import load_session
from tests.support.builders import a, call, t, u
from tests.support.history_desk import Desk, break_writes, desk_at


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_at(tmp_path / "s.jsonl") as made:
        yield made


async def test_the_file_appears_with_the_first_user_message(desk: Desk):
    assert not desk.path.exists()
    desk.history.append_message(u("hello"))
    assert desk.stored_types() == ["model_change", "message"]
    assert desk.path.stat().st_mode & 0o777 == 0o600


async def test_model_and_level_are_named_once(desk: Desk):
    desk.history.append_message(u("one"))
    desk.history.append_message(u("two"))
    assert desk.stored_types() == ["model_change", "message", "message"]


async def test_an_entry_is_told_only_after_its_line_is_in_the_file(desk: Desk):
    sizes: list[int] = []
    real_append = desk.told.append
    desk.history._emit = lambda event: (sizes.append(desk.path.stat().st_size), real_append(event))
    entry = desk.history.append_message(u("hello"))
    assert desk.told[-1] == EntryAppended(entry, saved=True)
    assert sizes[-1] == desk.path.stat().st_size > 0


async def test_only_the_message_carries_the_live_id(desk: Desk):
    desk.history.append_message(u("hello"))
    entry = desk.history.append_message(a("hi"), live_id="live-1")
    assert desk.told[-1] == EntryAppended(entry, live_id="live-1")
    assert all(event.live_id is None for event in desk.told[:-1] if isinstance(event, EntryAppended))


async def test_live_messages_equal_those_of_the_file(desk: Desk):
    history = desk.history
    for message in (u("do it"), a(calls=[call("read")]), t("text"), a("done"), u("more")):
        history.append_message(message)
    history.append_custom("note", "from the program", display=True)
    context = desk.reloaded()
    assert history.messages == context.messages
    assert history.message_entry_ids == context.entry_ids


async def test_a_failed_write_keeps_the_message_and_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    desk.history.append_message(u("one"))
    break_writes(monkeypatch)
    entry = desk.history.append_message(a("answer"))
    assert EntryAppended(entry, saved=False) in desk.told
    assert desk.notices()[-1] == Notice(
        "error",
        f"session: could not write {desk.path}: No space left on device; the conversation is kept in memory "
        "and will be written at the next attempt",
        "session",
    )
    assert desk.told[-2:] == [SaveStateChanged(1), EntryAppended(entry, saved=False)]
    assert [type(message) for message in desk.history.messages] == [type(u("")), type(a(""))]
    assert desk.history.entry(entry.id) == entry


async def test_the_next_append_writes_what_waited_first(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    desk.history.append_message(u("one"))
    mend = break_writes(monkeypatch)
    desk.history.append_message(a("answer"))
    mend()
    desk.history.append_message(u("two"))
    assert desk.saver.unsaved == 0
    assert SaveStateChanged(0) in desk.told
    assert desk.reloaded().messages == desk.history.messages
    assert all(head.length > 0 for head in desk.history.tree.heads.values())


async def test_what_waits_is_written_by_a_timer(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    desk.history.append_message(u("one"))
    mend = break_writes(monkeypatch)
    desk.clock.hold()
    desk.history.append_message(a("answer"))
    await asyncio.sleep(0)
    desk.clock.advance(5)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert desk.saver.unsaved == 1
    mend()
    desk.clock.advance(10)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert desk.clock.slept == [5, 10]
    assert desk.saver.unsaved == 0
    assert desk.reloaded().messages == desk.history.messages


async def test_the_first_message_is_kept_when_the_file_cannot_be_made(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    mend = break_writes(monkeypatch)
    desk.history.append_message(u("one"))
    assert desk.saver.unsaved == 2
    assert not desk.path.exists()
    mend()
    assert desk.saver.flush()
    assert desk.stored_types() == ["model_change", "message"]


async def test_a_rescue_file_holds_what_could_not_be_saved(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    desk.history.append_message(u("one"))
    real_append = desk.file.append

    def refuse(_):
        raise SessionError("could not write") from OSError(28, "No space left on device")

    desk.file.append = refuse
    desk.history.append_message(a("answer"))
    rescue = await desk.saver.finish(desk.history.header.id)
    desk.file.append = real_append
    assert rescue == tmp_path / "tmp" / f"musepi-rescue-{desk.history.header.id}.jsonl"
    assert rescue.stat().st_mode & 0o777 == 0o600
    assert [head.type for head in load_session(rescue).tree.heads.values()] == ["message"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [pytest.param("turn", 1), pytest.param("entry", 2), pytest.param("never", 0)],
)
async def test_syncing_follows_the_setting(tmp_path: Path, policy: str, expected: int):
    async with desk_at(tmp_path / "s.jsonl", policy) as desk:
        synced: list[int] = []
        desk.file.sync = lambda: synced.append(1)
        desk.history.append_message(u("one"))
        desk.history.append_message(a("answer"))
        if desk.saver._syncing is not None:
            await desk.saver._syncing
        assert len(synced) == expected


async def test_a_failed_sync_is_told(desk: Desk):
    def fail() -> None:
        raise SessionError("could not sync") from OSError(5, "Input/output error")

    desk.file.sync = fail
    desk.history.append_message(u("one"))
    await desk.saver._syncing
    assert desk.notices()[-1].text == f"session: could not sync {desk.path}: Input/output error"


async def test_hidden_answers_leave_the_context_and_stay_in_the_file(desk: Desk):
    desk.history.append_message(u("one"))
    failed = desk.history.append_message(a("half"))
    desk.history.hide((failed.id,))
    assert desk.history.messages == (desk.history.messages[0],)
    assert desk.stored_types() == ["model_change", "message", "message"]


def draft(history: History, first_kept: str, **fields) -> CompactionDraft:
    return CompactionDraft(
        generation=history.generation,
        summary="what happened",
        first_kept_entry_id=first_kept,
        tokens_before=1000,
        **fields,
    )


async def filled(desk: Desk) -> list[str]:
    history = desk.history
    for message in (
        u("one"),
        a(calls=[call("read")]),
        t("long text"),
        a("first answer"),
        u("two"),
        a("second"),
    ):
        history.append_message(message)
    return list(history.message_entry_ids)


async def test_a_compaction_replaces_older_messages_in_memory_and_file_alike(desk: Desk):
    ids = await filled(desk)
    entry = await desk.history.commit_compaction(draft(desk.history, ids[4]))
    context = desk.reloaded()
    assert desk.history.messages == context.messages
    assert [type(message) for message in context.messages][0] is CompactionSummary
    assert desk.history.message_entry_ids == (entry.id, ids[4], ids[5]) == context.entry_ids
    assert desk.history.compaction_id == entry.id
    assert desk.told[-1] == EntryAppended(entry)


async def test_edits_of_the_kept_tail_are_written_in_front_of_the_compaction(desk: Desk):
    ids = await filled(desk)
    edits = (Edit(ids[2], "[elided]"),)
    await desk.history.commit_compaction(draft(desk.history, ids[1], edits=edits))
    assert desk.stored_types()[-2:] == ["context_edit", "compaction"]
    assert desk.history.messages == desk.reloaded().messages
    assert desk.history.messages[2].content[0].text == "[elided]"


async def test_a_compaction_that_keeps_nothing_leaves_only_the_summary(desk: Desk):
    await filled(desk)
    await desk.history.commit_compaction(draft(desk.history, KEEP_NOTHING))
    assert len(desk.history.messages) == 1
    assert desk.history.messages == desk.reloaded().messages


async def test_a_second_compaction_builds_on_the_first(desk: Desk):
    ids = await filled(desk)
    await desk.history.commit_compaction(draft(desk.history, ids[4]))
    later = desk.history.append_message(u("three"))
    second = await desk.history.commit_compaction(draft(desk.history, later.id))
    assert desk.history.messages == desk.reloaded().messages
    assert desk.history.message_entry_ids == (second.id, later.id)


async def test_a_stale_draft_is_thrown_away(desk: Desk):
    ids = await filled(desk)
    stale = draft(desk.history, ids[4])
    desk.history.append_message(u("meanwhile"))
    before = desk.path.read_bytes()
    with pytest.raises(MaintenanceError):
        await desk.history.commit_compaction(stale)
    assert desk.path.read_bytes() == before


async def test_a_draft_whose_boundary_is_not_on_the_path_is_refused(desk: Desk):
    await filled(desk)
    before = desk.path.read_bytes()
    with pytest.raises(MaintenanceError):
        await desk.history.commit_compaction(draft(desk.history, "deadbeef"))
    assert desk.path.read_bytes() == before


async def test_a_failed_commit_changes_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    ids = await filled(desk)
    messages, tree, before = desk.history.messages, desk.history.tree, desk.path.read_bytes()
    break_writes(monkeypatch)
    with pytest.raises(SessionError):
        await desk.history.commit_compaction(draft(desk.history, ids[4]))
    assert desk.history.messages == messages
    assert desk.history.tree.leaf_id == tree.leaf_id
    assert desk.saver.unsaved == 0
    assert desk.path.read_bytes() == before


async def test_the_commit_waits_for_the_sync(desk: Desk):
    ids = await filled(desk)
    told: list[int] = []
    real_sync = desk.file.sync

    def sync() -> None:
        told.append(sum(isinstance(event, EntryAppended) for event in desk.told))
        real_sync()

    count = sum(isinstance(event, EntryAppended) for event in desk.told)
    desk.file.sync = sync
    await desk.history.commit_compaction(draft(desk.history, ids[4]))
    assert told[-1] == count


async def test_a_cancel_during_the_sync_comes_too_late(desk: Desk):
    ids = await filled(desk)
    go_on = asyncio.Event()
    loop = asyncio.get_running_loop()
    entered = asyncio.Event()

    def sync() -> None:
        loop.call_soon_threadsafe(entered.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(5)

    desk.file.sync = sync
    commit = asyncio.ensure_future(desk.history.commit_compaction(draft(desk.history, ids[4])))
    await entered.wait()
    commit.cancel()
    await asyncio.sleep(0)
    go_on.set()
    entry = await commit
    assert desk.history.compaction_id == entry.id


async def test_only_the_needed_bodies_are_read_for_the_context(desk: Desk):
    ids = await filled(desk)
    await desk.history.commit_compaction(draft(desk.history, ids[4]))
    loaded = load_session(desk.path)
    heads = context_heads(loaded.tree, loaded.bodies)
    newest_answer = ids[3]  # its model counts where no entry names one
    assert [head.id for head in heads[1:]] == [newest_answer, *ids[4:], desk.history.compaction_id]
    assert heads[0].type == "model_change"
    context = build_session_context(tuple(loaded.bodies.get(head) for head in heads))
    assert context == desk.reloaded()
