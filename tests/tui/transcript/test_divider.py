import pytest
from rich.cells import cell_len

from musepi_tui.session.entries import CompactionEntry
from musepi_tui.tui.transcript.divider import Divider
from tests.support.builders import branch_summary, compaction, custom, path
from tests.support.transcripts import drawn, model_of, palette, picture

CANONICAL = "── 📷 compacted · ctrl+o ──"
DIVIDER = Divider("camera", "compacted")


def text_at(width: int, divider: Divider = DIVIDER, symbols: str | None = None) -> str:
    line = divider.line(palette(symbols=symbols), width)
    return "".join(text for text, _ in line.spans)


@pytest.mark.parametrize("width", [27, 31, 40, 80, 200])
def test_divider_holds_the_canonical_text_and_fills_the_row(width):
    text = text_at(width)
    assert CANONICAL in text
    assert cell_len(text) == width
    left, _, right = text.partition(" 📷 compacted · ctrl+o ")
    assert len(left) == (width - 23) // 2
    assert len(left) + len(right) == width - 23


@pytest.mark.parametrize("width", [10, 12, 26])
def test_divider_is_the_bare_label_where_the_rules_do_not_fit(width):
    assert text_at(width) == ("📷 compac…" if width == 10 else "📷 compacted")


@pytest.mark.parametrize("symbols", ["unicode", "ascii", "nerd"])
def test_divider_never_leaves_its_width(symbols):
    for width in range(1, 301):
        for divider in (
            DIVIDER,
            Divider("branch", "branch", warned=True),
            Divider("handoff", "handed off", "f12"),
        ):
            assert cell_len(text_at(width, divider, symbols)) <= width


def test_divider_shows_the_real_key_and_a_warning():
    assert (
        text_at(40, Divider("camera", "compacted", "ctrl+e", warned=True)).count("compacted ! · ctrl+e") == 1
    )


def test_divider_row_spans_the_screen_with_a_blank_row_below():
    (item,) = model_of(path(compaction("sum"))).items
    rows = drawn(item, 60)
    assert [cell_len(row.strip.text) for row in rows] == [60, 60]
    assert CANONICAL in rows[0].strip.text
    assert not rows[1].strip.text.strip()


def test_open_divider_tells_tokens_reason_model_duration_warning_summary_and_files():
    entry = compaction(
        "## Goal\n\nShip it.\n\n<files>\n# src/\na.py (RW)\nb.py (Read)\n</files>",
        tokens_before=231_785,
        tokens_after=24_100,
        reason="threshold",
        method="summary",
        model="acme/big",
        duration_ms=12_400,
        warning="still over the limit",
    )
    (item,) = model_of(path(entry)).items
    assert (
        picture(drawn(item, 60, expanded=True))
        == """\
───────────────── 📷 compacted ! · ctrl+o ──────────────────

  231,785 → 24,100 tokens
  threshold · summary · acme/big · 12s
  ! still over the limit

  Goal

  Ship it.

  Files
  src/
    a.py (RW)
    b.py (Read)"""
    )


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"tokens_before": 999}, "999 tokens before"),
        ({"tokens_before": 1000, "tokens_after": 10}, "1,000 → 10 tokens"),
        ({"tokens_before": 10, "mid_turn": True, "reason": "threshold"}, "mid-turn"),
    ],
)
def test_open_divider_says_what_is_known(fields, line):
    (item,) = model_of(path(compaction("sum", **fields))).items
    assert line in picture(drawn(item, expanded=True))


def test_open_divider_does_not_show_an_unknown_token_count():
    (item,) = model_of(path(compaction("sum", tokens_before=0))).items
    assert "token" not in picture(drawn(item, expanded=True))


def test_open_divider_without_summary_says_who_keeps_it():
    (item,) = model_of(path(compaction(""))).items
    assert "No summary text: the provider keeps this window" in picture(drawn(item, expanded=True))


def test_branch_and_handoff_have_their_own_labels():
    entries = path(
        branch_summary("left behind"),
        custom("<handoff-context>\nGo on with b.\n</handoff-context>", "handoff"),
        custom("<handoff-context></handoff-context>", "handoff"),
    )
    branch, handoff, empty = model_of(entries).items
    assert "── ⎇ branch · ctrl+o ──" in picture(drawn(branch))
    assert "── ⇥ handed off · ctrl+o ──" in picture(drawn(handoff))
    assert "Branch summary" in picture(drawn(branch, expanded=True))
    assert "left behind" in picture(drawn(branch, expanded=True))
    assert "Go on with b." in picture(drawn(handoff, expanded=True))
    assert "handoff-context" not in picture(drawn(handoff, expanded=True))
    assert "(empty handoff)" in picture(drawn(empty, expanded=True))


def test_warning_found_later_joins_its_divider():
    from tests.support.builders import state, u

    entries = path(
        u("hi"),
        compaction("sum"),
        u("more"),
        state("custom", customType="compaction.warning", data={"targetId": "e2", "warning": "no room"}),
    )
    divider = next(item for item in model_of(entries).items if item.kind == "compaction")
    assert "compacted ! ·" in picture(drawn(divider))
    assert isinstance(entries[1], CompactionEntry)
