import json
from pathlib import Path

import pytest
from rich.color import ColorType

from musepi_tui.base.errors import SettingsError
from musepi_tui.base.resources import theme_paths
from musepi_tui.tui.themes import (
    FALLBACKS,
    REQUIRED,
    choose_theme,
    load_palette,
    read_palette,
    theme_files,
)

PLAIN = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
GROUNDS = {"dark": ((0x1E, 0x1E, 0x1E), (0, 0, 0)), "light": ((255, 255, 255), (245, 245, 245))}
NO_TEXT = {
    "border",
    "borderMuted",
    "borderAccent",
    "divider",
    "gaugeRest",
    "gaugeFill",
    "mdCodeBlockBorder",
    "mdHr",
    "mdQuoteBorder",
}
ON_BACKGROUND = [
    ("userMessageText", "userMessageBg"),
    ("customMessageText", "customMessageBg"),
    ("customMessageLabel", "customMessageBg"),
    ("muted", "selectedBg"),
]


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    def luminance(color: tuple[int, ...]) -> float:
        parts = [part / 255 for part in color]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_required_tokens_are_the_51_of_the_family():
    assert len(REQUIRED) == 51


@pytest.mark.parametrize("name", sorted(theme_paths()))
def test_built_in_theme_has_every_token(name):
    palette = load_palette(name, PLAIN)
    assert palette.name == name
    assert set(palette.styles) == {*REQUIRED, *FALLBACKS}


@pytest.mark.parametrize("name", ["dark", "light"])
def test_text_can_be_read_on_the_ground_the_theme_is_made_for(name):
    palette = load_palette(name, PLAIN)
    for token, style in palette.styles.items():
        if (
            style.color is None
            or token in NO_TEXT
            or token.startswith("thinking")
            and token != "thinkingText"
        ):
            continue
        for ground in GROUNDS[name]:
            assert contrast(tuple(style.color.triplet), ground) >= 4.5, token


@pytest.mark.parametrize("name", ["dark", "light", "high-contrast"])
@pytest.mark.parametrize(("text", "back"), ON_BACKGROUND)
def test_text_can_be_read_on_its_own_background(name, text, back):
    palette = load_palette(name, PLAIN)
    ground = palette.style(back).bgcolor.triplet
    assert contrast(tuple(palette.style(text).color.triplet), tuple(ground)) >= 4.5


def test_default_themes_leave_the_ground_of_tools_to_the_terminal():
    for name in ("dark", "light"):
        palette = load_palette(name, PLAIN)
        assert palette.style("toolPendingBg").bgcolor is None


def test_ansi_theme_uses_only_the_sixteen_colours():
    styles = load_palette("ansi", PLAIN).styles.values()
    used = [color for style in styles for color in (style.color, style.bgcolor) if color is not None]
    assert used
    assert {color.type for color in used} == {ColorType.STANDARD}


def test_mono_theme_has_no_colour_but_structure():
    palette = load_palette("mono", PLAIN)
    assert all(style.color is None and style.bgcolor is None for style in palette.styles.values())
    assert palette.style("selectedBg").reverse
    assert palette.style("divider").dim


@pytest.mark.parametrize(
    ("wanted", "environ", "chosen"),
    [
        ("auto", {}, "dark"),
        ("auto", {"COLORFGBG": "0;15"}, "light"),
        ("auto", {"COLORFGBG": "15;default;0"}, "dark"),
        ("auto", {"COLORFGBG": "15;x"}, "dark"),
        ("light", {"COLORFGBG": "15;0"}, "light"),
        ("auto", {"TERM": "linux"}, "ansi"),
        ("dark", {"TERM": "xterm-16color"}, "ansi"),
        ("dark", {"TERM": "xterm-16color", "COLORTERM": "truecolor"}, "dark"),
        ("high-contrast", {"TERM": "linux"}, "high-contrast"),
        ("dark", {"NO_COLOR": ""}, "mono"),
    ],
)
def test_choose_theme_follows_wish_and_terminal(wanted, environ, chosen):
    assert choose_theme(wanted, environ) == chosen


def write_theme(path: Path, **changes: object) -> Path:
    colors = {token: "" for token in REQUIRED} | {"accent": "first"}
    data = {"name": "mine", "vars": {"first": "second", "second": "#102030"}, "colors": colors, **changes}
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_theme_file_of_the_family_loads_with_variables_and_fallbacks(tmp_path):
    palette = read_palette(write_theme(tmp_path / "mine.json"), PLAIN)
    assert tuple(palette.style("accent").color.triplet) == (0x10, 0x20, 0x30)
    assert palette.style("gaugeFill") == palette.style("accent")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vars": {"first": "second", "second": "first"}}, '"first" refers to itself'),
        ({"vars": {}}, '"first" is neither'),
        ({"vars": {"first": "#12"}}, '"#12" is no colour'),
        ({"colors": {"accent": ""}}, "core: border, borderAccent"),
        ({"name": "a/b"}, '"name" must be'),
        ({"colors": []}, '"colors" must be a table'),
    ],
)
def test_broken_theme_file_is_refused_with_its_reason(tmp_path, changes, message):
    with pytest.raises(SettingsError) as error:
        read_palette(write_theme(tmp_path / "mine.json", **changes), PLAIN)
    assert message in str(error.value)


def test_missing_tokens_are_listed_by_group(tmp_path):
    colors = {token: "" for token in REQUIRED if token not in {"accent", "mdHr", "mdLink"}}
    with pytest.raises(SettingsError, match="core: accent; markdown: mdLink, mdHr"):
        read_palette(write_theme(tmp_path / "mine.json", colors=colors), PLAIN)


def test_file_that_is_no_theme_is_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"name = \xff")
    with pytest.raises(SettingsError, match=r"mine\.toml cannot be read"):
        read_palette(path, PLAIN)


def test_symbols_of_a_theme_can_be_overridden(tmp_path):
    table = {"preset": "unicode", "overrides": {"camera": "C", "unknown": "x"}, "spinnerFrames": ["a", "b"]}
    palette = read_palette(write_theme(tmp_path / "mine.json", symbols=table), PLAIN)
    assert palette.symbol("camera") == "C"
    assert palette.spinner == ("a", "b")
    assert "unknown" not in palette.symbols


def test_users_theme_wins_over_the_built_in_one(tmp_path):
    write_theme(tmp_path / "dark.json")
    palette = load_palette("dark", PLAIN, files=theme_files(tmp_path))
    assert palette.name == "mine"


def test_unknown_theme_is_refused_with_the_known_names():
    with pytest.raises(SettingsError, match=r'no theme "pink".*ansi, dark'):
        load_palette("pink", PLAIN)
