from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.session.entries import EntryHead
from musepi_tui.session.tree import SessionTree
from musepi_tui.tui.transcript.blocks import NoticeBlock
from musepi_tui.tui.transcript.slot_list import SlotList
from musepi_tui.tui.transcript.slots import LocalSlot, Slot, estimate_rows

TYPES = ("message", "custom", "compaction", "context_edit", "model_change")
WIDTH = 80


def heads(number: int) -> list[EntryHead]:
    return [
        EntryHead(
            f"{index:08x}",
            f"{index - 1:08x}" if index else None,
            TYPES[index % len(TYPES)],
            "2026-01-01T00:00:00.000Z",
            index * 1000,
            300 * index,
            (None, "user", "assistant", "toolResult")[index % 4],
        )
        for index in range(number)
    ]


def local(name: int) -> LocalSlot:
    return LocalSlot(f"local:{name}", NoticeBlock("info", "text", None))


steps = st.lists(
    st.tuples(st.sampled_from(["insert", "append", "set local"]), st.integers(0, 30)), max_size=8
)


@given(st.integers(0, 12), st.booleans(), steps)
def test_slot_list_is_like_a_list(number, from_tree, todo):
    plain: list[Slot] = list(heads(number))
    stored = SessionTree.from_heads(heads(number)).path() if number and from_tree else tuple(heads(number))
    slots = SlotList(stored)
    for name, (what, place) in enumerate(todo):
        if what == "insert":
            slots.insert(place % (len(plain) + 1), local(name))
            plain.insert(place % (len(plain) + 1), local(name))
        elif what == "append":
            slots.append(local(name))
            plain.append(local(name))
        elif plain:
            slots[place % len(plain)] = local(name)
            plain[place % len(plain)] = local(name)
    check(slots, plain)


def check(slots: SlotList, plain: list[Slot]) -> None:
    assert [slots[index] for index in range(len(slots))] == plain
    assert [slots[-index - 1] for index in range(len(slots))] == plain[::-1]
    assert slots.local_slots() == tuple(slot for slot in plain if isinstance(slot, LocalSlot))
    known = [slot.id for slot in plain if isinstance(slot, EntryHead)]
    assert slots.last_entry_id() == (known[-1] if known else None)
    assert [slots.index_of(slot.id) for slot in plain] == list(range(len(plain)))
    assert slots.index_of("gone") is None
    wanted = ("custom", "context_edit")
    for start, stop in ((0, len(plain)), (2, len(plain) - 1), (5, 3)):
        places = [
            index
            for index in range(start, max(start, stop))
            if isinstance(slot := plain[index], EntryHead) and slot.type in wanted
        ]
        assert list(slots.places_of(wanted, start, stop)) == places
    assert slots.estimates(WIDTH, 0, None) == estimate_rows(plain, WIDTH)
    assert slots.estimates(WIDTH, 1, 3) == estimate_rows(plain[1:3], WIDTH)
