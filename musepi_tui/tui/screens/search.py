"""What a search in the list of sessions finds, the best first (TUI-4.82). Pure."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TypeVar

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
        # Most sessions end here: thousands are looked at for every key that is typed.
        for word in self._words:
            if word not in texts.whole and f"\n{word}" not in texts.ids:
                return None
        if all(word in texts.title for word in self._words):
            return self._title_hit(texts.title)
        if all(word in texts.title or word in texts.first_message for word in self._words):
            return Hit.IN_FIRST_MESSAGE
        return Hit.ID if all(f"\n{word}" in texts.ids for word in self._words) else Hit.ELSEWHERE

    def _title_hit(self, title: str) -> Hit:
        if self._wanted not in title:
            return Hit.WORDS_IN_TITLE
        if title == self._wanted:
            return Hit.TITLE
        return Hit.TITLE_START if title.startswith(self._wanted) else Hit.IN_TITLE


def best_first(query: str, rows: Sequence[T], texts: Callable[[T], Texts]) -> list[T]:
    """The rows that fit, the best first; equally good ones keep their order."""
    search = Search(query)
    found = [(hit, row) for row in rows if (hit := search.hit(texts(row))) is not None]
    return [row for _, row in sorted(found, key=lambda each: each[0])]


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
