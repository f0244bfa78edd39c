import subprocess
import sys

from musepi_tui.tui.transcript import engines
from musepi_tui.tui.transcript.blocks import AnswerBlock, Item, ItemKind
from musepi_tui.tui.transcript.drawings import Drawings
from musepi_tui.tui.transcript.engines import lexer_for, load_engines
from tests.support.builders import a, path
from tests.support.transcripts import model_of, palette, picture

FIRST_FRAME = """
import sys
from musepi_tui.tui.transcript import drawings, view
print([name for name in ("markdown_it", "pygments") if name in sys.modules])
"""


def test_parser_and_highlighter_are_not_imported_with_the_view():
    done = subprocess.run([sys.executable, "-c", FIRST_FRAME], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_text_is_plain_until_the_parser_is_there(monkeypatch):
    model = model_of(path(a("# Title\n\nsome **bold**")))
    drawings = Drawings(model, palette(), lambda: 0.0)
    (item,) = model.items
    live = Item("live/0", ItemKind.ASSISTANT, AnswerBlock("# Title\n\nsome **bold**", live=True))
    monkeypatch.setattr(engines, "_loaded", False)
    assert picture(drawings.rows_of(item)) == "  # Title\n\n  some **bold**"
    assert picture(drawings.rows_of(live)) == "  # Title\n\n  some **bold**"
    load_engines()
    assert picture(drawings.rows_of(item)) == "  Title\n\n  some bold"
    assert picture(drawings.rows_of(live)) == "  Title\n\n  some bold"


def test_languages_are_found_by_name_and_by_suffix():
    assert lexer_for("Python") is not None
    assert lexer_for("tsx") is not None
    assert lexer_for("text") is None
    assert lexer_for("no such language") is None
