"""What the rows of a tree look like, checked by hand and against a drawing made entry by entry."""

from array import array
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.session.entries import EntryHead
from musepi_tui.session.tree import SessionTree
from musepi_tui.tui.symbols import SYMBOLS
from musepi_tui.tui.tree.forest import NONE, plant
from musepi_tui.tui.tree.layout import Layout, in_symbols, lay_out

TIME = "2026-01-01T00:00:{:02}Z"


def tree_of(parents: list[int]) -> SessionTree:
    """Entries named by their positions; -1 is a root."""
    heads = (
        EntryHead(str(at), None if parent < 0 else str(parent), "message", TIME.format(at % 60))
        for at, parent in enumerate(parents)
    )
    return SessionTree.from_heads(heads)


def layout_of(tree: SessionTree, hidden=(), folded=(), leaf=NONE) -> Layout:
    shown = bytes(at not in hidden for at in range(len(tree)))
    return lay_out(plant(tree, tree.parents, leaf), shown, folded)


def lines(layout: Layout) -> list[str]:
    return [f"{layout.prefix(row)}{position}" for row, position in enumerate(layout.rows)]


def test_single_children_stay_at_one_indent():
    assert lines(layout_of(tree_of([-1, 0, 1, 2]))) == ["0", "1", "2", "3"]


def test_branches_get_connectors_and_what_follows_them_one_more_step():
    assert lines(layout_of(tree_of([-1, 0, 1, 2, 1, 4, 5, 5]))) == [
        "0",
        "1",
        "├⊟ 2",
        "│     3",
        "└⊟ 4",
        "      5",
        "      ├─ 6",
        "      └─ 7",
    ]


def test_a_branch_of_one_entry_branches_right_below_it():
    assert lines(layout_of(tree_of([-1, 0, 0, 1, 1]))) == [
        "0",
        "├⊟ 1",
        "│  ├─ 3",
        "│  └─ 4",
        "└─ 2",
    ]


def test_several_roots_have_no_connectors_and_what_follows_is_moved_in():
    assert lines(layout_of(tree_of([-1, 0, 1, -1, 3, 3]))) == [
        "0",
        "   1",
        "   2",
        "3",
        "├─ 4",
        "└─ 5",
    ]


def test_children_of_hidden_entries_hang_under_the_nearest_visible_one():
    tree = tree_of([-1, 0, 1, 1, 2, 3])
    assert lines(layout_of(tree, hidden={1, 3})) == ["0", "├⊟ 2", "│     4", "└─ 5"]
    assert lines(layout_of(tree, hidden={1, 3, 5})) == ["0", "2", "4"]


def test_hidden_roots_leave_several():
    assert lines(layout_of(tree_of([-1, 0, 0, 1]), hidden={0})) == ["1", "   3", "2"]


def test_folded_branch_shows_its_first_row_only():
    tree = tree_of([-1, 0, 1, 2, 1, 4, 3, 3])
    assert lines(layout_of(tree, folded={2})) == ["0", "1", "├⊞ 2", "└⊟ 4", "      5"]
    assert lines(layout_of(tree, folded={0})) == ["⊞ 0"]


def test_fold_of_an_entry_that_begins_nothing_is_passed_over():
    tree = tree_of([-1, 0, 1, 1])
    assert lines(layout_of(tree, folded={1, 3})) == ["0", "1", "├─ 2", "└─ 3"]


def test_branch_with_the_leaf_comes_first_and_the_others_by_time():
    heads = [
        EntryHead("a", None, "message", "2026-01-01T00:00:00Z"),
        EntryHead("b", "a", "message", "2026-01-01T00:00:03Z"),
        EntryHead("c", "a", "message", "2026-01-01T00:00:01Z"),
        EntryHead("d", "a", "message", "2026-01-01T00:00:02Z"),
        EntryHead("e", "a", "message", "2026-01-01T00:00:02Z"),
    ]
    tree = SessionTree.from_heads(heads)
    assert list(layout_of(tree).rows) == [0, 2, 3, 4, 1]
    assert list(layout_of(tree, leaf=4).rows) == [0, 4, 2, 3, 1]


def test_siblings_without_readable_times_keep_their_file_order():
    heads = [EntryHead("a", None, "message", ""), EntryHead("b", "a", "message", "soon")]
    heads += [EntryHead("c", "a", "message", "2026-01-01T00:00:01Z")]
    assert list(layout_of(SessionTree.from_heads(heads)).rows) == [0, 1, 2]


