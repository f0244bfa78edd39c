from musepi_tui.context.edits import NO_EDITS, Edit, EditReason, KindCount, SavingEdit, collect_edits
from musepi_tui.context.window import path_items
from tests.support.builders import path, t, u

ITEMS = path_items(path(u("x"), t("one"), t("two"), t("three")))


def test_edits_are_in_the_order_of_the_path_and_counted_by_reason():
    found = [
        SavingEdit(Edit("e4", "z", EditReason.USELESS), 5),
        SavingEdit(Edit("e2", "x", EditReason.SUPERSEDED), 7),
        SavingEdit(Edit("e3", "y", EditReason.USELESS), 1),
    ]
    edits = collect_edits(ITEMS, found)
    assert [change.target_id for change in edits.changes] == ["e2", "e3", "e4"]
    assert edits.tokens_saved == 13
    assert edits.earliest_entry_id == "e2"
    assert edits.counts == (
        KindCount(EditReason.SUPERSEDED, 1, 7),
        KindCount(EditReason.USELESS, 2, 6),
    )


def test_nothing_to_change_is_false():
    assert not collect_edits(ITEMS, [])
    assert collect_edits(ITEMS, []) == NO_EDITS
    assert NO_EDITS.earliest_entry_id is None
