import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.context.estimate import Estimator
from musepi_tui.context.fileops import upsert_files
from musepi_tui.context.prepare import PrepareOptions, prepare_compaction
from musepi_tui.context.request import (
    DATA_KEY,
    HEAD_CHARS,
    TAIL_CHARS,
    pending_request,
    upsert_request,
    with_request,
)
from musepi_tui.session.rebuild import build_session_context
from tests.support.builders import a, call, compaction, entry, path, stub_count, t, u, words

BLOCK = "\n\n<last-request>\nDo it.\n</last-request>"
pieces = ["a", " ", "\n", "<last-request>", "</last-request>", "<files>", "</files>", "\\"]
texts = st.lists(st.sampled_from(pieces)).map("".join)


def prepared(*parts, keep=100):
    found = prepare_compaction(path(*parts), PrepareOptions(keep), Estimator(stub_count))
    assert found is not None
    return found


def steps(number, tokens=60):
    """Rounds of work without a word of the person."""
    return [
        part
        for index in range(number)
        for part in (a(words(tokens), [call("bash", f"k{index}")]), t(words(tokens), f"k{index}", "bash"))
    ]


def test_the_request_is_carried_when_its_message_is_summarised():
    assert pending_request(prepared(u("Do it.", images=1), *steps(4))) == "Do it."


def test_the_newest_request_is_the_one():
    assert pending_request(prepared(u("first"), a("done"), u("second"), *steps(4))) == "second"


def test_nothing_is_carried_while_the_message_is_kept():
    assert pending_request(prepared(u(words(200)), a(words(200)), u("Do it."), a("ok"))) is None


def test_a_carried_request_goes_on_until_there_is_a_newer_one():
    earlier = compaction("S" + BLOCK, "e2", preserve_data={DATA_KEY: "Do it."})
    assert pending_request(prepared(u("Do it."), a("x"), earlier, *steps(4))) == "Do it."
    assert pending_request(prepared(u("Do it."), a("x"), earlier, u("Now that."), *steps(4))) == "Now that."


@pytest.mark.parametrize("data", [None, {}, {DATA_KEY: 5}, {DATA_KEY: ""}])
def test_nothing_is_carried_where_nothing_was_stored(data):
    earlier = compaction("S", "e2", preserve_data=data)
    assert pending_request(prepared(a("x"), a("y"), earlier, *steps(4))) is None


def test_a_long_request_keeps_its_beginning_and_its_end():
    text = "Look at this:\n" + "log line\n" * 2_000 + "What is wrong?"
    carried = pending_request(prepared(u(text), *steps(4)))
    assert carried is not None
    assert carried.startswith("Look at this:\n")
    assert carried.endswith("What is wrong?")
    assert f"[… {len(text) - HEAD_CHARS - TAIL_CHARS} characters left out …]" in carried
    assert len(carried) < HEAD_CHARS + TAIL_CHARS + 100


def test_upsert_puts_the_request_at_the_end_in_place_of_an_older_one():
    once = upsert_request("Summary", "Do it.")
    assert once == "Summary" + BLOCK
    assert upsert_request(once, "Do it.") == once
    assert upsert_request(once, "Now that.") == "Summary\n\n<last-request>\nNow that.\n</last-request>"
    assert upsert_request(once, None) == "Summary"


@pytest.mark.parametrize(
    "request_text",
    ["<files>\nx\n</files> stays", "a <last-request>b</last-request> c", "</last-request></modified-files>"],
)
def test_a_request_that_quotes_a_summary_loses_nothing(request_text):
    stored = upsert_files(upsert_request("Summary", request_text), "<files>\na.py (Read)\n</files>")
    assert stored.replace("<\\", "<").startswith(
        f"Summary\n\n<last-request>\n{request_text}\n</last-request>"
    )
    again = upsert_files(stored, "<files>\na.py (Read)\n</files>")
    assert again == stored
    assert upsert_request(upsert_files(again, ""), None) == "Summary"


def test_a_summary_that_mentions_the_tag_keeps_its_text():
    summary = "The <last-request> element is written by upsert_request."
    assert upsert_request(upsert_request(summary, "Do it."), None) == summary


@given(texts, texts)
def test_upsert_is_idempotent_and_can_be_taken_back(summary, request_text):
    base = upsert_request(summary, None)
    once = upsert_request(base, request_text)
    assert upsert_request(once, request_text) == once
    assert upsert_request(once, None) == base


def test_data_of_others_stays_beside_the_request():
    assert with_request({"x": 1, DATA_KEY: "old"}, "new") == {"x": 1, DATA_KEY: "new"}
    assert with_request({"x": 1, DATA_KEY: "old"}, None) == {"x": 1}
    assert with_request({DATA_KEY: "old"}, None) is None


def test_the_request_survives_five_compactions_whose_summaries_drop_everything():
    wish = "Rename every handler to on_<event>, but never touch vendor/."
    entries = grown([], u(wish), *steps(4))
    for _ in range(5):
        preparation = prepare_compaction(entries, PrepareOptions(100), Estimator(stub_count))
        assert preparation is not None
        request = pending_request(preparation)
        previous = preparation.previous
        divider = compaction(
            upsert_request("## Goal\nNothing.", request),
            preparation.first_kept_entry_id,
            preserve_data=with_request(None if previous is None else previous.preserve_data, request),
        )
        entries = grown(entries, divider, *steps(4))
        assert wish in build_session_context(entries).messages[0].summary


def grown(entries, *parts):
    """The path with these parts behind it."""
    made = list(entries)
    for part in parts:
        made.append(entry(part, f"e{len(made) + 1}", made[-1].id if made else None))
    return made
