from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.session.entries import EntryHead
from musepi_tui.session.messages import StopReason
from musepi_tui.session.tree import LEAF_MARK, SessionTree
from musepi_tui.tui.tree.model import FilterMode, Label, TreeModel
from tests.support.builders import a, call, compaction, custom, entry, state, t, u
from tests.support.random_sessions import trees
from tests.support.trees import Planted, drawn, finish, ids_of, plant, reader_of, stored

BRANCHED = {
    "m1": (None, state("model_change", modelId="m")),
    "u1": ("m1", u("look around")),
    "c1": ("u1", a("", [call("bash", "c", command="ls")])),
    "r1": ("c1", t("a.py", "c", "bash")),
    "a1": ("r1", a("Two ways.")),
    "l1": ("a1", state("label", targetId="a1", label="fork")),
    "u2": ("l1", u("try the first")),
    "a2": ("u2", a("It failed.")),
    "u3": ("a1", u("try the second")),
    "a3": ("u3", a("It works.")),
}


def test_tree_opens_at_the_leaf_with_its_path_marked():
    assert drawn(plant(BRANCHED).model()) == [
        "  • u1",
        "  • r1",
        "  • [fork] a1",
        "  ├⊟ • u3",
        "> │     • a3 ← here",
        "  └⊟ u2",
        "        a2",
    ]


def test_branch_with_the_leaf_stays_in_its_place_when_told_so():
    assert ids_of(plant(BRANCHED).model(active_first=False)) == ["u1", "r1", "a1", "u2", "a2", "u3", "a3"]


def test_leaf_of_bookkeeping_counts_as_the_place_above():
    planted = plant({**BRANCHED, "t1": ("a3", state("session_info", name="N"))})
    model = planted.model()
    assert model.selected == "a3"
    assert drawn(model)[4] == "> │     • a3 ← here"
    model.set_mode(FilterMode.ALL)
    assert [line for line in drawn(model) if "here" in line] == ["> │     • a3 ← here"]
    assert "  │     • t1" in drawn(model)


def test_moved_leaf_is_shown_where_its_mark_points_to():
    planted = plant({**BRANCHED, "k1": ("a2", state("custom", customType=LEAF_MARK))})
    model = planted.model()
    assert model.selected == "a2"
    assert [row.strip("> ") for row in drawn(model) if "here" in row] == ["│     • a2 ← here"]


def test_leaf_before_the_first_entry_is_nowhere():
    model = plant(BRANCHED, leaf_id=None).model()
    assert not any("here" in row or "•" in row for row in drawn(model))
    assert model.index == len(model) - 1


def test_empty_tree_has_no_rows_and_every_key_is_harmless():
    model = Planted(()).model()
    for press in (
        lambda: model.move(1),
        lambda: model.page(-5),
        lambda: model.to_edge(1),
        lambda: model.turn(-1),
        model.fold,
        model.unfold,
        lambda: model.set_query("x"),
        lambda: model.cycle_mode(1),
        lambda: model.select("gone"),
    ):
        press()
        assert (len(model), model.index, model.selected) == (0, 0, None)


FILTERED = {
    **BRANCHED,
    "x1": ("a3", custom("/skill review", "example.skill", attribution="user")),
    "x2": ("x1", custom("keep it short", "example.note", attribution="agent")),
    "d1": ("x2", compaction("S", "u3")),
}


@pytest.mark.parametrize(
    ("mode", "ids"),
    [
        (FilterMode.DEFAULT, ["u1", "r1", "a1", "u3", "a3", "x1", "x2", "d1", "u2", "a2"]),
        (FilterMode.NO_TOOLS, ["u1", "a1", "u3", "a3", "x1", "x2", "d1", "u2", "a2"]),
        (FilterMode.USER_ONLY, ["u1", "u3", "x1", "u2"]),
        (FilterMode.LABELED_ONLY, ["a1"]),
        (FilterMode.ALL, ["m1", "u1", "r1", "a1", "u3", "a3", "x1", "x2", "d1", "l1", "u2", "a2"]),
    ],
)
def test_filter_shows_its_kinds(mode, ids):
    model = plant(FILTERED).model(mode)
    assert ids_of(model) == ids


