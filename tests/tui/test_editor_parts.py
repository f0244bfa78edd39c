from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.tui.kill_ring import MAX_KILLS, KillRing
from musepi_tui.tui.pastes import Pastes, clean_paste
from musepi_tui.tui.recall import MAX_PROMPTS, Recall


def test_kills_in_a_row_grow_one_entry_at_the_right_end():
    ring = KillRing()
    ring.push("b", before=True)
    ring.push("a", before=True)
    ring.push("c", before=False)
    assert ring.newest() == "abc"


def test_kill_after_something_else_is_a_new_entry_and_yanking_goes_round():
    ring = KillRing()
    for text in ("one", "two", "three"):
        ring.push(text, before=False)
        ring.interrupt()
    assert [ring.newest(), ring.older(), ring.older(), ring.older()] == ["three", "two", "one", "three"]


def test_kill_ring_keeps_sixty():
    ring = KillRing()
    for number in range(MAX_KILLS + 5):
        ring.push(str(number), before=False)
        ring.interrupt()
    ring.newest()
    assert [ring.older() for _ in range(MAX_KILLS - 1)][-1] == "5"


def test_empty_kill_ring_gives_nothing():
    assert (KillRing().newest(), KillRing().older()) == ("", "")


def test_recall_goes_back_and_forth_and_returns_the_draft():
    recall = Recall(["one", "two"])
    assert recall.older("draft") == "two"
    assert recall.older("two") == "one"
    assert recall.older("one") is None
    assert recall.newer() == "two"
    assert recall.newer() == "draft"
    assert recall.newer() is None


def test_recall_drops_repetitions_and_blank_prompts():
    recall = Recall()
    assert recall.add("one")
    assert not recall.add("one")
    assert not recall.add("  ")
    assert recall.older("") == "one"
    assert recall.older("one") is None


def test_recall_keeps_prompts_of_earlier_runs_before_those_of_this_one():
    recall = Recall()
    recall.add("now")
    recall.extend_older(["before"])
    assert [recall.older(""), recall.older("")] == ["now", "before"]


def test_editing_a_recalled_prompt_changes_none():
    recall = Recall(["one", "two"])
    recall.older("")
    recall.leave()
    assert recall.older("two edited") == "two"
    assert recall.newer() == "two edited"


def test_recall_keeps_a_hundred():
    recall = Recall([str(number) for number in range(MAX_PROMPTS + 10)])
    texts = []
    while (text := recall.older("")) is not None:
        texts.append(text)
    assert texts[-1] == "10"


def test_paste_is_cleaned():
    dirty = "a\r\nb\rc\td\x1b]52;c;x\x07\x1b[31me\x07\x9b6nf\u202eg"
    assert clean_paste(dirty) == "a\nb\nc\tdef⟨U+202E⟩g"


@given(st.text())
def test_cleaned_paste_has_no_controls(text):
    cleaned = clean_paste(text)
    assert not [char for char in cleaned if (ord(char) < 32 and char not in "\n\t") or 127 <= ord(char) < 160]


def test_short_paste_stays_text():
    text = "\n".join("x" * 10)
    assert Pastes().shorten(text) == text


def test_long_paste_becomes_a_marker_and_back():
    pastes = Pastes()
    many, long = "\n".join("x" * 123), "y" * 1234
    assert pastes.shorten(many) == "[paste #1 +123 lines]"
    assert pastes.shorten(long) == "[paste #2 1234 chars]"
    line = "see [paste #1 +123 lines] and [paste #2 1234 chars] and [paste #9 +12 lines]"
    assert pastes.spans(line) == ((4, 25), (30, 51))
    assert pastes.expand(line) == f"see {many} and {long} and [paste #9 +12 lines]"
