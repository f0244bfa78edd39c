from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.cells import cell_width
from musepi_tui.runtime.events import MaintenanceProgress, MaintenanceStarted, Meter
from musepi_tui.session.messages import Usage
from musepi_tui.tui.footer import Place, Signs, countdown, footer_pieces, shorten_path
from musepi_tui.tui.status import Status
from tests.support.fake_runtime import DEMO, GPT, SONNET

PLACE = Place("~/code/parser", "main")
FULL = Meter(
    context_tokens=62_400,
    window=200_000,
    threshold=160_000,
    totals=Usage(input=12_000, output=3_400, cache_read=180_000, cache_write=12_000),
    cost=0.1234,
)


def status(**fields: object) -> Status:
    made = Status(meter=FULL, model=SONNET, thinking_level="high", mode="ask", name="quotes")
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def footer(width: int, made: Status | None = None, place: Place = PLACE) -> str:
    return "".join(piece.text for piece in footer_pieces(made or status(), place, width, Signs()))


def test_wide_footer_says_everything():
    assert " ".join(footer(160).split()) == (
        "~/code/parser (main) • quotes ↑12k ↓3.4k R180k W12k · $0.123 · ▰▰▰▱▱▱▱▱┃▱ 31% 62k/200k (auto) "
        "· claude-sonnet (high) · ask"
    )


@pytest.mark.parametrize("width", range(20, 201))
def test_narrow_footer_drops_segments_in_order(width):
    order = ["↑12k", "quotes", "$0.123", "~/code", "(main)", "(high)", "▰", "62k/200k", "ask", "claude"]
    text = footer(width)
    dropped = [word for word in order if word not in text]
    assert dropped == order[: len(dropped)]
    assert "31%" in text


@pytest.mark.parametrize(("width", "dropped"), [(123, 0), (122, 1), (80, 4), (70, 5), (40, 7)])
def test_footer_drops_no_more_than_it_must(width, dropped):
    order = ["↑12k", "quotes", "$0.123", "~/code", "(main)", "(high)", "▰", "62k/200k", "ask", "claude"]
    assert [word for word in order if word not in footer(width)] == order[:dropped]


@given(st.integers(0, 300), st.sampled_from(["ask", "yolo"]), st.booleans())
def test_footer_is_exactly_as_wide_as_asked(width, mode, demo):
    made = status(mode=mode, model=DEMO if demo else SONNET)
    assert cell_width(footer(width, made, Place("~/日本語/プロジェクト", "main"))) == width


def test_percent_yolo_and_maintenance_stay_on_the_narrowest_screen():
    made = status(mode="yolo")
    made.apply(MaintenanceStarted("manual", "summary"), 0.0)
    assert footer(28, made).strip() == "compacting… · 31% · YOLO"


def test_handoff_is_named_until_it_goes_on_as_a_summary():
    made = status()
    made.apply(MaintenanceStarted("threshold", "handoff"), 0.0)
    assert "handing off… ·" in footer(160, made)
    made.apply(MaintenanceProgress("handoff", input_tokens=10), 1.0)
    assert "handing off… ·" in footer(160, made)
    made.apply(MaintenanceProgress("history"), 2.0)
    assert "compacting… ·" in footer(160, made)


@pytest.mark.parametrize(
    ("left_s", "text"),
    [(300, "idle 5:00"), (298.2, "idle 4:59"), (60, "idle 1:00"), (0.4, "idle 0:01"), (-1, "idle 0:00")],
)
def test_countdown_says_minutes_and_seconds(left_s, text):
    assert countdown(left_s) == text


def test_countdown_stays_on_the_narrowest_screen_and_yields_to_a_pass():
    made = status(mode="yolo")

    def narrow() -> str:
        return "".join(piece.text for piece in footer_pieces(made, PLACE, 28, Signs(), "idle 0:42")).strip()

    assert narrow() == "idle 0:42 · 31% · YOLO"
    made.apply(MaintenanceStarted("idle", "summary"), 0.0)
    assert narrow() == "compacting… · 31% · YOLO"


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (120, "auto-compact off · idle 0:42 · "),
        (45, "auto-compact off · idle 0:42 · 31% · YOLO"),
        (40, "auto-compact off · 31% · YOLO"),
    ],
)
def test_countdown_goes_before_the_word_that_automatic_passes_are_off(width, text):
    made = status(mode="yolo", meter=replace(FULL, auto_compaction=False))
    assert text in "".join(piece.text for piece in footer_pieces(made, PLACE, width, Signs(), "idle 0:42"))


def test_demo_model_is_labelled_as_a_script_at_any_width():
    for width in (24, 40, 80):
        assert "demo (script)" in footer(width, status(model=DEMO, meter=Meter()))


def test_model_without_reasoning_shows_no_level():
    assert "gpt-large · ask" in footer(160, status(model=GPT))


def test_missing_model_is_said():
    assert "no model" in footer(80, status(model=None))


@pytest.mark.parametrize(
    ("meter", "text"),
    [
        (Meter(context_tokens=None, window=200_000), "?/200k (auto)"),
        (Meter(context_tokens=24_100, estimated=True, window=200_000), "12% ~24k/200k (auto)"),
        (Meter(context_tokens=24_100, window=None), "24k"),
        (Meter(context_tokens=24_100, window=200_000, auto_compaction=False), "auto-compact off"),
    ],
)
def test_gauge_says_what_is_known(meter, text):
    assert text in footer(160, status(meter=meter))


@pytest.mark.parametrize(
    ("used", "token"), [(140_000, "gaugeFill"), (141_000, "gaugeWarn"), (181_000, "gaugeError")]
)
def test_gauge_warns_above_70_and_90_percent(used, token):
    meter = Meter(context_tokens=used, window=200_000)
    pieces = footer_pieces(status(meter=meter), PLACE, 160, Signs())
    assert next(piece.token for piece in pieces if "▰" in piece.text) == token


def test_gauge_marks_the_threshold():
    assert "▰▰▰▱▱▱▱▱┃▱" in footer(160)


def test_unknown_price_is_not_shown_as_nothing():
    assert "$" not in footer(160, status(meter=Meter(context_tokens=1, window=10, cost=None)))


def test_cost_is_absent_while_it_is_zero():
    assert "$" not in footer(160, status(meter=Meter(context_tokens=1, window=10, cost=0.0)))
    assert "$0.001" in footer(160, status(meter=Meter(context_tokens=1, window=10, cost=0.001)))


def test_unsaved_entries_are_shown():
    assert "unsaved(3)" in footer(100, status(unsaved=3))


@pytest.mark.parametrize(
    ("path", "width", "shown"),
    [
        ("~/a/b", 40, "~/a/b"),
        ("~/one/two/three/four", 15, "~/…/three/four"),
        ("~/one/two/three/four", 9, "~/…/four"),
        ("/averyveryverylongname", 8, "averyve…"),
        ("x" * 50, 8, "xxxxxxx…"),
    ],
)
def test_shorten_path_leaves_the_middle_out(path, width, shown):
    assert shorten_path(path, width) == shown
