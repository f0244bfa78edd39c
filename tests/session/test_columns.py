from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.session import columns as columns_module
from musepi_tui.session.columns import HeadColumns, HeadList, of_types
from musepi_tui.session.entries import EntryHead

ids = st.one_of(
    st.integers(0, 2**32 - 1).map(lambda number: f"{number:08x}"),
    st.text(st.characters(exclude_categories=()), min_size=1, max_size=9),
    st.just("\0" * 8),
)
times = st.sampled_from(["2026-01-01T00:00:00.000Z", "", "yesterday", "2026-01-01T00:00:00.00éZ", "t" * 24])
roles = st.sampled_from([None, "user", "assistant"])


@st.composite
def head_lists(draw) -> list[EntryHead]:
    made: list[EntryHead] = []
    for entry_id in draw(st.lists(ids, max_size=12, unique=True)):
        known = [head.id for head in made]
        parent = draw(st.sampled_from([None, "missing!", entry_id, *known]))
        kind = draw(st.sampled_from(["message", "label", "späteres"]))
        place = draw(st.integers(0, 2**40)), draw(st.integers(0, 2**28))
        made.append(EntryHead(entry_id, parent, kind, draw(times), *place, draw(roles)))
    return made


def filled(heads) -> HeadColumns:
    columns = HeadColumns()
    for head in heads:
        columns.add(head)
    return columns


@given(head_lists())
def test_heads_come_back_as_they_were(heads):
    columns = filled(heads)
    columns.seal()
    listed = HeadList(columns, range(len(columns)))
    assert listed == heads
    assert [columns.head_at(place) for place in range(len(heads))] == heads
    assert list(reversed(listed)) == heads[::-1]
    assert listed.ids == [head.id for head in heads]
    assert [columns.find(head.id) for head in heads] == list(range(len(heads)))
    assert columns.find("00000000x") is None


@given(head_lists(), st.integers(0, 12))
def test_heads_that_come_later_are_found_too(heads, cut):
    columns = filled(heads[:cut])
    columns.seal()
    for head in heads[cut:]:
        columns.append(head)
    assert HeadList(columns, range(len(columns))) == heads
    assert [columns.find(head.id) for head in heads] == list(range(len(heads)))


@given(head_lists(), st.integers(0, 12))
def test_cut_columns_are_those_of_the_first_heads(heads, cut):
    columns = filled(heads)
    columns.cut(cut)
    columns.seal()
    assert HeadList(columns, range(len(columns))) == heads[:cut]


@given(head_lists())
def test_seal_tells_sound_heads_from_damaged_ones(heads):
    known: set[str] = set()
    is_sound = True
    for head in heads:
        is_sound = is_sound and (head.parent_id is None or head.parent_id in known)
        known.add(head.id)
    assert filled(heads).seal() == is_sound


def test_seal_sees_an_id_that_repeats():
    for entry_id in ("0000000a", "odd"):
        head = EntryHead(entry_id, None, "message", "t")
        assert not filled([head, EntryHead("0000000b", None, "message", "t"), head]).seal()


def test_copy_has_a_life_of_its_own():
    columns = filled([EntryHead("0000000a", None, "message", "t", 5, 6)])
    columns.seal()
    copy = columns.copy()
    copy.offsets[0] = 7
    copy.append(EntryHead("0000000b", "0000000a", "label", "t"))
    assert columns.head_at(0).offset == 5
    assert columns.find("0000000b") is None
    assert copy.head_at(1).parent_id == "0000000a"


@given(head_lists())
def test_heads_are_chosen_by_type(heads):
    columns = filled(heads)
    columns.seal()
    listed = HeadList(columns, range(len(columns)))
    wanted = [head for head in heads if head.type == "message"]
    assert listed.of_types(("message",)) == wanted == of_types(heads, ("message",))
    assert listed.without_types(("message",)) == [head for head in heads if head.type != "message"]
    assert listed.with_roles((None,)) == [head for head in heads if head.role is None]
    assert [heads[place] for place in listed.places_of(("message",), 0, len(heads))] == wanted
    assert [listed.index_of(head.id) for head in heads] == list(range(len(heads)))


def test_ids_of_a_large_session_are_found_and_seen_to_repeat(monkeypatch):
    monkeypatch.setattr(columns_module, "_MANY", 50)
    heads = [EntryHead(f"{number * 7919 % 2**32:08x}", None, "message", "t") for number in range(3000)]
    columns = filled(heads)
    assert columns.seal()
    assert [columns.find(head.id) for head in heads] == list(range(3000))
    assert columns.find("ffffffff") is None
    assert not filled([*heads, heads[1700]]).seal()
