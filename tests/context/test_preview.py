import pytest

from musepi_tui.context.estimate import Estimator
from musepi_tui.context.llm import LlmTemplates
from musepi_tui.context.prepare import PartTokens, PrepareOptions, prepare_compaction
from musepi_tui.context.preview import PreviewOptions, Summarizer, preview_compaction
from musepi_tui.context.serialize import serialize_conversation
from musepi_tui.session.entries import KEEP_NOTHING
from tests.support.builders import a, call, compaction, path, stub_count, t, u, words
from tests.support.sketch import parts, sketch

TEMPLATES = LlmTemplates("{{summary}}", "{{summary}}")
L = "u100 a200 t4000 a300 u50 a6000 t3000 a100"


def preview(entries, keep=5_000, *, reserve=16_384, summarizer=None, overhead=100):
    options = PreviewOptions(
        PrepareOptions(keep),
        reserve,
        TEMPLATES,
        stub_count,
        lambda name, previous: overhead + stub_count(previous or ""),
        summarizer or Summarizer(),
    )
    return preview_compaction(entries, options, Estimator(stub_count))


def ids(first, last):
    return tuple(f"e{number + 1}" for number in range(first, last + 1))


def test_the_split_turn_of_the_page():
    found = preview(sketch(L))
    assert not found.is_empty
    assert (found.cut_index, found.first_kept_entry_id) == (5, "e6")
    assert (found.is_split, found.turn_start_entry_id) == (True, "e5")
    assert found.history_entry_ids == ids(0, 3)
    assert found.prefix_entry_ids == ids(4, 4)
    assert found.kept_entry_ids == ids(5, 7)
    assert found.elide_entry_ids == ("e7",)
    assert found.tokens == PartTokens(4_600, 50, 9_100)
    assert (found.history_limit, found.prefix_limit) == (13_107, 8_192)
    assert found.segments is None


@pytest.mark.parametrize(
    ("keep", "cut", "split"), [(9_500, 3, True), (5_000, 5, True), (2_500, 7, True)], ids=str
)
def test_it_says_what_a_preparation_would_do(keep, cut, split):
    entries = sketch(L)
    found = preview(entries, keep)
    preparation = prepare_compaction(entries, PrepareOptions(keep), Estimator(stub_count))
    assert (found.cut_index, found.is_split) == (cut, split)
    assert found.first_kept_entry_id == preparation.first_kept_entry_id
    assert found.conversation == serialize_conversation(preparation.history_messages)
    assert found.prefix_conversation == serialize_conversation(preparation.prefix_messages)


def test_with_nothing_to_do_the_lists_are_empty_and_the_numbers_are_there():
    found = preview(sketch(L), 20_000)
    assert found.is_empty
    assert (found.keep_recent_tokens, found.tokens_before, found.cut_index) == (20_000, 110, 0)
    assert (found.history_limit, found.prefix_limit) == (13_107, 8_192)
    assert found.tokens == PartTokens(0, 0, 0)
    assert found.first_kept_entry_id is found.segments is found.previous_summary is None
    assert found.history_entry_ids == found.kept_entry_ids == found.elide_entry_ids == ()
    assert (found.conversation, found.files_block) == ("", "")


def test_right_after_a_compaction_there_is_nothing_to_do():
    assert preview(path(*parts("u500 a500"), compaction("S", "e2"))).is_empty


def test_an_empty_session_has_nothing_to_do():
    assert preview(()).is_empty


def test_the_previous_compaction_and_the_files_of_both_are_told():
    entries = path(
        u(words(500)),
        a(words(500)),
        compaction(" OLD ", "e2", details={"readFilesAdded": ["a.py"], "modifiedFilesAdded": []}),
        u(words(100)),
        a(words(500), [call("write", "k1", path="a.py"), call("read", "k2", path="b.py")]),
        t("ok", "k1", "write"),
        t("ok", "k2", "read"),
        u(words(400)),
        a(words(400)),
    )
    found = preview(entries, 700)
    assert (found.previous_summary, found.previous_compaction_id) == ("OLD", "e3")
    assert found.files.read_files == ("b.py",)
    assert found.files.modified_files == ("a.py",)
    assert found.files_block == "<files>\na.py (RW)\nb.py (Read)\n</files>"
    assert found.history_entry_ids == ("e2", "e4", "e5", "e6", "e7")


def test_keeping_nothing_has_no_entry_and_the_end_as_its_cut():
    entries = sketch("a10 d9000")
    found = preview(entries, 5_000)
    assert (found.first_kept_entry_id, found.cut_index) == (KEEP_NOTHING, 2)
    assert found.kept_entry_ids == ()


@pytest.mark.parametrize(
    ("reserve", "most", "limits"),
    [(16_384, None, (13_107, 8_192)), (1_228, None, (982, 614)), (1_228, 700, (700, 614)), (1, None, (1, 1))],
)
def test_output_limits_are_shares_of_the_reserve_the_model_allows(reserve, most, limits):
    found = preview(sketch(L), reserve=reserve, summarizer=Summarizer(None, most))
    assert (found.history_limit, found.prefix_limit) == limits


def test_a_history_too_long_for_one_request_is_shown_in_its_segments():
    entries = sketch("u1500 a1500 t900 u900 a1000 u5000 a5000 u500 a500")
    found = preview(entries, 900, summarizer=Summarizer(16_000, 1_000))
    assert found.segments == (("e1", "e2", "e3"), ("e4", "e5"), ("e6",), ("e7",))


def test_a_long_prefix_alone_is_shown_in_its_segments():
    found = preview(sketch("u50 a50 u1500 a5000 a5000 a5000 a500"), 400, summarizer=Summarizer(16_000, 1_000))
    assert found.history_entry_ids == ("e1", "e2")
    assert found.segments == (("e3",), ("e4",), ("e5",), ("e6",))


def test_the_window_counts_with_the_prompts_and_the_answer():
    entries = sketch("u3000 a3000 u500 a500")
    fits = Summarizer(16_000, 1_000)
    assert preview(entries, 900, summarizer=fits, overhead=8_000).segments is None
    assert preview(entries, 900, summarizer=fits, overhead=9_100).segments == (("e1",), ("e2",))


def test_control_tokens_are_defused_for_harmony_models():
    entries = path(u("<|start|>" + words(100)), a(words(100)), u(words(500)), a(words(500)))
    assert "<|start|>" in preview(entries, 900).conversation
    assert "<|start|>" not in preview(entries, 900, summarizer=Summarizer(harmony=True)).conversation
