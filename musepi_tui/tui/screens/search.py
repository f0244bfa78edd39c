"""What a search in the list of sessions finds, the best first (TUI-4.82). Pure."""

import re
from collections.abc import Callable, Sequence
from enum import IntEnum
from itertools import chain
from typing import Generic, TypeVar

from musepi_tui.base.dataclass import dataclass

T = TypeVar("T")


class Hit(IntEnum):
    """How well a session fits, the best first."""

    TITLE = 0
    TITLE_START = 1
    IN_TITLE = 2
    WORDS_IN_TITLE = 3
    IN_FIRST_MESSAGE = 4
    ID = 5
    ELSEWHERE = 6


@dataclass(frozen=True, slots=True)
class Texts:
    """What a search looks at, in lower case, blanks joined.

    ``whole`` is title, first message and what the row says besides (folder and tool), ``ids`` the id and its
    parts, each behind a line break.
    """

    title: str
    first_message: str
    whole: str
    ids: str


def texts_of(title: str, first_message: str, session_id: str, other: str) -> Texts:
    """The texts of one session as a search compares them."""
    plain_title, plain_message, known = _plain(title), _plain(first_message), session_id.lower()
    whole = f"{plain_title}\n{plain_message}\n{_plain(other)}"
    parts = known.replace("-", "\n")
    return Texts(plain_title, plain_message, whole, f"\n{known}\n{parts}")


class Search:
    """One search. A word has to stand in a session as it was typed, in any case: letters in order would be
    found in nearly every long prompt. In an id it has to be the beginning, of the whole or of a part, because
    short words of the letters a to f stand inside many."""

    def __init__(self, query: str) -> None:
        self._wanted = _plain(query)
        self._words = self._wanted.split()

    def hit(self, texts: Texts) -> Hit | None:
        """How well a session fits; None when one of the words stands nowhere."""
        return self.rank(texts) if self.fits(texts) else None

    def goes_on(self, other: "Search") -> bool:
        """Whether nothing can fit that does not fit the other one: its text stands at the beginning."""
        return self._wanted.startswith(other._wanted)

    def fits(self, texts: Texts) -> bool:
        """Whether every word stands somewhere."""
        # One look at the words as they were typed answers for most of the thousands of sessions.
        return self._wanted in texts.whole or all(
            word in texts.whole or f"\n{word}" in texts.ids for word in self._words
        )

    def rank(self, texts: Texts) -> Hit:
        """How well a session fits that does."""
        if self._wanted in texts.title:
            return self._title_hit(texts.title)
        if all(word in texts.title for word in self._words):
            return Hit.WORDS_IN_TITLE
        if all(word in texts.title or word in texts.first_message for word in self._words):
            return Hit.IN_FIRST_MESSAGE
        return Hit.ID if all(f"\n{word}" in texts.ids for word in self._words) else Hit.ELSEWHERE

    def _title_hit(self, title: str) -> Hit:
        if title == self._wanted:
            return Hit.TITLE
        return Hit.TITLE_START if title.startswith(self._wanted) else Hit.IN_TITLE


class Narrowing(Generic[T]):
    """Searches through the same rows. One that goes on from the search before looks at what that one found:
    every key that is typed would otherwise look through thousands again."""

    def __init__(self, rows: Sequence[T], texts: Callable[[T], Texts]) -> None:
        self.rows = rows
        self._texts = texts
        self._before = Search("")
        self._found = rows

    def find(self, query: str) -> Sequence[T]:
        """The rows that fit, in their order."""
        search, texts = Search(query), self._texts
        within = self._found if search.goes_on(self._before) else self.rows
        self._before, self._found = search, [row for row in within if search.fits(texts(row))]
        return self._found

    def find_best(self, query: str) -> list[T]:
        """The rows that fit, the best first; equally good ones keep their order."""
        # Not sorted by pairs: so many new objects at once would set off a collection of garbage.
        ranked: list[list[T]] = [[] for _ in Hit]
        for row in self.find(query):
            ranked[self._before.rank(self._texts(row))].append(row)
        return list(chain.from_iterable(ranked))


EXPRESSION = "re:"
"""What a search by a regular expression begins with."""

INSIDE = "/"
"""What a search through everything that was said begins with."""


def fitting(expression: str, rows: Sequence[T], texts: Callable[[T], Texts]) -> list[T]:
    """The rows of which a line fits a regular expression, in any case, in their order.

    Raises ``ValueError`` with a sentence for one that cannot be used.
    """
    try:
        pattern = re.compile(expression.strip(), re.IGNORECASE | re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"no regular expression: {error}") from error
    found = [(row, texts(row)) for row in rows]
    return [row for row, known in found if pattern.search(known.whole) or pattern.search(known.ids)]


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
