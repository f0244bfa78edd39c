import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.errors import EntryNotFoundError
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.tree import LEAF_MARK, SessionTree, find_rings, relink_orphans


def head(entry_id: str, parent_id: str | None, timestamp: str = "2026-01-01T00:00:00Z") -> EntryHead:
    return EntryHead(entry_id, parent_id, "message", timestamp)


def ids(heads) -> list[str]:
    return [item.id for item in heads]


def forked() -> SessionTree:
    return SessionTree.from_heads(
        [head("a", None), head("b", "a"), head("c", "b"), head("d", "b"), head("e", None)]
    )


def test_path_goes_from_root_to_leaf():
    assert ids(forked().path("d")) == ["a", "b", "d"]


def test_path_is_that_of_the_last_entry_when_no_leaf_is_given():
    assert ids(forked().path()) == ["e"]


def test_path_is_empty_when_leaf_is_none():
    assert forked().with_leaf(None).path() == ()


def test_path_raises_for_unknown_entry():
    with pytest.raises(EntryNotFoundError, match="Entry zz not found"):
        forked().path("zz")


def test_with_leaf_raises_for_unknown_entry():
    with pytest.raises(EntryNotFoundError):
        forked().with_leaf("zz")


def test_roots_and_leaves_of_several_trees():
    tree = forked()
    assert tree.roots == ("a", "e")
    assert tree.leaves == ("c", "d", "e")
    assert tree.longest_path == 3


def test_common_ancestor_is_the_fork():
    assert forked().common_ancestor("c", "d") == "b"
    assert forked().common_ancestor("c", "b") == "b"
    assert forked().common_ancestor("c", "e") is None
    assert forked().common_ancestor(None, "e") is None


def test_with_entry_makes_it_the_leaf_and_leaves_the_old_tree_alone():
    tree = forked()
    grown = tree.with_entry(head("f", "d"))
    assert grown.leaf_id == "f"
    assert ids(grown.path()) == ["a", "b", "d", "f"]
    assert "f" not in tree
    assert tree.children("d") == ()
    assert list(tree.heads) == ["a", "b", "c", "d", "e"]


def test_two_trees_can_grow_from_the_same_one():
    tree = forked()
    first = tree.with_entry(head("f", "d"))
    second = tree.with_entry(head("g", "c"))
    assert "g" not in first
    assert "f" not in second
    assert second.children("c") == ("g",)


def test_children_are_in_file_order_and_walk_in_time_order():
    tree = SessionTree.from_heads(
        [
            head("a", None),
            head("late", "a", "2026-01-01T00:00:09Z"),
            head("soon", "a", "2026-01-01T00:00:01Z"),
        ]
    )
    assert tree.children("a") == ("late", "soon")
    assert [entry_id for entry_id, _ in tree.walk()] == ["a", "soon", "late"]


def test_walk_keeps_file_order_when_a_time_cannot_be_read():
    tree = SessionTree.from_heads(
        [head("a", None), head("b", "a", "2026-01-01T00:00:09Z"), head("c", "a", "yesterday")]
    )
    assert [entry_id for entry_id, _ in tree.walk()] == ["a", "b", "c"]


def test_entry_that_is_its_own_parent_is_a_root():
    tree = SessionTree.from_heads([head("a", "a"), head("b", "a")])
    assert tree.roots == ("a",)
    assert ids(tree.path("b")) == ["a", "b"]


def test_ring_has_its_first_entry_as_root():
    tree = SessionTree.from_heads([head("a", "c"), head("b", "a"), head("c", "b"), head("d", "c")])
    assert tree.roots == ("a",)
    assert ids(tree.path("d")) == ["a", "b", "c", "d"]
    assert [entry_id for entry_id, _ in tree.walk()] == ["a", "b", "c", "d"]


def test_last_entry_with_an_id_counts_at_the_place_of_the_first():
    tree = SessionTree.from_heads([head("a", None), head("b", "a"), head("c", "b"), head("b", None)])
    assert list(tree.order) == ["a", "b", "c"]
    assert ids(tree.path("c")) == ["b", "c"]
    assert tree.leaf_id == "b"


def test_parent_that_comes_later_is_found():
    tree = SessionTree.from_heads([head("b", "a"), head("a", None)])
    assert tree.roots == ("a",)
    assert tree.children("a") == ("b",)


def test_missing_parent_that_arrives_later_gets_its_child():
    tree = SessionTree.from_heads([head("b", "a")])
    assert tree.roots == ("b",)
    assert tree.with_entry(head("a", None)).children("a") == ("b",)


def test_orphans_are_linked_to_the_entry_before_them():
    linked, changed = relink_orphans([head("x", "gone"), head("a", None), head("b", "lost"), head("c", "b")])
    assert [item.parent_id for item in linked] == [None, None, "a", "b"]
    assert changed == (0, 2)


