from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.runtime.events import AgentEnded, AgentStarted, EntryAppended, Notice, Phase, SessionReady
from musepi_tui.session.entries import KEEP_NOTHING, CompactionEntry, Entry
from musepi_tui.tui.transcript.blocks import FoldBlock, Item, ItemKind
from musepi_tui.tui.transcript.model import TranscriptModel
from tests.support.builders import Part, a, call, compaction, custom, edit, entry, path, state, t, u
from tests.support.transcripts import drawn, model_of, picture, reader, session_view
from tests.tui.transcript.test_model import live_events, stored_items, without_times

TWO_PASSES = path(u("u1"), a("a1"), compaction("C1", "e1"), u("u2"), compaction("C2", "e4"), u("u3"), a("a3"))


def collapsed(entries: tuple[Entry, ...]) -> TranscriptModel:
    model = model_of(entries)
    model.collapse_compacted(on=True)
    return model


def ids(model: TranscriptModel) -> list[str]:
    return [item.id for item in model.items]


def folded(model: TranscriptModel) -> list[int | None]:
    return [item.block.messages for item in model.items if isinstance(item.block, FoldBlock)]


def test_everything_is_inline_by_default():
    assert ids(model_of(TWO_PASSES)) == ["e1", "e2/0", "e3", "e4", "e5", "e6", "e7/0"]


def test_collapse_leaves_one_row_then_what_was_kept_the_divider_and_the_rest():
    model = collapsed(TWO_PASSES)
    assert ids(model) == ["local:fold", "e4", "e5", "e6", "e7/0"]
    assert folded(model) == [2]


@pytest.mark.parametrize(
    ("first", "shown"),
    [
        ("e3", ["local:fold", "e3", "e4", "e5"]),
        (KEEP_NOTHING, ["local:fold", "e4", "e5"]),
        (None, ["e1", "e2/0", "e3", "e4", "e5"]),
        ("gone", ["e1", "e2/0", "e3", "e4", "e5"]),
        ("e1", ["e1", "e2/0", "e3", "e4", "e5"]),
        ("e5", ["local:fold", "e4", "e5"]),
    ],
)
def test_fold_ends_at_the_first_kept_entry(first, shown):
    assert ids(collapsed(path(u("u1"), a("a1"), u("u2"), compaction("C", first), u("u3")))) == shown


def test_compaction_without_a_usable_summary_folds_nothing_of_its_own():
    retired = compaction("placeholder", "e4", preserve_data={"openaiRemoteCompaction": {}})
    entries = path(u("u1"), a("a1"), compaction("C1", "e2"), u("u2"), retired, compaction(" ", "e4"), u("u3"))
    assert ids(collapsed(entries)) == ["local:fold", "e2/0", "e3", "e4", "e5", "e6", "e7"]
    assert folded(collapsed(path(u("u1"), u("u2"), compaction("", "e2")))) == []


def test_header_and_early_notices_stay_above_the_fold():
    model = TranscriptModel(reader(TWO_PASSES))
    model.set_header(("musepi",))
    model.reset(session_view([]))
    model.notice("warning", "a setting is odd")
    model.reset(session_view(TWO_PASSES))
    model.notice("info", "late")
    model.collapse_compacted(on=True)
    assert ids(model)[:3] == ["local:header", "local:notice-1", "local:fold"]
    assert ids(model)[-1] == "local:notice-2"


def test_tool_results_are_not_counted_as_messages():
    entries = path(
        u("go"), a("", [call("bash", "c")]), t("out", "c"), a("done"), u("on"), compaction("C", "e5")
    )
    assert folded(collapsed(entries)) == [3]


def test_fold_is_one_row_at_any_width():
    (item, *_) = collapsed(TWO_PASSES).items
    assert picture(drawn(item)) == "  … 2 earlier messages · enter to show"
    for width in range(1, 60):
        assert len(drawn(item, width)) == 2
    assert "… 1 earlier message · enter" in picture(drawn(replace(item, block=FoldBlock(1))))
    assert picture(drawn(replace(item, block=FoldBlock(None)))) == "  … earlier messages · enter to show"


def test_opened_fold_stays_open_until_the_next_compaction():
    model = collapsed(TWO_PASSES)
    model.toggle(model.items[0])
    assert ids(model) == ids(model_of(TWO_PASSES))
    model.apply(EntryAppended(entry(u("u4"), "e8", "e7")))
    assert "e1" in ids(model)
    model.apply(EntryAppended(entry(compaction("C3", "e8"), "e9", "e8")))
    assert ids(model) == ["local:fold", "e8", "e9"]


def test_place_under_the_reader_is_found_when_it_is_folded_and_opened():
    model = collapsed(TWO_PASSES)
    assert [model.index_of(name) for name in ("e1", "e3", "e4", "e7")] == [0, 0, 1, 4]
    model.toggle(model.items[0])
    assert model.index_of("local:fold") == 2
    model.collapse_compacted(on=False)
    assert model.index_of("local:fold") is None


def test_tail_that_is_loaded_first_folds_without_a_number():
    model = TranscriptModel(reader(TWO_PASSES))
    model.collapse_compacted(on=True)
    model.reset(session_view(TWO_PASSES, phase=Phase.LOADING, tail=6))
    assert ids(model) == ["local:fold", "e4", "e5", "e6", "e7/0"]
    assert folded(model) == [None]
    model.apply(SessionReady(session_view(TWO_PASSES)))
    assert folded(model) == [2]


