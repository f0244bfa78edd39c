import pytest

from musepi_tui.base.errors import EntryNotFoundError, SessionError
from musepi_tui.runtime.edits import BranchDraft, CompactionDraft
from musepi_tui.runtime.events import EntryAppended, LeafMoved
from musepi_tui.session.entries import KEEP_NOTHING
from musepi_tui.session.labels import collect_labels
from musepi_tui.session.messages import Usage, text_of
from musepi_tui.storage.loading import load_session
from tests.support.builders import a, u
from tests.support.history_desk import Desk, break_writes, desk_at


@pytest.fixture
async def desk(tmp_path):
    async with desk_at(tmp_path / "s.jsonl") as made:
        for message in (u("one"), a("two"), u("three"), a("four")):
            made.history.append_message(message)
        yield made


def texts(desk: Desk) -> list[str]:
    return [text_of(message.content) for message in desk.history.messages]


async def test_a_moved_leaf_changes_the_context_and_survives_a_restart(desk):
    ids = desk.history.message_entry_ids
    generation = desk.history.generation
    await desk.history.move_leaf(ids[1])
    assert texts(desk) == ["one", "two"]
    assert desk.history.generation == generation + 1
    assert desk.history.tree.display_leaf == ids[1]
    loaded = load_session(desk.path)
    assert loaded.tree.display_leaf == ids[1]
    assert loaded.tree.leaf_id == desk.history.tree.leaf_id
    assert desk.reloaded().messages == desk.history.messages


async def test_the_next_message_goes_on_from_the_moved_leaf(desk):
    ids = desk.history.message_entry_ids
    await desk.history.move_leaf(ids[1])
    entry = desk.history.append_message(u("instead"))
    assert texts(desk) == ["one", "two", "instead"]
    assert desk.history.tree.display_leaf == entry.id
    assert [head.id for head in desk.history.tree.path()][-3:-1] == [ids[1], entry.parent_id]
    assert desk.reloaded().messages == desk.history.messages


async def test_a_leaf_moved_before_the_first_entry_starts_another_root(desk):
    await desk.history.move_leaf(None)
    assert desk.history.messages == ()
    assert load_session(desk.path).tree.display_leaf is None
    desk.history.append_message(u("anew"))
    assert texts(desk) == ["anew"]
    assert desk.reloaded().messages == desk.history.messages


async def test_moving_to_the_current_entry_writes_nothing(desk):
    ids = desk.history.message_entry_ids
    await desk.history.move_leaf(ids[1])
    before = desk.path.read_bytes()
    await desk.history.move_leaf(ids[1])
    assert desk.path.read_bytes() == before


async def test_moving_twice_hangs_the_marks_under_their_targets(desk):
    ids = desk.history.message_entry_ids
    await desk.history.move_leaf(ids[1])
    await desk.history.move_leaf(ids[3])
    assert texts(desk) == ["one", "two", "three", "four"]
    assert desk.history.tree.parent(desk.history.tree.leaf_id) == ids[3]


async def test_the_leaf_cannot_move_to_an_entry_that_is_not_there(desk):
    before = desk.path.read_bytes()
    with pytest.raises(EntryNotFoundError, match="gone"):
        await desk.history.move_leaf("gone")
    assert desk.path.read_bytes() == before


async def test_labels_are_entries_of_the_file(desk):
    first = desk.history.message_entry_ids[0]
    entry = desk.history.append_label(first, "start")
    assert entry.fields == {"targetId": first, "label": "start"}
    desk.history.append_label(first, None)
    entries = load_session(desk.path).read_path()
    assert [made.type for made in entries[-2:]] == ["label", "label"]
    assert collect_labels(entries[:-1]) == {first: "start"}
    assert collect_labels(entries) == {}
    with pytest.raises(EntryNotFoundError):
        desk.history.append_label("gone", "x")


async def test_a_name_is_an_entry_and_a_title(desk):
    desk.history.set_name("my session")
    assert (desk.history.name, desk.history.header.title) == ("my session", "my session")
    assert load_session(desk.path).name == "my session"


async def test_summarised_history_leaves_memory_and_can_be_read_back(desk):
    old = desk.history.message_entry_ids
    entries = [desk.history.entry(entry_id) for entry_id in old]
    draft = CompactionDraft(desk.history.generation, "summary", KEEP_NOTHING, 100)
    await desk.history.commit_compaction(draft)
    bodies = desk.history._memory.bodies
    # The first answer's model counts while no entry names one; all other messages are cold.
    assert not any(bodies.is_hot(entry_id) for entry_id in old[:3])
    again = [desk.history.entry(entry_id) for entry_id in old]
    assert [made.message for made in again] == [made.message for made in entries]


async def test_nothing_is_let_go_while_lines_of_others_are_in_the_file(desk):
    with desk.path.open("ab") as other:
        other.write(b'{"type":"custom","id":"f1","parentId":null,"timestamp":"","customType":"x"}\n')
    kept = desk.history.append_message(u("five"))
    draft = CompactionDraft(desk.history.generation, "summary", KEEP_NOTHING, 100)
    await desk.history.commit_compaction(draft)
    assert desk.history._memory.bodies.is_hot(kept.id)


async def test_a_branch_summary_is_the_new_leaf_and_part_of_the_context(desk):
    ids = desk.history.message_entry_ids
    desk.told.clear()
    moved = await desk.history.move_leaf(ids[1], BranchDraft("SUMMARY", {"readFiles": []}, usage=Usage(7, 3)))
    entry = moved.summary
    assert (entry.parent_id, entry.from_id, entry.summary, entry.usage) == (
        ids[1],
        ids[1],
        "SUMMARY",
        Usage(7, 3),
    )
    assert desk.told == [EntryAppended(entry), LeafMoved(ids[3], entry.id, entry.id)]
    assert desk.history.tree.leaf_id == entry.id
    assert desk.history.message_entry_ids == (*ids[:2], entry.id)
    assert desk.history.totals.input == 207
    assert desk.reloaded().messages == desk.history.messages


async def test_a_branch_summary_may_be_a_root(desk):
    moved = await desk.history.move_leaf(None, BranchDraft("SUMMARY"))
    assert (moved.summary.parent_id, moved.summary.from_id) == (None, "root")
    assert desk.history.message_entry_ids == (moved.summary.id,)
    assert desk.reloaded().messages == desk.history.messages


async def test_a_branch_summary_at_the_current_entry_is_stored(desk):
    ids = desk.history.message_entry_ids
    moved = await desk.history.move_leaf(ids[3], BranchDraft("SUMMARY"))
    assert desk.history.message_entry_ids == (*ids, moved.summary.id)


@pytest.mark.parametrize("draft", [None, BranchDraft("SUMMARY")])
async def test_a_move_that_cannot_be_written_changes_nothing(desk, monkeypatch, draft):
    before = desk.path.read_bytes(), desk.history.tree.leaf_id, desk.history.messages
    told = len(desk.told)
    mend = break_writes(monkeypatch)
    with pytest.raises(SessionError, match="No space left"):
        await desk.history.move_leaf(desk.history.message_entry_ids[1], draft)
    mend()
    assert (desk.path.read_bytes(), desk.history.tree.leaf_id, desk.history.messages) == before
    assert desk.told[told:] == []


async def test_a_move_writes_a_file_again_that_was_deleted_meanwhile(desk):
    desk.path.unlink()
    await desk.history.move_leaf(desk.history.message_entry_ids[1])
    assert texts(desk) == ["one", "two"]
    assert desk.reloaded().messages == desk.history.messages
