from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.base.errors import EntryNotFoundError
from musepi_tui.runtime.events import (
    AgentStarted,
    BranchSummaryEnded,
    BranchSummaryStarted,
    EndDropped,
    EndRestored,
    EntryAppended,
    Event,
    LeafMoved,
    Notice,
)
from musepi_tui.session.entries import Entry, EntryHead
from musepi_tui.session.messages import StopReason
from musepi_tui.session.places import place_of
from musepi_tui.session.tree import LEAF_MARK, SessionTree
from musepi_tui.tui.transcript.blocks import ItemKind, ToolBlock
from musepi_tui.tui.transcript.drawings import Drawings
from musepi_tui.tui.transcript.model import TranscriptModel
from musepi_tui.tui.transcript.slots import head_of
from tests.support.builders import Part, a, branch_summary, call, compaction, custom, edit, entry, state, t, u
from tests.support.transcripts import model_of, palette, reader, session_view
from tests.tui.transcript.test_model import live_events, stored_items, without_times

FAILED = a("half", stop=StopReason.ERROR, error_message="503")


@dataclass
class Talk:
    """A session that is told while it happens."""

    entries: list[Entry] = field(default_factory=list[Entry])
    told: list[Event] = field(default_factory=list[Event])
    leaf_id: str | None = None
    _dropped_from: str | None = None

    @property
    def tree(self) -> SessionTree:
        return SessionTree.from_heads([head_of(made) for made in self.entries], self.leaf_id)

    @property
    def line(self) -> list[Entry]:
        by_id = {made.id: made for made in self.entries}
        return [by_id[head.id] for head in self.tree.path()] if self.leaf_id is not None else []

    def append(self, *parts: Part) -> None:
        made: list[Entry] = []
        for part in parts:
            made.append(entry(part, f"e{len(self.entries) + 1}", self.leaf_id))
            self.entries.append(made[-1])
            self.leaf_id = made[-1].id
        self.told += [AgentStarted(), *live_events(made, len(self.entries) - len(made))]

    def move(self, target_id: str | None, *, summary: str | None = None) -> None:
        old = place_of(self.tree) if self.leaf_id is not None else None
        self.leaf_id = target_id
        part = branch_summary(summary) if summary is not None else state("custom", customType=LEAF_MARK)
        made = entry(part, f"e{len(self.entries) + 1}", target_id)
        self.entries.append(made)
        self.leaf_id = made.id
        summary_id = made.id if summary is not None else None
        self.told += [EntryAppended(made), LeafMoved(old, summary_id or target_id, summary_id)]

    def drop(self, count: int) -> None:
        line = self.line
        if len(line) > count:
            self._dropped_from, self.leaf_id = self.leaf_id, line[-count - 1].id
            self.told.append(EndDropped(tuple(made.id for made in line[-count:])))

    def restore(self) -> None:
        if self._dropped_from is not None:
            self.leaf_id, self._dropped_from = self._dropped_from, None
            self.told.append(EndRestored((self.leaf_id,)))

    def heads_to(self, entry_id: str) -> Sequence[EntryHead]:
        return self.tree.path(entry_id)

    def screen(self, *, collapse: bool = False, has_tree: bool = True) -> TranscriptModel:
        model = TranscriptModel(reader(self.entries), path_to=self.heads_to if has_tree else None)
        model.collapse_compacted(on=collapse)
        model.reset(session_view([]))
        self.tell(model)
        return model

    def tell(self, model: TranscriptModel) -> None:
        for event in self.told:
            model.apply(event)
            assert len(model.items) >= 0  # items are looked at all the time, so nothing stale may be kept
        self.told.clear()

    def resumed(self, *, collapse: bool = False) -> TranscriptModel:
        last = self.entries[-1].id if self.entries else None
        model = model_of(
            [made for made in self.entries if last and self.tree.path(last).index_of(made.id) is not None]
        )
        model.collapse_compacted(on=collapse)
        return model


def ids(model: TranscriptModel) -> list[str]:
    return [item.id for item in model.items]


def shown(model: TranscriptModel) -> list[tuple[str, ItemKind, object]]:
    return [(item.id, item.kind, without_times(item.block)) for item in stored_items(model)]


@pytest.fixture
def fork() -> Talk:
    """A question with two answers; the second one is shown."""
    talk = Talk()
    talk.append(u("one"), a("", [call("read", "c1", path="f")]), t("out", "c1"), a("two"))
    talk.move("e3")
    talk.append(u("three"))
    return talk


PARTS: st.SearchStrategy[list[Part]] = st.sampled_from(
    [
        [u("question")],
        [a("answer", thinking="hm")],
        [a("", [call("bash", "c1")]), t("out", "c1")],
        [a("", [call("bash", "c2")])],
        [FAILED],
        [custom("note")],
        [edit("e2", "[pruned]"), edit("e4", "[pruned]")],
        [compaction("sum", "e1")],
        [state("model_change", provider="p", modelId="m")],
        [state("custom", customType="compaction.warning", data={"warning": "tight"})],
    ]
)
MOVES = st.tuples(st.sampled_from(["mark", "summary"]), st.integers(0, 30))
ENDS = st.one_of(st.integers(1, 3), st.just("restore"))
HISTORIES = st.lists(st.one_of(PARTS, PARTS, MOVES, ENDS), max_size=16)


