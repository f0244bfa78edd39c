import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.base.errors import MaintenanceError, SessionError
from musepi_tui.runtime.edits import CompactionDraft, Edit
from musepi_tui.session.entries import Entry, SessionHeader
from musepi_tui.session.messages import TextBlock, text_of, tool_calls_of
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.other_files import MemoryFile
from musepi_tui.storage.session_file import SessionFile
from tests.support.builders import (
    a,
    branch_summary,
    call,
    compaction,
    custom,
    edit,
    path,
    state,
    t,
    u,
)
from tests.support.history_desk import Desk, break_writes, desk_at

HEADER = SessionHeader("session", "2026-01-01T00:00:00.000Z", "/project")

TURN = (u("do it"), a("look", calls=[call("read")]), t("long text"), a("done"), u("more"), a("yes"))
RESULT, ANSWER = "e3", "e2"


def stored(folder: Path, entries: Sequence[Entry], name: str = "s.jsonl") -> Path:
    file = SessionFile.create(folder / name, HEADER)
    file.append(entries)
    file.close()
    return folder / name


async def edited(file: Path, *batches: Sequence[Edit], rewrite: bool) -> Desk:
    async with desk_at(file) as desk:
        desk.saver.rewrites_edits = rewrite
        for edits in batches:
            await desk.history.commit_edits(edits)
        return desk


@pytest.mark.parametrize("rewrite", [False, True], ids=["append", "rewrite"])
async def test_an_edit_changes_what_the_model_sees_now_and_after_a_restart(tmp_path, rewrite):
    file = stored(tmp_path, path(*TURN))
    desk = await edited(file, [Edit(RESULT, "[pruned]", "superseded")], rewrite=rewrite)
    assert text_of(desk.history.messages[2].content) == "[pruned]"
    assert desk.history.messages[2].pruned_at_ms == desk.clock.now_ms()
    assert desk.history.messages == desk.reloaded().messages
    assert desk.history.generation == 1


async def test_appended_edits_change_no_byte_of_the_file(tmp_path):
    file = stored(tmp_path, path(*TURN))
    before = file.read_bytes()
    desk = await edited(file, [Edit(RESULT, "[pruned]"), Edit("e5", None)], rewrite=False)
    assert file.read_bytes().startswith(before)
    assert desk.stored_types()[-2:] == ["context_edit", "context_edit"]


async def test_rewritten_edits_change_the_lines_and_add_none(tmp_path):
    file = stored(tmp_path, path(*TURN))
    before = file.read_bytes()
    desk = await edited(file, [Edit(RESULT, "[pruned]")], rewrite=True)
    assert desk.stored_types() == ["message"] * 6
    start = before.index(b'"id":"e3"')
    assert file.read_bytes()[:start] == before[:start]
    assert b"long text" not in file.read_bytes()
    assert text_of(desk.history.entry(RESULT).message.content) == "[pruned]"
    assert all(head.length for head in desk.history.tree.heads.values())


async def test_an_entry_that_is_dropped_stays_in_the_file_in_both_modes(tmp_path):
    file = stored(tmp_path, path(*TURN))
    desk = await edited(file, [Edit("e5", None)], rewrite=True)
    assert b'"more"' in file.read_bytes()
    assert "more" not in [text_of(message.content) for message in desk.history.messages]
    assert desk.history.messages == desk.reloaded().messages


async def test_dropping_a_result_takes_its_call_out_of_the_context(tmp_path):
    file = stored(tmp_path, path(*TURN))
    desk = await edited(file, [Edit(RESULT, None)], rewrite=False)
    assert tool_calls_of(desk.history.messages[1]) == ()
    assert desk.history.messages == desk.reloaded().messages


async def test_a_rewritten_edit_counts_more_than_an_older_appended_one(tmp_path):
    file = stored(tmp_path, path(*TURN))
    await edited(file, [Edit(RESULT, "[first]")], rewrite=False)
    desk = await edited(file, [Edit(RESULT, "[second]")], rewrite=True)
    assert text_of(desk.history.messages[2].content) == "[second]"
    assert desk.history.messages == desk.reloaded().messages
    assert b"long text" not in file.read_bytes()


async def test_an_entry_that_is_not_on_the_path_cannot_be_edited(tmp_path):
    branch = path(u("one"), a("two"), u("three"))
    other = path(u("other"), ids=["x1"])
    file = stored(tmp_path, (*branch, *other))
    before = file.read_bytes()
    async with desk_at(file) as desk:
        for target in ("e1", "gone"):
            with pytest.raises(MaintenanceError, match="not on the path"):
                await desk.history.commit_edits([Edit("x1", "y"), Edit(target, "x")])
    assert file.read_bytes() == before