@pytest.mark.parametrize("mode", FilterMode)
@pytest.mark.parametrize(
    ("answer", "is_hidden"),
    [
        (a("", [call("read")]), True),
        (a(" \n", [call("read")], thinking="hm"), True),
        (a("", [call("read")], stop=StopReason.STOP), True),
        (a("", [call("read")], stop=StopReason.ABORTED), False),
        (a("", [call("read")], stop=StopReason.LENGTH), False),
        (a("", thinking="hm"), False),
        (a("words", [call("read")]), False),
    ],
    ids=["calls", "blank text", "stopped", "aborted", "cut off", "no calls", "text"],
)
def test_answer_made_only_of_calls_is_hidden_in_every_filter(mode, answer, is_hidden):
    parts = {
        "u1": (None, u("x")),
        "a1": ("u1", answer),
        "l1": ("a1", state("label", targetId="a1", label="L")),
        "u2": ("l1", u("y")),
    }
    ids = ids_of(plant(parts).model(mode))
    assert ("a1" in ids) == (not is_hidden and mode is not FilterMode.USER_ONLY)
    at_leaf = ids_of(plant(parts, leaf_id="a1").model(mode))
    assert ("a1" in at_leaf) == (mode is not FilterMode.USER_ONLY)


def test_filter_that_hides_the_selection_selects_the_nearest_above_and_gives_it_back():
    model = plant(BRANCHED).model()
    model.select("r1")
    model.set_mode(FilterMode.USER_ONLY)
    assert model.selected == "u1"
    model.set_mode(FilterMode.LABELED_ONLY)
    assert model.selected == "a1"
    model.set_mode(FilterMode.DEFAULT)
    assert model.selected == "r1"


def test_filters_go_round_both_ways():
    model = plant(BRANCHED).model()
    seen = []
    for _ in FilterMode:
        seen.append(model.mode)
        model.cycle_mode(1)
    assert seen == list(FilterMode)
    model.cycle_mode(-1)
    assert model.mode is FilterMode.ALL


def test_moving_wraps_and_paging_stops_at_the_ends():
    model = plant(BRANCHED).model()
    model.to_edge(-1)
    model.move(-1)
    assert model.selected == "a2"
    model.move(1)
    assert model.selected == "u1"
    model.page(3)
    assert model.index == 3
    model.page(30)
    assert model.index == 6
    model.page(-30)
    assert model.index == 0
    model.index = 99
    assert model.index == 6


def test_turns_are_prompts_and_answers():
    model = plant(BRANCHED).model()
    model.to_edge(-1)
    model.turn(1)
    assert model.selected == "a1"
    model.turn(-1)
    model.turn(-1)
    assert model.selected == "u1"


def test_fold_hides_a_branch_or_goes_to_where_it_begins():
    model = plant(BRANCHED).model()
    model.fold()
    assert model.selected == "u3"
    model.fold()
    assert drawn(model)[3:] == ["> ├⊞ • u3", "  └⊟ u2", "        a2"]
    assert model.row(3).is_folded
    model.fold()
    assert model.selected == "u1"
    model.fold()
    assert drawn(model) == ["> ⊞ • u1"]
    model.unfold()
    assert drawn(model)[3] == "  ├⊞ • u3"


def test_unfold_goes_on_to_the_branches_or_to_the_end():
    model = plant(BRANCHED).model()
    model.to_edge(-1)
    model.unfold()
    assert model.selected == "u3"
    model.unfold()
    assert model.selected == "a3"
    model.unfold()
    assert model.selected == "a3"


def test_selecting_what_is_folded_selects_the_fold():
    model = plant(BRANCHED).model()
    model.select("u2")
    model.fold()
    model.select("a2")
    assert model.selected == "u2"
    model.select("gone")
    assert model.index == len(model) - 1


def test_search_looks_behind_folds_which_stay():
    model = plant(BRANCHED).model()
    model.select("u2")
    model.fold()
    model.set_query("failed")
    finish(model)
    assert drawn(model) == ["> a2"]
    model.set_query("")
    assert drawn(model)[-1] == "> └⊞ u2"


def test_search_combines_with_the_filter_and_finds_labels_and_calls():
    model = plant(BRANCHED).model()
    for query, ids in (("fork", ["a1"]), ("ls", ["r1"]), ("bash a.py", ["r1"]), ("user try", ["u3", "u2"])):
        model.set_query(query)
        finish(model)
        assert (query, ids_of(model)) == (query, ids)
    model.set_mode(FilterMode.LABELED_ONLY)
    assert (ids_of(model), model.index, model.selected) == ([], 0, None)
    model.set_query("")
    assert ids_of(model) == ["a1"]


def test_search_can_begin_with_a_quote_or_a_blank():
    model = plant(BRANCHED).model()
    everything = ids_of(model)
    for query in ('"', '""', " "):
        model.set_query(query)
        finish(model)
        assert (query, model.query, ids_of(model)) == (query, query, everything)
    model.set_query('"aro')
    finish(model)
    assert ids_of(model) == ["u1"]
    model.set_query('"aon')
    finish(model)
    assert ids_of(model) == []