def test_failed_answer_that_was_taken_off_the_branch_leaves_the_screen():
    entries = path(u("u1"), a("half"), u("u2"))
    model = model_of(entries)
    model.apply(Notice("info", "Context overflow: compacting", "x"))
    model.apply(EntryAppended(entry(compaction("C", "e1"), "e9", "e1")))
    assert ids(model) == ["e1", "local:notice-1", "e9"]


def test_branch_that_is_put_back_comes_back():
    entries = path(u("u1"), a("half"), u("u2"))
    side, back = entry(custom("side"), "s1", "e1"), entry(u("u3"), "e4", "e3")
    model = TranscriptModel(reader((*entries, side, back)))
    model.reset(session_view(entries))
    model.apply(EntryAppended(side))
    assert ids(model) == ["e1", "s1"]
    model.apply(EntryAppended(back))
    assert ids(model) == ["e1", "e2/0", "e3", "e4"]


# histories

PARTS: st.SearchStrategy[list[Part]] = st.sampled_from(
    [
        [u("question")],
        [a("answer", thinking="hm")],
        [a("", [call("bash", "c1")]), t("out", "c1")],
        [custom("note")],
        [edit("e2", "[pruned]")],
        [state("model_change", provider="p", modelId="m")],
        [state("custom", customType="compaction.warning", data={"warning": "tight"})],
    ]
)
KEEPS = st.sampled_from(["near", "far", "nothing", "none", "gone"])
MOVES = st.integers(1, 4)
OPERATIONS = st.one_of(PARTS, KEEPS, MOVES)
"""Parts are appended, a word is a compaction that keeps so much, a number moves the leaf back before that."""


def history(operations: list[list[Part] | str | int]) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """All entries in the order they were written, and the path they end with."""
    written: list[Entry] = []
    line: list[Entry] = []

    def append(part: Part) -> None:
        made = entry(part, f"e{len(written) + 1}", line[-1].id if line else None)
        written.append(made)
        line.append(made)

    for operation in operations:
        if isinstance(operation, int):
            if len(line) > operation:
                del line[-operation:]
                append(u("elsewhere"))
        elif isinstance(operation, str):
            append(compaction("sum", _first_kept(operation, line)))
        else:
            for part in operation:
                append(part)
    return tuple(written), tuple(line)


def _first_kept(keeps: str, line: list[Entry]) -> str | None:
    match keeps:
        case "near" if line:
            return line[-1].id
        case "far" if line:
            return line[len(line) // 3].id
        case "nothing":
            return KEEP_NOTHING
        case "gone":
            return "nowhere"
        case _:
            return None


def told(written: tuple[Entry, ...], *, collapse: bool) -> TranscriptModel:
    """A screen that followed the session from its start."""
    model = TranscriptModel(reader(written))
    model.collapse_compacted(on=collapse)
    model.reset(session_view([]))
    model.apply(AgentStarted())
    for event in live_events(written):
        model.apply(event)
        assert len(model.items) >= 0  # items are looked at all the time, so nothing stale may be kept
    model.apply(AgentEnded())
    return model


def shown(model: TranscriptModel) -> list[tuple[str, ItemKind, object]]:
    entries: list[Item] = stored_items(model)
    return [(item.id, item.kind, without_times(item.block)) for item in entries]


@settings(deadline=None)
@given(st.lists(OPERATIONS, max_size=14), st.booleans())
def test_live_screen_is_the_resumed_one_for_any_history(operations, collapse):
    written, line = history(operations)
    live, resumed = told(written, collapse=collapse), model_of(line)
    resumed.collapse_compacted(on=collapse)
    assert shown(live) == shown(resumed)
    assert folded(live) == folded(resumed)


@given(st.lists(OPERATIONS, max_size=14))
def test_toggling_twice_restores_the_transcript(operations):
    _, line = history(operations)
    model = model_of(line)
    before = model.items
    model.collapse_compacted(on=True)
    inside = model.items
    model.collapse_compacted(on=False)
    assert model.items == before
    model.collapse_compacted(on=True)
    assert model.items == inside


@given(st.lists(OPERATIONS, max_size=14))
def test_collapse_shows_the_end_of_what_is_shown_inline(operations):
    _, line = history(operations)
    inline, model = model_of(line), collapsed(line)
    kept = [item for item in model.items if item.kind is not ItemKind.FOLD]
    assert kept == list(inline.items)[len(inline.items) - len(kept) :]
    assert len(folded(model)) == (0 if len(kept) == len(inline.items) else 1)
    dividers = sum(isinstance(made, CompactionEntry) for made in line)
    assert sum(item.kind is ItemKind.COMPACTION for item in inline.items) == dividers


@settings(deadline=None)
@given(st.lists(OPERATIONS, max_size=10), st.booleans())
def test_changes_tell_a_view_every_place(operations, collapse):
    written, _ = history(operations)
    model = TranscriptModel(reader(written))
    model.collapse_compacted(on=collapse)
    model.reset(session_view([]))
    places: list[str] = []
    for event in live_events(written):
        model.apply(event)
        changes = model.take_changes()
        names = [model.slot_id(index) for index in range(len(model))]
        if changes.reset:
            places = list(names)
        else:
            for index in changes.inserted:
                places.insert(index, names[index])
            for index in changes.dirty:
                places[index] = names[index]
        assert places == names
        assert [model.index_of(name) for name in names] == list(range(len(names)))
        assert len(model.estimates(80)) == len(names)
        assert [model.estimates(80, i, i + 1)[0] for i in range(len(names))] == model.estimates(80)