def test_rings_and_missing_parents_are_roots():
    heads = [
        EntryHead("a", "c", "message", ""),
        EntryHead("b", "a", "message", ""),
        EntryHead("c", "b", "message", ""),
        EntryHead("d", "gone", "message", ""),
        EntryHead("e", "e", "message", ""),
    ]
    assert lines(layout_of(SessionTree.from_heads(heads))) == ["0", "   1", "   2", "3", "4"]


def test_prefix_in_ascii_takes_as_many_cells():
    assert in_symbols("│  ├⊟ ", SYMBOLS["ascii"]) == "|  |- "
    assert in_symbols("   └⊞ ", SYMBOLS["ascii"]) == "   `+ "
    assert in_symbols("├─ ", SYMBOLS["ascii"]) == "|- "


DEEP = 50_000


@pytest.mark.parametrize(
    ("parents", "segments"),
    [
        pytest.param([at - 1 for at in range(DEEP)], 1, id="straight line"),
        pytest.param([-1, *[0] * 5_000], 5_001, id="5,000 children of one parent"),
        pytest.param([-1 if at == 0 else (at - 1) // 2 * 2 for at in range(4_000)], 3_999, id="comb"),
    ],
)
def test_extreme_shapes_are_drawn_to_the_last_row(parents, segments):
    layout = layout_of(tree_of(parents))
    assert (len(layout.rows), len(layout.segments)) == (len(parents), segments)
    assert set(layout.prefix(len(parents) - 1)) <= set("├└│─⊟⊞ ")
    assert layout.prefix(len(parents) - 1) == layout_of(tree_of(parents)).prefix(len(parents) - 1)


@dataclass
class Node:
    """An entry on its way into the drawing: its indent, and the columns where lines go down past it."""

    position: int
    indent: int = 0
    has_branched: bool = False
    connector: str = ""
    gutters: tuple[tuple[int, bool], ...] = ()


def drawn_by_entries(parents: list[int], shown: bytes) -> list[str]:
    """The drawing of tui 5.2 by its rules, one entry at a time; siblings in file order."""
    children: dict[int, list[int]] = {}
    for position, parent in enumerate(parents):
        above = parent
        while above >= 0 and not shown[above]:
            above = parents[above]
        if shown[position]:
            children.setdefault(above, []).append(position)
    for found in children.values():
        found.sort(key=lambda at: way_to(parents, at))
    roots = children.get(-1, [])
    is_many = len(roots) > 1
    stack = [Node(root, int(is_many), is_many) for root in reversed(roots)]
    rows: list[str] = []
    while stack:
        node = stack.pop()
        below = children.get(node.position, [])
        indent = node.indent - 1 if is_many else node.indent
        rows.append(f"{draw(node, max(0, indent), bool(below))}{node.position}")
        gutters = node.gutters
        if node.connector:
            gutters = (*gutters, (indent - 1, node.connector == "├"))
        branches = len(below) > 1
        more = branches or (node.has_branched and node.indent > 0)
        for child in reversed(below):
            connector = "" if not branches else "└" if child == below[-1] else "├"
            stack.append(Node(child, node.indent + more, branches, connector, gutters))
    return rows


def way_to(parents: list[int], position: int) -> list[int]:
    way = [position]
    while parents[way[-1]] >= 0:
        way.append(parents[way[-1]])
    return way[::-1]


def draw(node: Node, indent: int, has_children: bool) -> str:
    cells = [" "] * (3 * indent)
    for column, goes_on in node.gutters:
        cells[3 * column] = "│" if goes_on else " "
    if node.connector:
        cells[3 * indent - 3] = node.connector
        cells[3 * indent - 2] = "⊟" if has_children else "─"
    return "".join(cells)


@st.composite
def shapes(draw_from):
    size = draw_from(st.integers(0, 24))
    parents = [
        draw_from(st.one_of(st.just(at - 1), st.integers(-1, at - 1))) if at else -1 for at in range(size)
    ]
    return parents, bytes(draw_from(st.lists(st.booleans(), min_size=size, max_size=size)))


@settings(max_examples=300)
@given(shapes())
def test_rows_are_those_of_a_drawing_made_entry_by_entry(shape):
    parents, shown = shape
    tree = tree_of(parents)
    assert lines(lay_out(plant(tree, tree.parents, NONE), shown, ())) == drawn_by_entries(parents, shown)


@given(st.integers(1, 12).flatmap(lambda size: st.tuples(*(st.integers(-1, at - 1) for at in range(size)))))
def test_index_of_an_entry_is_its_place_in_the_order_all_are_drawn_in(parents):
    forest = plant(tree_of(list(parents)), array("i", parents), NONE)
    order = forest.order()
    assert [forest.index_of(position) for position in order] == list(range(len(order)))
    assert forest.index_of(NONE) == len(order)
