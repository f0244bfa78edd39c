"""What the bodies of entries say, as far as filters and searches ask. Read in slices, kept by position."""

from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeAlias

from musepi_tui.base.errors import SessionError
from musepi_tui.session.entries import CustomMessageEntry, Entry, EntryHead, MessageEntry
from musepi_tui.session.glimpse import START_BYTES, Glimpse, glimpse, glimpse_answer
from musepi_tui.session.messages import AssistantMessage, ToolCallBlock, tool_calls_of
from musepi_tui.session.tree import SessionTree
from musepi_tui.tui.tree.filters import UNREAD, Kind, kind_of
from musepi_tui.tui.tree.forest import NONE
from musepi_tui.tui.tree.search import fold
from musepi_tui.tui.tree.text import (
    READ_CHARS,
    is_calls_only,
    searched_text,
    text_of_answer,
    text_of_prompt,
    text_of_result,
    text_of_row,
    words_of_answer,
)

ReadEntry: TypeAlias = Callable[[str], Entry]
"""The entry with an id. Raises ``SessionError`` when it cannot be read."""

ReadStart: TypeAlias = Callable[[EntryHead, int], bytes | None]
"""The first bytes of an entry's line, as ``Bodies.line_start`` gives them."""

_KEPT_ANSWERS = 64
"""Answers whose calls stay at hand: results stand near the answer they belong to."""

_ANSWERS_ASKED = 4
_ENTRIES_PASSED = 1000
"""Results follow the answer they belong to. One whose call is in none of so many answers above has none: its
row names the tool. Without the limits each of them would go up the whole branch."""


class Facts:
    """Kinds and searched texts of the entries of one growing tree.

    Without ``read_start`` every body is decoded, which takes ten times as long.
    """

    def __init__(self, read: ReadEntry, read_start: ReadStart | None) -> None:
        self.kinds = bytearray()
        self._read = read
        self._read_start = read_start
        self._texts: list[str | None] = []
        self._calls: OrderedDict[int, Sequence[ToolCallBlock]] = OrderedDict()
        self._columns = SessionTree.empty().all_heads.columns
        self._parents: Sequence[int] = array("i")

    def grow(self, tree: SessionTree, parents: Sequence[int]) -> None:
        """Take in the entries that are new; ``parents`` are those of the tree."""
        self._columns, self._parents = tree.all_heads.columns, parents
        kinds = [kind_of(*pair) for pair in self._columns.kinds]
        new = self._columns.codes[len(self.kinds) : len(tree)]
        self.kinds.extend(map(kinds.__getitem__, new))
        self._texts.extend([None] * len(new))

    def settle(self, position: int) -> bool:
        """Read what the kind of an entry depends on; whether it is another one now."""
        before = self.kinds[position]
        if before not in UNREAD:
            return False
        if before == Kind.UNREAD_INSERT:
            entry = self._entry(position)
            is_typed = isinstance(entry, CustomMessageEntry) and entry.attribution == "user"
            self.kinds[position] = Kind.TYPED_INSERT if is_typed else Kind.PLACE
            return is_typed
        found = self._glimpse(position)
        if found is not None and found.text.strip():
            self.kinds[position] = Kind.ANSWER
            if found.is_enough:
                self._texts[position] = fold(self._glimpsed_text(position, found))
            return False
        message = self._answer(position)
        is_hidden = message is not None and is_calls_only(message)
        self.kinds[position] = Kind.CALLS_ONLY if is_hidden else Kind.ANSWER
        return is_hidden

    def settle_all(self, positions: Sequence[int]) -> bool:
        """Read what the kinds of these depend on; whether one of them is another one now."""
        kinds = self.kinds
        return any([self.settle(position) for position in positions if kinds[position] in UNREAD])

    def texts_of(self, positions: Sequence[int]) -> Sequence[str]:
        """What a search looks at, without labels; folded. Texts that are not at hand are read."""
        texts, found = self._texts, list[str]()
        for position in positions:
            text = texts[position]
            if text is None:
                self.settle(position)
                text = texts[position] or fold(self._searched_text(position))
                texts[position] = text
            found.append(text)
        return found

    def call_of(self, position: int, call_id: str) -> ToolCallBlock | None:
        """The call a tool result answers: that of the nearest answer above that has it."""
        asked = 0
        for _ in range(_ENTRIES_PASSED):
            position = self._parents[position]
            if position == NONE or self.kinds[position] == Kind.PROMPT or asked == _ANSWERS_ASKED:
                break
            if self.kinds[position] in (Kind.UNREAD_ANSWER, Kind.ANSWER, Kind.CALLS_ONLY):
                found = next((call for call in self._calls_at(position) if call.id == call_id), None)
                if found is not None:
                    return found
                asked += 1
        return None

    def _searched_text(self, position: int) -> str:
        kind = self.kinds[position]
        if kind in (Kind.PROMPT, Kind.RESULT, Kind.ANSWER):
            found = self._glimpse(position)
            if found is not None and found.is_enough and (kind != Kind.ANSWER or found.text.strip()):
                return self._glimpsed_text(position, found)
        if kind in (Kind.ANSWER, Kind.CALLS_ONLY):
            message = self._answer(position)
            if message is not None:
                return searched_text(text_of_answer(words_of_answer(message)))
        entry = self._entry(position)
        if entry is None:
            return self._columns.kinds[self._columns.codes[position]][0]
        return searched_text(text_of_row(entry, lambda call_id: self.call_of(position, call_id)))

    def _glimpsed_text(self, position: int, found: Glimpse) -> str:
        text = found.text.lstrip()[:READ_CHARS]
        match self.kinds[position]:
            case Kind.RESULT:
                call = self.call_of(position, found.call_id or "")
                return searched_text(text_of_result(call, found.tool_name or "", text))
            case Kind.PROMPT:
                return searched_text(text_of_prompt(text))
            case _:
                return searched_text(text_of_answer(text))

    def _calls_at(self, position: int) -> Sequence[ToolCallBlock]:
        calls = self._calls.get(position)
        if calls is None:
            self._answer(position)
            calls = self._calls.get(position, ())
        return calls

    def _glimpse(self, position: int) -> Glimpse | None:
        if self._read_start is None:
            return None
        head = self._columns.head_at(position)
        start = self._read_start(head, START_BYTES)
        return None if start is None else glimpse(start, head.id, READ_CHARS)

    def _answer(self, position: int) -> AssistantMessage | None:
        """The answer, whose calls stay at hand for a while; None when it cannot be read."""
        head = self._columns.head_at(position)
        line = None if self._read_start is None else self._read_start(head, head.length)
        message = None if line is None else glimpse_answer(line, head.id)
        if message is None:
            entry = self._entry(position)
            read = entry.message if isinstance(entry, MessageEntry) else None
            message = read if isinstance(read, AssistantMessage) else None
        self._calls[position] = () if message is None else tool_calls_of(message)
        while len(self._calls) > _KEPT_ANSWERS:
            self._calls.popitem(last=False)
        return message

    def _entry(self, position: int) -> Entry | None:
        """The entry, None when it cannot be read."""
        try:
            return self._read(self._columns.id_at(position))
        except SessionError:
            return None