def happened(operations: Sequence[list[Part] | tuple[str, int] | int | str]) -> Talk:
    """Parts are appended, a pair moves to an entry (0: before the first one), a number drops the end."""
    talk = Talk()
    for operation in operations:
        if isinstance(operation, list):
            talk.append(*operation)
        elif isinstance(operation, tuple):
            at = operation[1] % (len(talk.entries) + 1)
            target = talk.entries[at - 1].id if at else None
            talk.move(target, summary="left" if operation[0] == "summary" else None)
        elif isinstance(operation, int):
            talk.drop(operation)
        else:
            talk.restore()
    return talk


@settings(deadline=None)
@given(HISTORIES, st.booleans(), st.booleans())
def test_live_screen_is_the_resumed_one_for_any_moves(operations, collapse, has_tree):
    talk = happened(operations)
    assert shown(talk.screen(collapse=collapse, has_tree=has_tree)) == shown(talk.resumed(collapse=collapse))


@settings(deadline=None)
@given(HISTORIES)
def test_drawings_that_are_kept_over_moves_show_what_is_there(operations):
    talk = happened(operations)
    model = TranscriptModel(reader(talk.entries), path_to=talk.heads_to)
    drawings = Drawings(model, palette(), lambda: 0.0)
    model.reset(session_view([]))
    for event in talk.told:
        model.apply(event)
        fresh = Drawings(model, palette(), lambda: 0.0)
        for item in stored_items(model):
            assert drawings.rows_of(item) == fresh.rows_of(item)


def test_items_before_the_fork_keep_drawing_and_toggle(fork: Talk):
    model = TranscriptModel(reader(fork.entries), path_to=fork.heads_to)
    model.reset(session_view(fork.line))
    fork.told.clear()
    question, tool, _ = model.items
    model.toggle(tool)
    drawings = Drawings(model, palette(), lambda: 0.0)
    drawings.rows_of(question)
    fork.move("e4")
    fork.tell(model)
    assert ids(model) == ["e1", "e2/0", "e4/0"]
    assert model.is_expanded(model.items[1])
    assert drawings.rows_of(model.items[0])
    assert drawings.rendered == 1


def test_item_that_differs_on_the_other_branch_is_drawn_anew(fork: Talk):
    fork.append(edit("e3", "[pruned]"))
    model = fork.screen()
    before = stored_items(model)[1]
    fork.move("e4")
    fork.tell(model)
    after = stored_items(model)[1]
    assert isinstance(before.block, ToolBlock)
    assert isinstance(after.block, ToolBlock)
    assert (before.block.placeholder, after.block.placeholder) == ("[pruned]", None)
    assert after.revision != before.revision


def test_move_before_the_first_entry_leaves_the_header(fork: Talk):
    model = fork.screen()
    model.set_header(("musepi",))
    fork.move(None)
    fork.tell(model)
    assert [item.kind for item in model.items] == [ItemKind.HEADER]


def test_summary_of_the_branch_that_was_left_ends_the_path(fork: Talk):
    model = fork.screen()
    fork.move("e1", summary="what was tried")
    fork.tell(model)
    assert [(item.id, item.kind) for item in stored_items(model)] == [
        ("e1", ItemKind.USER),
        ("e7", ItemKind.BRANCH_SUMMARY),
    ]


def test_move_that_is_told_without_an_entry_is_followed(fork: Talk):
    model = fork.screen()
    model.apply(LeafMoved("e6", "e4"))
    assert [item.id for item in stored_items(model)] == ["e1", "e2/0", "e4/0"]


def test_branch_far_from_here_is_found_without_reading_its_entries():
    talk = Talk()
    talk.append(*(u(f"prompt {number}") for number in range(300)))
    talk.move("e1")
    read: list[str] = []

    def counted(entry_id: str) -> Entry:
        read.append(entry_id)
        return by_id(entry_id)

    by_id = reader(talk.entries)
    model = TranscriptModel(counted, path_to=talk.heads_to)
    model.reset(session_view(talk.line))
    talk.told.clear()
    talk.move("e300")
    for event in talk.told:
        model.apply(event)
    assert len(model) == 301
    assert read == []


def test_unknown_place_leaves_the_screen_as_it_is(fork: Talk):
    def refuse(entry_id: str) -> Sequence[EntryHead]:
        raise EntryNotFoundError(entry_id)

    model = TranscriptModel(reader(fork.entries), path_to=refuse)
    model.reset(session_view(fork.line))
    before = model.items
    model.apply(LeafMoved("e6", "gone"))
    assert model.items == before


def test_notices_of_a_branch_go_and_come_with_it(fork: Talk):
    model = fork.screen()
    model.notice("info", "about three")
    fork.move("e4")
    fork.tell(model)
    assert "about three" not in texts(model)
    fork.move("e6")
    fork.tell(model)
    assert texts(model)[-1] == "about three"


def test_what_is_told_while_a_branch_is_summarised_stays(fork: Talk):
    model = fork.screen()
    model.notice("info", "about three")
    model.apply(BranchSummaryStarted("e4"))
    model.apply(Notice("warning", "another model summarised", "branch"))
    fork.move("e4", summary="left")
    model.apply(BranchSummaryEnded("e7"))
    fork.tell(model)
    assert texts(model)[-1] == "another model summarised"
    assert "about three" not in texts(model)


def test_what_was_told_about_a_summary_that_was_cancelled_goes_with_its_branch(fork: Talk):
    model = fork.screen()
    model.apply(BranchSummaryStarted("e4"))
    model.notice("warning", "slow")
    model.apply(BranchSummaryEnded(aborted=True))
    fork.move("e4")
    fork.tell(model)
    assert "slow" not in texts(model)


def texts(model: TranscriptModel) -> list[str]:
    return [getattr(item.block, "text", "") for item in model.items if item.kind is ItemKind.NOTICE]
