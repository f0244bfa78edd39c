import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.tui.tree.search import Search, fold


def found(query: str, texts: list[str]) -> list[str]:
    search = Search(query, len(texts))
    search.look(range(len(texts)), [fold(text) for text in texts])
    hits = search.hits_among(bytes([1]) * len(texts))
    return [text for text, hit in zip(texts, hits, strict=True) if hit]


TEXTS = ["user fix the reader", "assistant Done: READER.py", "bash pytest -q", "user Größe der Straße"]


@pytest.mark.parametrize(
    ("query", "hits"),
    [
        ("reader", TEXTS[:2]),
        ("rear", TEXTS[:2]),
        ("user reader", TEXTS[:1]),
        ("reader user", TEXTS[:1]),
        ("  reader  ", TEXTS[:2]),
        ("GRÖSSE", TEXTS[3:]),
        ("gro\u0308ße strasse", TEXTS[3:]),
        ('"the reader"', TEXTS[:1]),
        ('"user reader"', []),
        ('"the rea', TEXTS[:1]),
        ('fix "reader"', TEXTS[:1]),
        ("py-q", TEXTS[2:3]),
        ("[^", []),
        (".*", []),
        ("zz", []),
    ],
)
def test_every_token_has_to_be_there_in_order(query, hits):
    assert found(query, TEXTS) == hits


@pytest.mark.parametrize("query", ["", "   ", '"', '""'])
def test_query_without_tokens_looks_for_nothing(query):
    assert Search(query, 3).matchers == ()


def test_entries_not_looked_at_are_no_hits():
    search = Search("a", 3)
    search.look([1], ["a"])
    assert search.hits_among(b"\1\1\1") == b"\0\1\0"
    assert search.unknown_among([0, 1, 2]) == [0, 2]


def test_hits_are_those_the_filter_shows():
    search = Search("a", 3)
    search.look([0, 1, 2], ["a", "a", "b"])
    assert search.hits_among(b"\1\0\1") == b"\1\0\0"


def looked(search: Search, texts: list[str]) -> Search:
    left = search.unknown_among(range(len(texts)))
    search.look(left, [fold(texts[at]) for at in left])
    return search


def hits(search: Search, size: int) -> bytes:
    return search.hits_among(bytes([1]) * size)


def test_erasing_goes_back_to_what_was_found_before():
    first = looked(Search("re", 4), TEXTS)
    second = looked(Search.after(first, "rea"), TEXTS)
    again = Search.after(Search.after(second, "read"), "re")
    assert again.is_complete
    assert hits(again, 4) == hits(first, 4)


@pytest.mark.parametrize("query", ["reader ", '"reader', '"reader"', "READER"])
def test_query_that_asks_for_no_more_is_known_at_once_where_it_asks_for_the_same(query):
    search = Search.after(looked(Search("reader", 4), TEXTS), query)
    assert search.is_complete == ('"' not in query)


def test_erasing_before_all_was_looked_at_keeps_the_hits():
    first = Search("r", 4)
    second = looked(Search.after(first, "reader"), TEXTS)
    again = Search.after(second, "r")
    assert hits(again, 4) == hits(second, 4)
    assert again.unknown_among(range(4)) == [2, 3]


def test_shorter_query_that_was_never_searched_takes_the_hits_of_the_longer_one():
    search = Search.after(looked(Search("reader", 4), TEXTS), "rea")
    assert search.unknown_among(range(4)) == [2, 3]


@pytest.mark.parametrize(
    ("before", "query"), [("o", "o\u0308"), ('"rea', '"rea"x'), ('"a b', "a b"), ("ab", '"b')]
)
def test_query_that_is_not_sure_to_be_narrower_is_looked_for_anew(before, query):
    texts = ["größe", "rxea", "rea x", "b a"]
    search = looked(Search.after(looked(Search(before, 4), texts), query), texts)
    assert hits(search, 4) == hits(looked(Search(query, 4), texts), 4)


def test_a_look_says_whether_something_matches():
    search = Search("a", 2)
    assert not search.look([0], ["b"])
    assert search.look([1], ["a"])


words = st.text(st.sampled_from('abAB "äÄß'), max_size=5)


@given(st.lists(words, max_size=8), st.lists(words, min_size=1, max_size=5))
def test_typing_on_finds_what_a_fresh_search_finds(texts, typed):
    folded = [fold(text) for text in texts]
    search = Search("", len(texts))
    query = ""
    for part in typed:
        query += part
        search = Search.after(search, query)
        search.look(
            search.unknown_among(range(len(texts))),
            [folded[at] for at in search.unknown_among(range(len(texts)))],
        )
        fresh = Search(query, len(texts))
        fresh.look(range(len(texts)), folded)
        everything = bytes([1]) * len(texts)
        assert search.hits_among(everything) == fresh.hits_among(everything)


typing = st.lists(st.one_of(st.sampled_from('abA "ä\u0308s'), st.just("<")), max_size=25)


@given(st.lists(words, max_size=8), typing, st.data())
def test_typing_and_erasing_finds_what_a_fresh_search_finds(texts, keys, data):
    texts = [fold(text) for text in texts]
    search, query = Search("", len(texts)), ""
    for key in keys:
        query = query[:-1] if key == "<" else query + key
        search = Search.after(search, query)
        # Some keys come before everything was looked at.
        left = search.unknown_among(range(len(texts)))
        seen = left if data.draw(st.booleans()) else left[::2]
        search.look(seen, [texts[at] for at in seen])
        fresh = looked(Search(query, len(texts)), texts)
        known = [at for at in range(len(texts)) if at not in search.unknown_among(range(len(texts)))]
        assert [hits(search, len(texts))[at] for at in known] == [hits(fresh, len(texts))[at] for at in known]
