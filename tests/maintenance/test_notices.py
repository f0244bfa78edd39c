import pytest

from musepi_tui.context.threshold import parse_threshold, resolve_threshold
from musepi_tui.maintenance import notices
from musepi_tui.maintenance.triggers import Reason, Tier


@pytest.mark.parametrize(
    ("before", "after", "duration_ms", "cost", "text"),
    [
        (231_785, 24_100, 12_400, 0.08, "Compacted 231,785 → 24,100 tokens in 12s ($0.08)"),
        (231_785, None, 12_400, 0.08, "Compacted 231,785 tokens"),
        (900, 300, 400, None, "Compacted 900 → 300 tokens in 0s"),
        (900, 300, 125_000, 0.001, "Compacted 900 → 300 tokens in 2m 5s (<$0.01)"),
        (900, 300, 400, 0.0, "Compacted 900 → 300 tokens in 0s"),
    ],
)
def test_success_text(before, after, duration_ms, cost, text):
    assert notices.success_text(before, after, duration_ms, cost) == text


@pytest.mark.parametrize(
    ("raw", "window", "figures"),
    [
        ("300000", 128_000, ("300,000 tokens", "128,000", "127,999")),
        ("120%", 50_000, ("120%", "50,000", "49,500")),
    ],
)
def test_clamp_warning_names_what_was_asked_the_window_and_what_is_used(raw, window, figures):
    setting = parse_threshold(raw)
    notice = notices.clamped_threshold(setting, resolve_threshold(setting, window, None), window)
    assert all(figure in notice.text for figure in figures)
    assert notice.once == f"clamped-threshold:{window}"


def test_invalid_threshold_warning_names_the_text_and_the_value_used():
    setting = parse_threshold("lots")
    text = notices.invalid_threshold(setting, resolve_threshold(setting, 200_000, None)).text
    assert '"lots"' in text
    assert "170,000" in text


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (Reason.OVERFLOW, "Context overflow recovery failed: boom"),
        (Reason.INCOMPLETE, "Incomplete response recovery failed: boom"),
        (Reason.THRESHOLD, "Auto-compaction failed: boom"),
        (Reason.IDLE, "Auto-compaction failed: boom"),
        (Reason.MANUAL, "boom"),
    ],
)
def test_failure_texts(reason, text):
    assert notices.failure_text(reason, "boom") == text


def test_texts_other_programs_and_scripts_know():
    assert notices.ALREADY_RUNNING == "Compaction already in progress"
    assert notices.ALREADY_COMPACTED == "Already compacted"
    assert notices.TOO_SMALL == "Nothing to compact (session too small)"
    assert notices.NO_MODEL == "Compaction needs a model with credentials (/login, /model)"
    assert notices.save_failure("disk full") == "Could not save the compaction: disk full"
    assert notices.cancelled_text(Reason.MANUAL) == "Compaction cancelled"
    assert notices.cancelled_text(Reason.IDLE) == "Auto-compaction cancelled"


@pytest.mark.parametrize(
    ("tier", "words"),
    [(Tier.SHAKE, "artifact"), (Tier.DROP_IMAGES, "picture"), (Tier.TRUNCATE_TEXTS, "longest texts")],
)
def test_rescue_notice_tells_what_was_taken_and_what_is_left(tier, words):
    notice = notices.rescued(tier, 24_100)
    assert notice.level == "info"
    assert words in notice.text
    assert "24,100" in notice.text


def test_dead_end_names_the_three_figures_and_the_three_remedies():
    text = notices.dead_end(150_000, 136_000, 200_000).text
    assert all(figure in text for figure in ("150,000", "136,000", "200,000", "/shake", "/model", "/new"))


@pytest.mark.parametrize(("window", "words"), [(200_000, " of a 200,000-token window"), (None, " tokens, ")])
def test_bill_that_stays_names_what_is_billed_what_is_counted_and_what_helps(window, words):
    text = notices.bill_stays(notices.BilledFigures(180_000, 25_000, 170_000, window)).text
    parts = ("180,000", "155,000 more", "170,000", words, "compaction.threshold", "/model")
    assert all(part in text for part in parts)


@pytest.mark.parametrize(
    ("start", "window", "present", "absent"),
    [(170_000, 200_000, ("170,000", "200,000"), ()), (None, None, ("180,000",), ("starts at", "window;"))],
)
def test_nothing_left_to_summarise(start, window, present, absent):
    text = notices.nothing_left(180_000, start, window).text
    assert all(part in text for part in present)
    assert not any(part in text for part in absent)


@pytest.mark.parametrize(
    "notice",
    [
        notices.answer_cut_off(""),
        notices.cut_off_while_off(""),
        notices.incomplete_given_up("", 3),
        notices.overflow_while_off(""),
    ],
)
def test_a_model_without_a_name_is_called_the_model(notice):
    assert "the model" in notice.text.lower()
