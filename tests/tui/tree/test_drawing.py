import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.session.times import unix_ms
from musepi_tui.tui.themes import load_palette
from musepi_tui.tui.tree.drawing import Look, draw_row, find_pan, label_time, text_start
from musepi_tui.tui.tree.model import Label, TreeRow
from musepi_tui.tui.widgets.drawing import row_cells

DARK = load_palette("dark", {})
ASCII = load_palette("dark", {"MUSEPI_ASCII": "1"})
LABEL = Label("works", "2026-03-05T09:07:00.000Z")


def row(prefix="", *, on_path=False, is_leaf=False, label=None, is_folded=False):
    return TreeRow("e", prefix, on_path, is_leaf, label, is_folded)


def drawn(made, text="user: hello", width=40, *, palette=DARK, marked=False, **look):
    spans = draw_row(made, text, Look(palette, width, **look), marked=marked)
    return "".join(part for part, _ in spans)


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    os.environ.pop("TZ", None)
    time.tzset()


def test_row_has_cursor_tree_bullet_label_text_and_place():
    made = row("│  ├⊟ ", on_path=True, is_leaf=True, label=LABEL)
    assert drawn(made, width=60, marked=True).rstrip() == "› │  ├⊟ • [works] user: hello ← here"
    assert (
        drawn(made, width=60, palette=ASCII, marked=True).rstrip() == "> |  |- * [works] user: hello <- here"
    )
    assert drawn(row("└⊞ "), palette=ASCII).rstrip() == "  `+ user: hello"


def test_long_text_ends_in_an_ellipsis_before_the_place():
    text = drawn(row(is_leaf=True), "user: " + "long " * 20, 40)
    assert text.endswith("… ← here")
    assert len(text) == 40


def test_marked_row_is_filled_to_its_end():
    spans = draw_row(row(), "user: hi", Look(DARK, 30), marked=True)
    assert all(style.bold and style.bgcolor == DARK.style("selectedBg").bgcolor for _, style in spans)


@pytest.mark.parametrize(
    ("start", "width", "pan"),
    [(0, 78, 0), (58, 78, 0), (59, 78, 47), (300, 78, 288), (40, 38, 31), (5, 6, 3)],
)
def test_rows_move_to_the_left_when_the_text_would_not_be_seen(start, width, pan):
    assert find_pan(start, width) == pan


def test_moved_row_keeps_its_cursor_and_shows_tree_and_text():
    made = row("│  " * 30 + "├─ ")
    pan = find_pan(text_start(made, DARK), 38)
    assert drawn(made, pan_cells=pan, marked=True).startswith("› │  │  ├─ user: hello")


@pytest.mark.parametrize(
    ("now", "shown"),
    [
        ("2026-03-05T23:00:00Z", "09:07"),
        ("2026-11-01T00:00:00Z", "3/5 09:07"),
        ("2027-01-01T00:00:00Z", "26/3/5 09:07"),
    ],
)
def test_label_time_says_as_much_of_the_day_as_is_needed(now, shown):
    assert label_time(LABEL.timestamp, unix_ms(now)) == shown
    assert f"[works] {shown} user: hello" in drawn(row(label=LABEL), width=60, now_ms=unix_ms(now))


def test_label_without_a_readable_time_is_shown_alone():
    assert "[works] user: hello" in drawn(row(label=Label("works", "yesterday")), now_ms=0)


def test_hostile_label_cannot_steer_the_terminal():
    assert "[a b] " in drawn(row(label=Label("a\x1b[31m\nb", "")))


@given(
    prefix=st.text("│├└─⊞⊟ ", max_size=60),
    text=st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" "), max_size=60),
    width=st.integers(1, 90),
    pan=st.integers(0, 120),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_every_row_fills_its_width(prefix, text, width, pan, flags):
    on_path, is_leaf, marked = flags
    made = row(prefix, on_path=on_path, is_leaf=is_leaf, label=LABEL)
    spans = draw_row(made, text, Look(DARK, width, pan), marked=marked)
    assert row_cells(spans) >= width
    if width >= 2:
        assert row_cells(spans) == width
