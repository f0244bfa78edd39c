import pytest
from hypothesis import given

from musepi_tui.session.damage import repair_tree
from musepi_tui.session.entries import EntryHead
from tests.session.test_tree import any_heads, head


def kinds(heads: list[EntryHead], **options) -> list[tuple[int, str]]:
    return [(index, kind) for index, kind, _ in repair_tree(heads, **options).problems]


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ([head("a", None), head("b", "a")], []),
        (
            [head("a", "gone"), head("b", "a"), head("c", "lost")],
            [(0, "orphan_relinked"), (2, "orphan_relinked")],
        ),
        ([head("a", "a")], [(0, "cycle")]),
        ([head("b", "a"), head("a", None)], [(0, "late_parent")]),
        ([head("a", None), head("a", None)], [(1, "dup_id")]),
        ([head("a", "b"), head("b", "a")], [(0, "cycle"), (0, "late_parent")]),
    ],
    ids=["sound", "orphans", "own parent", "late parent", "repeated", "ring"],
)
def test_each_damage_is_named(heads, expected):
    assert kinds(heads) == expected


def test_strict_keeps_orphans_as_roots():
    repair = repair_tree([head("a", None), head("b", "gone")], strict=True)
    assert repair.tree.roots == ("a", "b")
    assert (repair.problems, repair.orphans) == ((), 1)


def test_repeated_orphan_is_not_linked_to_itself():
    repair = repair_tree([head("r", None), head("a", "r"), head("a", "gone")])
    assert repair.tree.heads["a"].parent_id == "r"


@given(any_heads)
def test_repair_keeps_every_entry_and_never_raises(heads):
    repair = repair_tree(heads)
    assert [item.id for item in repair.heads] == [item.id for item in heads]
    assert set(repair.tree.order) == {item.id for item in heads}
    assert repair.tree.leaf_id == (heads[-1].id if heads else None)