def straight(size):
    """A line of so many prompts, the last one the leaf."""
    return plant({f"e{at}": (f"e{at - 1}" if at else None, u(f"word {at}")) for at in range(size)})


def test_search_shows_hits_near_the_selection_first_and_tells_when_it_is_through():
    model = straight(3000).model()
    rows = model._rows
    rows.set_query("word", 0)
    assert model.is_searching
    assert 0 < len(model) < 3000
    assert ids_of(model)[-1] == "e2999"
    finish(model)
    assert not model.is_searching
    assert len(model) == 3000


def test_character_that_is_erased_brings_back_its_rows_without_searching():
    model = straight(3000).model()
    for query in ("word", "word 2"):
        model.set_query(query)
        finish(model)
    assert len(model) < 3000
    model._rows.set_query("word", 0)
    assert (model.is_searching, len(model)) == (False, 3000)


def test_rows_are_made_anew_in_a_slice_of_their_own():
    model = straight(3000).model()
    model._rows.set_query("word", 0)
    while model.is_searching:
        before = model.revision
        assert model.work(0)
        assert model.revision == before or model.is_searching
    before = model.revision
    model.work(1000)
    assert (model.revision > before, len(model)) == (True, 3000)


def test_search_that_finds_nothing_makes_no_rows_anew():
    model = straight(3000).model()
    model._rows.set_query("zebra", 0)
    before = model.revision
    finish(model)
    assert (model.revision, len(model), model.is_searching) == (before, 0, False)


def test_search_goes_on_with_a_tree_that_grew():
    planted = straight(10)
    model = planted.model()
    model.set_query("word")
    finish(model)
    planted.append(u("word new"), "n", "e9")
    model.follow(planted.tree)
    finish(model)
    assert ids_of(model)[-1] == "n"
    model.set_query("word n")
    finish(model)
    assert ids_of(model) == ["n"]


def test_selection_comes_back_after_a_search_that_hid_it():
    model = plant(BRANCHED).model()
    model.set_query("around")
    assert model.selected == "u1"
    model.set_query("")
    assert model.selected == "a3"
    model.set_query("around")
    model.move(1)
    model.set_query("")
    assert model.selected == "u1"


def test_newest_label_of_an_entry_counts_wherever_it_was_given():
    planted = plant({**BRANCHED, "l2": ("a2", state("label", targetId="a1", label="  better "))})
    found = next(row for row in map(planted.model().row, range(7)) if row.entry_id == "a1")
    assert found.label == Label("better", planted.entries["l2"].timestamp)
    planted.append(state("label", targetId="a1", label=""), "l3", "l2")
    assert not any("[" in row for row in drawn(planted.model()))


def test_tree_that_grows_keeps_selection_folds_and_filter():
    planted = plant(BRANCHED)
    model = planted.model(FilterMode.NO_TOOLS)
    model.select("u2")
    model.fold()
    planted.append(u("go on"), "u4", "a3")
    planted.append(state("label", targetId="u4", label="new"), "l4", "u4")
    model.follow(planted.tree)
    finish(model)
    assert drawn(model) == [
        "  • u1",
        "  • [fork] a1",
        "  ├⊟ • u3",
        "  │     • a3",
        "  │     • [new] u4 ← here",
        "> └⊞ u2",
    ]


def test_leaf_that_moves_is_followed():
    planted = plant(BRANCHED)
    model = planted.model()
    model.follow(planted.tree.with_leaf("a2"))
    assert drawn(model) == [
        "  • u1",
        "  • r1",
        "  • [fork] a1",
        "  ├⊟ • u2",
        "  │     • a2 ← here",
        "  └⊟ u3",
        ">       a3",
    ]


def test_another_session_starts_over():
    sessions = [plant(BRANCHED)]
    model = TreeModel(sessions[0].tree, lambda entry_id: sessions[-1].read(entry_id))
    model.select("u2")
    model.fold()
    sessions.append(plant({"z1": (None, u("x")), "z2": ("z1", a("", [call("read")])), "u2": ("z2", a("y"))}))
    model.follow(sessions[-1].tree)
    assert drawn(model) == ["  • z1", "> • u2 ← here"]


