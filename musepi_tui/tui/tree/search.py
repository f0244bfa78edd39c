"""Searching in the tree (tui 5.6): every token has to be there, its characters in order, gaps allowed."""

import re
from collections.abc import Callable, Sequence
from itertools import compress
from typing import NamedTuple, TypeAlias
from unicodedata import normalize

Matcher: TypeAlias = Callable[[str], object]
"""Something true where a folded text matches."""

_TOKEN = re.compile(r'"([^"]*)"?|([^\s"]+)')


def fold(text: str) -> str:
    """The text as it is compared: case and composition of characters make no difference."""
    if text.isascii():
        return text.lower()
    return normalize("NFC", normalize("NFC", text).casefold())


class Token(NamedTuple):
    """A folded part of a query. An exact one has to be there as it stands."""

    text: str
    is_exact: bool

    def asks_for(self, other: "Token") -> bool:
        """Whether a text with this token has the other one too. False where that is not sure."""
        if other.is_exact and not self.is_exact:
            return False
        return self.text.startswith(other.text)


def tokens_of(query: str) -> tuple[Token, ...]:
    """The tokens of a query; those in quotes are exact."""
    made: list[Token] = []
    for found in _TOKEN.finditer(query):
        exact, loose = found.groups()
        text = fold(loose or exact or "")
        if text:
            # One character alone is the same in quotes; "a becomes "abc as a becomes abc.
            made.append(Token(text, is_exact=loose is None and len(text) > 1))
    return tuple(made)


def matcher_of(token: Token) -> Matcher:
    """What tells texts with a token from those without."""
    return _contains(token.text) if token.is_exact or len(token.text) == 1 else _has_in_order(token.text)


class Search:
    """What is known of a query so far: which entries match, by position, and which were not looked at yet.

    Keeps the searches it was narrowed from, each less narrow than the one behind it: what is erased again
    was found before.
    """

    def __init__(self, query: str, size: int) -> None:
        self.query = query
        self.matchers = tuple(map(matcher_of, tokens_of(query)))
        self._tokens = tokens_of(query)
        self._states = bytearray(size)
        self._wider: Sequence[Search] = ()

    @classmethod
    def after(cls, before: "Search", query: str) -> "Search":
        """The search for another query, with all that is known from the one before it.

        Where more is asked for, what did not match still does not; where less is, what matched still does.
        """
        made = cls(query, len(before._states))
        wider, narrower = [*before._wider, before], None
        while wider and not made._asks_for_all_of(wider[-1]):
            narrower = wider.pop()
            if wider:
                wider[-1]._take_hits_of(narrower)
        if wider and wider[-1]._asks_for_all_of(made):
            made._states = wider.pop()._states
        else:
            if wider:
                made._states = wider[-1]._states.translate(_ONLY_MISSES)
            if narrower is not None and narrower._asks_for_all_of(made):
                made._take_hits_of(narrower)
        made._wider = wider[-_KEPT_SEARCHES:]
        return made

    @property
    def is_complete(self) -> bool:
        """Whether every entry was looked at."""
        return 0 not in self._states

    def unknown_among(self, positions: Sequence[int]) -> list[int]:
        """Those that were not looked at yet."""
        states = self._states
        return [position for position in positions if not states[position]]

    def look(self, positions: Sequence[int], texts: Sequence[str]) -> bool:
        """Look at entries; their texts are folded. Whether one of them matches."""
        states = self._states
        for position in positions:
            states[position] = _MISS
        # What was typed last first: the other tokens are often known to be there.
        for matches in reversed(self.matchers):
            flags = list(map(matches, texts))
            positions, texts = list(compress(positions, flags)), list(compress(texts, flags))
        for position in positions:
            states[position] = _HIT
        return len(positions) > 0

    def hits_among(self, shown: Sequence[int]) -> bytes:
        """``shown`` without the entries that do not match or were not looked at yet; a byte for each."""
        hits = self._states.translate(_ONLY_HITS)
        both = int.from_bytes(hits, "little") & int.from_bytes(bytes(shown), "little")
        return both.to_bytes(len(hits), "little")

    def _asks_for_all_of(self, other: "Search") -> bool:
        """Whether whatever matches this query is sure to match the other one too."""
        asked = other._tokens
        return len(self._tokens) >= len(asked) and all(map(Token.asks_for, self._tokens, asked))

    def _take_hits_of(self, narrower: "Search") -> None:
        hits = int.from_bytes(narrower._states.translate(_ONLY_HITS), "little")
        both = int.from_bytes(self._states, "little") | hits
        self._states[:] = both.to_bytes(len(self._states), "little")


_KEPT_SEARCHES = 16
"""So many wider searches stay at hand; each takes a byte for every entry."""

_HIT = 1
_MISS = 2
_ONLY_MISSES = bytes(state if state == _MISS else 0 for state in range(256))
_ONLY_HITS = bytes(state == _HIT for state in range(256))


def _contains(token: str) -> Matcher:
    return lambda text: token in text


def _has_in_order(token: str) -> Matcher:
    # Possessive: what was passed over never has to be given back, so a text is gone through once.
    parts = (f"[^{re.escape(char)}]*+{re.escape(char)}" for char in token)
    return re.compile("".join(parts)).match
