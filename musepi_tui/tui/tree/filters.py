"""Which entries a filter of the tree shows (tui 5.3)."""

from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum

from musepi_tui.session.places import PLACE_TYPES


class FilterMode(StrEnum):
    """The filters, spelled as in the settings, in the order the key goes through them."""

    DEFAULT = "default"
    NO_TOOLS = "no-tools"
    USER_ONLY = "user-only"
    LABELED_ONLY = "labeled-only"
    ALL = "all"


class Kind(IntEnum):
    """What an entry is to a filter; each fits into a byte.

    The body of an ``UNREAD_ANSWER`` tells whether it is ``ANSWER`` or ``CALLS_ONLY``, that of an
    ``UNREAD_INSERT`` whether a person typed it. Until then they count as the first and as the last.
    """

    PROMPT = 1
    UNREAD_ANSWER = 2
    ANSWER = 3
    CALLS_ONLY = 4
    RESULT = 5
    UNREAD_INSERT = 6
    TYPED_INSERT = 7
    PLACE = 8
    BOOKKEEPING = 9


UNREAD = frozenset({Kind.UNREAD_ANSWER, Kind.UNREAD_INSERT})
"""Kinds that are not settled before the body was read."""

TURNS = frozenset({Kind.PROMPT, Kind.TYPED_INSERT, Kind.UNREAD_ANSWER, Kind.ANSWER})
"""What a person or the model said."""

_PLACES = frozenset(Kind) - {Kind.CALLS_ONLY, Kind.BOOKKEEPING}
_SHOWN: Mapping[FilterMode, frozenset[Kind]] = {
    FilterMode.DEFAULT: _PLACES,
    FilterMode.NO_TOOLS: _PLACES - {Kind.RESULT},
    FilterMode.USER_ONLY: frozenset({Kind.PROMPT, Kind.TYPED_INSERT}),
    FilterMode.LABELED_ONLY: frozenset(),
    FilterMode.ALL: _PLACES | {Kind.BOOKKEEPING},
}
_TABLES = {
    mode: bytes(kind in {int(shown) for shown in kinds} for kind in range(256))
    for mode, kinds in _SHOWN.items()
}
_BY_ROLE = {"user": Kind.PROMPT, "assistant": Kind.UNREAD_ANSWER, "toolResult": Kind.RESULT}


def kind_of(entry_type: str, role: str | None) -> Kind:
    """The kind of an entry as far as its head tells."""
    if entry_type == "message":
        return _BY_ROLE.get(role or "", Kind.PLACE)
    if entry_type == "custom_message":
        return Kind.UNREAD_INSERT
    return Kind.PLACE if entry_type in PLACE_TYPES else Kind.BOOKKEEPING


def choose(kinds: bytes | bytearray, mode: FilterMode, labeled: Iterable[int], leaf: int) -> bytearray:
    """A byte for each kind: 1 where the filter shows the entry.

    ``labeled`` are the indexes of entries with a label. The one at ``leaf`` (-1 without one) is shown even
    where it is made only of tool calls.
    """
    shown = bytearray(kinds.translate(_TABLES[mode]))
    if mode is FilterMode.LABELED_ONLY:
        for index in labeled:
            shown[index] = kinds[index] != Kind.CALLS_ONLY or index == leaf
    elif leaf >= 0 and kinds[leaf] == Kind.CALLS_ONLY:
        shown[leaf] = _TABLES[mode][Kind.ANSWER]
    return shown
