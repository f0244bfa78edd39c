import pytest

from musepi_tui.context.threshold import parse_threshold, resolve_threshold
from musepi_tui.maintenance import notices


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
