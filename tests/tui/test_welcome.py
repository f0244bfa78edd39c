from pathlib import Path

from musepi_tui import __version__
from musepi_tui.tui.footer import Place
from musepi_tui.tui.welcome import header_lines, missing_key_lines
from tests.support.fake_runtime import DEMO, SONNET

CONFIG = Path("/config/models.json")


def test_header_names_version_model_and_place():
    lines = header_lines(SONNET, Place("~/parser", "main"))
    assert lines[:2] == (f"musepi {__version__}", "claude-sonnet · ~/parser (main)")


def test_header_says_that_the_demo_is_a_script():
    assert "script" in header_lines(DEMO, Place("~"))[1]


def test_missing_key_names_variables_file_and_the_demo():
    text = " ".join(missing_key_lines([DEMO], DEMO, CONFIG))
    for word in ("ANTHROPIC_API_KEY", "/config/models.json", "/login", "demo"):
        assert word in text


def test_missing_key_without_a_demo_running_tells_how_to_start_it():
    assert "musepi --provider demo --model demo" in missing_key_lines([], None, CONFIG)[1]


def test_nothing_is_said_when_a_model_can_be_used():
    assert missing_key_lines([DEMO, SONNET], DEMO, CONFIG) == ()
    assert missing_key_lines([], SONNET, CONFIG) == ()