def test_entries_that_cannot_be_read_are_rows_by_their_type():
    planted = plant(BRANCHED)
    planted.unreadable |= {"a2", "r1", "l1", "c1"}
    model = planted.model()
    assert ids_of(model) == ["u1", "c1", "r1", "a1", "u3", "a3", "u2", "a2"]
    assert model.describe("a2") == "[message]"
    model.set_query("message")
    finish(model)
    assert ids_of(model) == ["c1", "r1", "a2"]


def test_result_is_described_by_the_call_above_it():
    parts = {
        "u1": (None, u("x")),
        "a1": ("u1", a("", [call("read", "c1", path="a.py"), call("read", "c2", path="b.py")])),
        "r1": ("a1", t("A", "c1")),
        "r2": ("r1", t("B", "c2")),
        "u2": ("r2", u("y")),
        "r3": ("u2", t("C", "c2")),
    }
    model = plant(parts).model()
    assert [model.describe(entry_id) for entry_id in ("r1", "r2", "r3")] == [
        "[read: a.py]",
        "[read: b.py]",
        "[read]",
    ]


def test_rows_near_the_selection_are_right_before_anything_else_is_read():
    parts = {"e0": (None, u("start"))}
    for number in range(1, 1200):
        calls = [call("read", f"c{number}")]
        parts[f"e{number}"] = (f"e{number - 1}", a("" if number % 2 else "words", calls))
    planted = plant(parts)
    read: list[str] = []
    model = TreeModel(planted.tree, lambda entry_id: read.append(entry_id) or planted.read(entry_id))
    assert ids_of(model)[-30:] == [*(f"e{number}" for number in range(1142, 1199, 2)), "e1199"]
    assert len(read) < 700
    model.to_edge(-1)
    assert ids_of(model)[:30] == [f"e{number}" for number in range(0, 60, 2)]
    finish(model)
    assert len(model) == 601


def test_straight_line_of_fifty_thousand_entries_can_be_walked_from_end_to_end():
    size = 50_000
    heads = (
        EntryHead(f"{at:08x}", f"{at - 1:08x}" if at else None, "message", "", role="user")
        for at in range(size)
    )
    tree = SessionTree.from_heads(heads)
    made = entry(u("x"), "", None)
    model = TreeModel(tree, lambda entry_id: replace(made, id=entry_id))
    assert (len(model), model.index) == (size, size - 1)
    model.fold()
    assert model.index == 0
    model.fold()
    assert len(model) == 1
    model.select(f"{size - 1:08x}")
    assert model.selected == "00000000"
    model.unfold()
    model.unfold()
    assert model.index == size - 1


@settings(max_examples=40, deadline=None)
@given(trees(), st.sampled_from(FilterMode), st.sampled_from(["", "a", "u i", '"hi"', "tool", "größe"]))
def test_quick_reading_of_lines_shows_what_decoding_shows(tmp_path_factory, entries, mode, query):
    with stored(tmp_path_factory.mktemp("tree"), entries) as loaded:
        starts = (loaded.bodies.line_start, None)
        quick, slow = (
            TreeModel(loaded.tree, reader_of(loaded), mode=mode, read_start=start) for start in starts
        )
        for model in (quick, slow):
            model.set_query(query)
            finish(model)
        assert drawn(quick) == drawn(slow)


KEYS = {
    "down": lambda model: model.move(1),
    "up": lambda model: model.move(-1),
    "page": lambda model: model.page(4),
    "home": lambda model: model.to_edge(-1),
    "turn": lambda model: model.turn(1),
    "fold": TreeModel.fold,
    "unfold": TreeModel.unfold,
    "filter": lambda model: model.cycle_mode(1),
    "search": lambda model: model.set_query(model.query + "i"),
    "erase": lambda model: model.set_query(model.query[:-1]),
    "clear": lambda model: model.set_query(""),
    "work": lambda model: model.work(0),
}


@settings(max_examples=60, deadline=None)
@given(trees(most=15), st.lists(st.sampled_from(sorted(KEYS)), max_size=25))
def test_rows_and_selection_stay_consistent_whatever_is_pressed(entries, keys):
    planted = Planted(entries)
    model = TreeModel(planted.tree, planted.read)
    for key in keys:
        KEYS[key](model)
        ids = ids_of(model)
        assert len(ids) == len(set(ids))
        assert model.selected == (ids[model.index] if ids else None)
    model.set_query("")
    model.set_mode(FilterMode.ALL)
    finish(model)
    model.to_edge(-1)
    hidden = {entry_id for entry_id in planted.tree.order} - set(ids_of(model))
    folded = any(model.row(index).is_folded for index in range(len(model)))
    assert folded or all(planted.tree.head(entry_id).role == "assistant" for entry_id in hidden)
