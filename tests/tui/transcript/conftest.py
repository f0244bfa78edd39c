"""The parser and the highlighter are loaded once; what is drawn without them has its own test."""

import pytest

from musepi_tui.tui.transcript.engines import load_engines


@pytest.fixture(autouse=True, scope="session")
def engines() -> None:
    load_engines()
