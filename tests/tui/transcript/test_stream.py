import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.tui.transcript import stream
from musepi_tui.tui.transcript.blocks import AnswerBlock, Item, ItemKind
from musepi_tui.tui.transcript.brush import Brush
from musepi_tui.tui.transcript.render import answer_markdown
from musepi_tui.tui.transcript.stream import StreamedText
from tests.support.transcripts import drawn, palette, picture

BLOCKS = [
    "A paragraph of *some* words,\non two lines.",
    "# A heading",
    "```python\ndef f():\n    return {}\n\n# end\n```",
    "~~~\nplain\n```\n~~~",
    "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
    "> quoted\n> twice",
    "---",
    "<div>\nliteral\n</div>",
    "- one\n- two\n  - nested\n- three",
    "1. first\n2. second\n   ```\n   code\n   ```",
]
LISTS = {BLOCKS[8], BLOCKS[9]}


def stream_of(width: int = 40) -> StreamedText:
    brush = Brush(palette(), width)
    return StreamedText(answer_markdown(brush), brush)


def whole(text: str, width: int = 40) -> str:
    return picture(drawn(Item("x", ItemKind.ASSISTANT, AnswerBlock(text)), width))


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Blocks in any order; two lists in a row would be one, whose looseness is only known at its end."""
    blocks: list[str] = []
    for block in draw(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=8)):
        if not (blocks and block in LISTS and blocks[-1] in LISTS):
            blocks.append(block)
    return "\n\n".join(blocks)


@settings(deadline=None, max_examples=50)
@given(documents(), st.integers(0, 2**32), st.integers(12, 90))
def test_streamed_text_ends_as_it_is_drawn_whole(text, seed, width):
    chance = random.Random(seed)
    streamed = stream_of(width)
    taken = 0
    rows = []
    while taken < len(text):
        taken += chance.randint(1, 30)
        rows = streamed.update(text[:taken])
        assert all(row.strip.cell_length == width for row in rows)
    assert picture(rows) == whole(text, width)


def test_finished_blocks_are_not_drawn_again(monkeypatch):
    streamed = stream_of()
    parsed: list[int] = []

    def parse(text: str) -> object:
        parsed.append(len(text))
        return original(text)

    original = stream.parse_markdown
    monkeypatch.setattr(stream, "parse_markdown", parse)
    text = "A paragraph of about fifty characters, no more.\n\n" * 200
    for taken in range(0, len(text), 20):
        streamed.update(text[:taken])
    assert max(parsed) < 200


def test_open_code_is_taken_line_by_line(monkeypatch):
    streamed = stream_of()
    highlighted: list[int] = []
    original = stream.highlight

    def highlight(code: str, *args: object) -> object:
        highlighted.append(code.count("\n"))
        return original(code, *args)

    monkeypatch.setattr(stream, "highlight", highlight)
    text = "```python\n" + "x = 1\n" * 500
    for taken in range(0, len(text), 30):
        rows = streamed.update(text[:taken])
    assert max(highlighted) == 0
    assert len(rows) > 480


@pytest.mark.parametrize(
    "text",
    ["word " * 4000, "- item with some words\n" * 400, "a line of text\n" * 600, "x" * 20_000],
    ids=["one line", "list", "lines", "no blanks"],
)
def test_long_blocks_keep_every_word_and_no_gap(text):
    streamed = stream_of(80)
    rows = []
    for taken in range(0, len(text) + 500, 500):
        rows = streamed.update(text[:taken])
    shown = picture(rows)
    assert "\n\n" not in shown
    wanted = text.replace("- ", "• ").split()
    assert "".join(shown.split()) == "".join(wanted)


def test_sequences_cut_in_the_middle_never_reach_the_screen():
    text = "before \x1b]52;c;aGk=\x07after \x1b[2Jend"
    streamed = stream_of()
    for taken in range(len(text) + 1):
        rows = streamed.update(text[:taken])
        assert "\x1b" not in picture(rows)
        assert "\x07" not in picture(rows)
    assert picture(rows) == "  before after end"


def test_text_that_shrinks_is_started_anew():
    streamed = stream_of()
    streamed.update("one\n\ntwo\n\nthree")
    assert picture(streamed.update("other")) == "  other"
