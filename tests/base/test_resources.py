import pytest

from musepi_tui.base.errors import ResourceMissingError
from musepi_tui.base.resources import read_prompt, render_prompt, theme_paths


def test_built_in_themes_are_found():
    assert {"ansi", "dark", "light"} <= theme_paths().keys()
    assert all(path.is_file() for path in theme_paths().values())


def test_a_prompt_has_no_line_break_at_its_end():
    assert read_prompt("system") == read_prompt("system").rstrip("\n") != ""


@pytest.mark.parametrize("name", ["absent", "../README", "SYSTEM", ""])
def test_a_missing_prompt_is_named(name):
    with pytest.raises(ResourceMissingError, match=f'"{name}"'):
        read_prompt(name)


def test_values_are_not_scanned_again():
    rendered = render_prompt("compaction-summary-context", summary="{{summary}} {{other}}")
    assert "{{summary}} {{other}}" in rendered


@pytest.mark.parametrize("values", [{}, {"summary": "x", "extra": "y"}])
def test_missing_and_unused_values_are_errors(values):
    with pytest.raises(ResourceMissingError, match="summary|extra"):
        render_prompt("compaction-summary-context", **values)