@pytest.mark.parametrize("rewrite", [False, True], ids=["append", "rewrite"])
async def test_edits_that_cannot_be_written_change_nothing(tmp_path, monkeypatch, rewrite):
    file = stored(tmp_path, path(*TURN))
    before = file.read_bytes()
    async with desk_at(file) as desk:
        desk.saver.rewrites_edits = rewrite
        messages, leaf = desk.history.messages, desk.history.tree.leaf_id
        break_writes(monkeypatch)
        if rewrite:
            file.with_name("second-name.jsonl").hardlink_to(file)
        with pytest.raises(SessionError):
            await desk.history.commit_edits([Edit(RESULT, "[pruned]")])
        assert (desk.history.messages, desk.history.tree.leaf_id) == (messages, leaf)
        assert desk.history.generation == 0
    assert file.read_bytes() == before


async def test_a_compaction_in_rewrite_mode_writes_the_tail_anew_and_appends_itself(tmp_path):
    file = stored(tmp_path, path(*TURN))
    async with desk_at(file) as desk:
        desk.saver.rewrites_edits = True
        draft = CompactionDraft(
            0, "what happened", ANSWER, 100, edits=(Edit(RESULT, (TextBlock("[elided]"),)),)
        )
        await desk.history.commit_compaction(draft)
        assert desk.stored_types() == [*["message"] * 6, "compaction"]
        assert b"long text" not in file.read_bytes()
        assert desk.history.messages == desk.reloaded().messages


@pytest.mark.parametrize("rewrite", [False, True], ids=["append", "rewrite"])
async def test_a_session_in_memory_is_edited_too(tmp_path, rewrite):
    async with desk_at(tmp_path / "none.jsonl", file=MemoryFile()) as desk:
        desk.saver.rewrites_edits = rewrite
        for message in TURN:
            desk.history.append_message(message)
        ids = desk.history.message_entry_ids
        await desk.history.commit_edits([Edit(ids[2], "[pruned]")])
        await desk.history.commit_edits([Edit(ids[0], None)])
        texts = [text_of(message.content) for message in desk.history.messages]
        assert texts == ["look", "[pruned]", "done", "more", "yes"]
    assert list(tmp_path.iterdir()) == []


async def test_an_edit_of_what_waits_for_the_disk_is_stored_with_it(tmp_path, monkeypatch):
    async with desk_at(tmp_path / "s.jsonl") as desk:
        desk.saver.rewrites_edits = True
        desk.history.append_message(u("one"))
        mend = break_writes(monkeypatch)
        late = desk.history.append_message(u("late"))
        mend()
        await desk.history.commit_edits([Edit(late.id, "changed")])
        assert desk.saver.unsaved == 0
        assert desk.history.messages == desk.reloaded().messages


parts = st.lists(
    st.sampled_from(
        [
            u("hi"),
            u("picture", images=1),
            a("text"),
            a("call", calls=[call("read", "c1")], thinking="hm"),
            a(calls=[call("read", "c1"), call("ls", "c2")]),
            a("retried", calls=[call("read", "c1")], extra={"retryRecovery": {"status": "recovered"}}),
            t("one", "c1"),
            t("two", "c2", "ls", error=True),
            custom("note"),
            branch_summary("left behind"),
            compaction("summary", "e2"),
            compaction("summary", "compaction:keep-nothing"),
            compaction("tail", "e1", retained_tail=(u("kept"),)),
            edit("e2", "edited before"),
            edit("e3"),
            state("label", targetId="e1", label="x"),
            state("reset_boundary"),
        ]
    ),
    min_size=2,
    max_size=12,
)
contents = st.sampled_from([None, "", "[pruned]", (TextBlock("[pruned]"),), (TextBlock("a"), TextBlock("b"))])


def contexts(entries: Sequence[Entry], batches: Sequence[Sequence[Edit]]) -> list[tuple]:
    """The messages in memory and those of the file, with edits appended and with lines written anew."""

    async def both(folder: Path) -> list[tuple]:
        found: list[tuple] = []
        async with AsyncExitStack() as stack:
            for name, rewrite in (("append", False), ("rewrite", True)):
                file = stored(folder, entries, f"{name}.jsonl")
                desk = await stack.enter_async_context(desk_at(file, "never"))
                desk.saver.rewrites_edits = rewrite
                for edits in batches:
                    await desk.history.commit_edits(edits)
                found += [
                    desk.history.messages,
                    build_session_context(load_session(file).read_path()).messages,
                ]
        return found

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(both(Path(folder)))


@settings(max_examples=60, deadline=None)
@given(parts=parts, data=st.data())
def test_both_ways_to_store_edits_give_the_same_context_also_after_a_restart(parts, data):
    entries = path(*parts)
    targets = st.sampled_from([made.id for made in entries])
    edits = st.lists(st.builds(Edit, targets, contents), min_size=1, max_size=4)
    batches = data.draw(st.lists(edits, min_size=1, max_size=3))
    first, *others = contexts(entries, batches)
    assert all(other == first for other in others)