def test_tree_of_a_hundred_thousand_entries_in_a_row_needs_no_recursion():
    heads = [head("0", None), *(head(str(index), str(index - 1)) for index in range(1, 100_000))]
    tree = SessionTree.from_heads(heads)
    assert len(tree.path()) == 100_000
    assert tree.longest_path == 100_000
    assert tree.common_ancestor("99999", "50000") == "50000"


names = st.sampled_from("abcdefgh")
any_heads = st.lists(st.builds(head, names, st.one_of(st.none(), names, st.just("missing"))), max_size=12)


@given(any_heads)
def test_every_entry_of_any_tree_is_walked_once(heads):
    tree = SessionTree.from_heads(heads)
    walked = [entry_id for entry_id, _ in tree.walk()]
    assert sorted(walked) == sorted({item.id for item in heads})
    for entry_id in walked:
        assert tree.path(entry_id)[-1].id == entry_id


@given(any_heads)
def test_growing_one_by_one_gives_the_same_tree(heads):
    unique = list({item.id: item for item in heads}.values())
    grown = SessionTree.empty()
    for item in unique:
        grown = grown.with_entry(item)
    whole = SessionTree.from_heads(unique)
    known = {item.id for item in unique}
    if find_rings(whole.heads, list(whole.order)):
        return
    assert grown.leaf_id == whole.leaf_id
    for entry_id in (None, *known):
        assert grown.children(entry_id) == whole.children(entry_id)


@given(any_heads, st.integers(0, 12))
def test_older_tree_stays_as_it_was(heads, cut):
    unique = list({item.id: item for item in heads}.values())
    old = SessionTree.from_heads(unique[:cut])
    before = (list(old.order), old.roots, old.leaves, dict(old.heads))
    grown = old
    for item in unique[cut:]:
        grown = grown.with_entry(item)
    assert (list(old.order), old.roots, old.leaves, dict(old.heads)) == before


@given(any_heads)
def test_relinking_leaves_no_orphan(heads):
    linked, _ = relink_orphans(heads)
    known = {item.id for item in linked}
    assert all(item.parent_id is None or item.parent_id in known for item in linked)


def mark(entry_id: str, parent_id: str | None) -> EntryHead:
    return EntryHead(entry_id, parent_id, "custom", "t", role=LEAF_MARK)


def test_mark_of_a_moved_leaf_counts_as_its_parent():
    tree = forked().with_entry(mark("m1", "b"))
    assert (tree.leaf_id, tree.display_leaf) == ("m1", "b")
    assert tree.with_entry(mark("m2", "m1")).display_leaf == "b"
    assert tree.with_entry(head("f", "m1")).display_leaf == "f"
    assert tree.with_entry(mark("m3", None)).display_leaf is None
    assert tree.with_leaf(None).display_leaf is None
    assert SessionTree.empty().display_leaf is None


def test_other_custom_entries_are_leaves_of_their_own():
    assert forked().with_entry(EntryHead("x", "b", "custom", "t")).display_leaf == "x"


def test_places_are_replaced_in_a_new_tree_only():
    tree = forked()
    moved = tree.with_places({"b": tree.head("b")._replace(offset=7, length=9), "unknown": head("u", None)})
    assert moved.head("b")[4:6] == (7, 9)
    assert tree.head("b")[4:6] == (0, 0)
    assert (moved.leaf_id, list(moved.order), moved.roots) == (tree.leaf_id, list(tree.order), tree.roots)
    assert moved.with_entry(head("f", "d")).children("d") == ("f",)
    assert "f" not in tree


def test_head_with_another_parent_gives_the_tree_it_says():
    tree = forked().with_places({"e": head("e", "b")})
    assert tree.children("b") == ("c", "d", "e")
    assert tree.roots == ("a",)


def test_places_of_an_older_tree_do_not_bring_back_what_came_later():
    old = forked()
    old.with_entry(head("f", "d"))
    moved = old.with_places({"a": head("a", None)._replace(offset=3)})
    assert list(moved.order) == list(old.order)
    assert moved.head("a").offset == 3


def test_parents_are_positions_and_damage_makes_roots():
    assert list(forked().parents) == [-1, 0, 1, 1, -1]
    odd = [head("a", "c"), head("b", "a"), head("c", "b"), head("d", "gone"), head("e", "e"), head("f", "d")]
    assert list(SessionTree.from_heads(odd).parents) == [-1, 0, 1, -1, -1, 3]


def test_parents_of_a_tree_do_not_change_when_it_goes_on():
    tree = forked()
    grown = tree.with_entry(head("f", "e"))
    assert list(tree.parents) == [-1, 0, 1, 1, -1]
    assert list(grown.parents) == [-1, 0, 1, 1, -1, 4]
