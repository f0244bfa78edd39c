import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.tui.screens.search import Hit, Narrowing, Search, texts_of

ID = "0198c0de-0000-7000-8000-00000000beef"
PROMPT = "Please make the parser accept every date of the old files, modestly and quickly"


@pytest.mark.parametrize(
    ("query", "hit"),
    [
        ("fix the dates", Hit.TITLE),
        ("Fix  The DATES", Hit.TITLE),
        ("fix", Hit.TITLE_START),
        ("dates", Hit.IN_TITLE),
        ("dates fix", Hit.WORDS_IN_TITLE),
        ("dates parser", Hit.IN_FIRST_MESSAGE),
        ("modestly", Hit.IN_FIRST_MESSAGE),
        ("0198c0", Hit.ID),
        ("00000000be", Hit.ID),
        ("website", Hit.ELSEWHERE),
        ("fix codex", Hit.ELSEWHERE),
        ("/mode", None),
        ("ftd", None),
        ("c0de", None),
        ("fix nothing", None),
    ],
)
def test_how_well_a_session_fits(query, hit):
    assert Search(query).hit(texts_of("Fix the dates", PROMPT, ID, "~/website Codex")) is hit


def test_the_best_hit_comes_first_and_equal_ones_keep_their_order():
    rows = [
        texts_of("A long talk", "about dates", "", ""),
        texts_of("All dates", "", "", ""),
        texts_of("dates of birth", "", "", ""),
        texts_of("Some dates", "", "", ""),
        texts_of("Dates", "", "", ""),
        texts_of("d-a-t-e-s", "d a t e s", "", ""),
    ]
    found = Narrowing(rows, lambda texts: texts).find_best("dates")
    assert [texts.title for texts in found] == [
        "dates",
        "dates of birth",
        "all dates",
        "some dates",
        "a long talk",
    ]


@given(st.lists(st.text("abc -", max_size=8), max_size=8), st.text("abc ", max_size=4))
def test_a_search_finds_exactly_what_holds_every_word(titles, query):
    rows = [texts_of(title, "", "", "") for title in titles]
    expected = [row for row in rows if all(word in row.title for word in query.split())]
    assert sorted(Narrowing(rows, lambda row: row).find_best(query), key=id) == sorted(expected, key=id)


@given(
    st.lists(st.text("abΣ -", max_size=8), max_size=8),
    st.lists(st.text("abΣ ", max_size=4), min_size=1, max_size=6),
)
def test_searches_one_after_the_other_find_what_each_finds_alone(titles, queries):
    rows = [texts_of(title, "", title, "") for title in titles]
    searched = Narrowing(rows, lambda row: row)
    for query in [*queries, *(queries[0][:end] for end in range(len(queries[0])))]:
        alone = Narrowing(rows, lambda row: row)
        assert searched.find(query) == alone.find(query)
        assert searched.find_best(query) == alone.find_best(query)


def test_a_search_that_goes_on_looks_at_what_was_found_before():
    looked: list[str] = []
    rows = [texts_of(f"Session {number}", "", "", "") for number in range(100)]
    searched = Narrowing(rows, lambda row: looked.append(row.title) or row)
    searched.find("99")
    looked.clear()
    assert [row.title for row in searched.find("99 s")] == ["session 99"]
    assert looked == ["session 99"]
    assert len(searched.find("9")) == 19
