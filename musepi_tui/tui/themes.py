"""Themes: a TOML (or JSON) file becomes a ``Palette`` of Rich styles and symbols (tui 1.3)."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from rich.color import Color
from rich.style import Style

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SettingsError
from musepi_tui.base.resources import theme_paths
from musepi_tui.tui.symbols import SPINNERS, SYMBOLS, choose_preset

_TOKENS = """
core accent border borderAccent borderMuted success error warning muted dim text thinkingText
items selectedBg userMessageBg userMessageText customMessageBg customMessageText customMessageLabel
items toolPendingBg toolSuccessBg toolErrorBg toolTitle toolOutput
markdown mdHeading mdLink mdLinkUrl mdCode mdCodeBlock mdCodeBlockBorder
markdown mdQuote mdQuoteBorder mdHr mdListBullet
diff toolDiffAdded toolDiffRemoved toolDiffContext
syntax syntaxComment syntaxKeyword syntaxFunction syntaxVariable syntaxString syntaxNumber syntaxType
syntax syntaxOperator syntaxPunctuation
thinking thinkingOff thinkingMinimal thinkingLow thinkingMedium thinkingHigh thinkingXhigh
bash bashMode
"""

REQUIRED: Mapping[str, str] = {
    token: group
    for group, *tokens in (line.split() for line in _TOKENS.strip().splitlines())
    for token in tokens
}
"""The 51 required tokens and the group of each, spelled as the other programs of the pi family spell them,
so that their theme files load here."""

FALLBACKS: Mapping[str, str] = {
    "thinkingMax": "thinkingXhigh",
    "divider": "dim",
    "dividerLabel": "muted",
    "gaugeFill": "accent",
    "gaugeRest": "dim",
    "gaugeWarn": "warning",
    "gaugeError": "error",
    "treePath": "accent",
    "treeLabel": "warning",
    "footer": "muted",
    "pinned": "accent",
}
"""Optional tokens and the token they take when a file leaves them out."""

ATTRIBUTES = frozenset({"bold", "dim", "italic", "underline", "reverse", "strike"})
"""Words of the optional ``[styles]`` table, which lets a theme without colours carry structure."""


@dataclass(frozen=True, slots=True)
class Palette:
    """What is drawn with: a Rich style per token, a string per symbol.

    Foreground tokens give a style with a colour, tokens ending in ``Bg`` one with a background, so that
    ``style("userMessageText") + style("userMessageBg")`` is a filled text. A colour of ``""`` is the
    terminal's own. ``dark`` says which ground the theme is made for.
    """

    name: str
    dark: bool
    styles: Mapping[str, Style]
    symbols: Mapping[str, str]
    spinner: tuple[str, ...]

    def style(self, token: str) -> Style:
        """The style of a token. Raises ``KeyError`` for a token that does not exist: a bug."""
        return self.styles[token]

    def symbol(self, name: str) -> str:
        """The symbol of that name. Raises ``KeyError`` for one that does not exist: a bug."""
        return self.symbols[name]


def load_palette(
    name: str,
    environ: Mapping[str, str],
    *,
    files: Mapping[str, Path] | None = None,
    symbols: str | None = None,
) -> Palette:
    """The palette of theme ``name`` for this terminal.

    ``auto`` chooses by the terminal (``choose_theme``); a terminal without colours always gets ``mono``, one
    with sixteen gets ``ansi`` instead of an RGB theme. ``files`` are the user's own theme files by name, they
    win over the built-in ones; ``symbols`` is the preset the user asked for.

    Raises ``SettingsError`` naming the known themes, or what is wrong in the file.
    """
    paths = {**theme_paths(), **(files or {})}
    chosen = choose_theme(name, environ)
    if chosen not in paths:
        raise SettingsError(f'There is no theme "{chosen}". Known: {", ".join(sorted(paths))}.')
    return read_palette(paths[chosen], environ, symbols=symbols)


def choose_theme(wanted: str, environ: Mapping[str, str]) -> str:
    """The theme to load for a wish: no colours → ``mono``, sixteen → ``ansi``, ``auto`` → by the ground."""
    if "NO_COLOR" in environ:
        return "mono"
    if wanted in {"auto", "dark", "light"} and has_sixteen_colors(environ):
        return "ansi"
    if wanted != "auto":
        return wanted
    return "light" if is_light_ground(environ.get("COLORFGBG", "")) else "dark"


def has_sixteen_colors(environ: Mapping[str, str]) -> bool:
    """Whether the terminal only has the sixteen standard colours (tui 1.43)."""
    if environ.get("COLORTERM", "").lower() in {"truecolor", "24bit"} or "WT_SESSION" in environ:
        return False
    term = environ.get("TERM", "")
    return term == "linux" or term.endswith("-16color")


def is_light_ground(color_fg_bg: str) -> bool:
    """Whether ``COLORFGBG`` (``foreground;background``) names a light background: an index of 8 or more."""
    background = color_fg_bg.rpartition(";")[2]
    return background.isdecimal() and int(background) >= 8


def theme_files(folder: Path) -> dict[str, Path]:
    """The theme files of a folder by name, none when it is absent. A ``.toml`` wins over a ``.json``."""
    found = {path.stem: path for path in sorted(folder.glob("*.json"))}
    found.update({path.stem: path for path in sorted(folder.glob("*.toml"))})
    return found


def read_palette(path: Path, environ: Mapping[str, str], *, symbols: str | None = None) -> Palette:
    """The palette of one theme file. Raises ``SettingsError`` saying what is wrong in it."""
    data = _read_file(path)
    name = data.get("name")
    if not isinstance(name, str) or not name or "/" in name:
        raise SettingsError(f'{path.name}: "name" must be a text without "/".')
    colors = _resolve_colors(_table(data, "colors", path), _table(data, "vars", path), path)
    symbol_table = _table(data, "symbols", path)
    preset = choose_preset(symbols or _text(symbol_table.get("preset")), environ)
    overrides = {
        key: str(value)
        for key, value in _sub_table(symbol_table.get("overrides")).items()
        if key in SYMBOLS[preset]
    }
    frames: Any = symbol_table.get("spinnerFrames")
    spinner = tuple(str(frame) for frame in cast("list[Any]", frames)) if isinstance(frames, list) else ()
    return Palette(
        name=name,
        dark=data.get("ground", "dark") != "light",
        styles=_build_styles(colors, _table(data, "styles", path)),
        symbols={**SYMBOLS[preset], **overrides},
        spinner=spinner or SPINNERS[preset],
    )


def _read_file(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise SettingsError(f"{path.name} cannot be read as a theme: {error}") from error


def _table(data: Mapping[str, Any], key: str, path: Path) -> Mapping[str, Any]:
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise SettingsError(f'{path.name}: "{key}" must be a table.')
    return cast("dict[str, Any]", value)


def _sub_table(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _resolve_colors(
    colors: Mapping[str, Any], variables: Mapping[str, Any], path: Path
) -> dict[str, Color | None]:
    """Every token, required and optional, with its colour; None is the terminal's own."""
    missing: dict[str, list[str]] = {}
    for token, group in REQUIRED.items():
        if token not in colors:
            missing.setdefault(group, []).append(token)
    if missing:
        listed = "; ".join(f"{group}: {', '.join(tokens)}" for group, tokens in missing.items())
        raise SettingsError(f"{path.name} lacks colours. {listed}")
    resolved = {token: _color(colors[token], variables, path, ()) for token in REQUIRED}
    for token, fallback in FALLBACKS.items():
        resolved[token] = _color(colors.get(token, colors.get(fallback)), variables, path, ())
    return resolved


def _color(value: object, variables: Mapping[str, Any], path: Path, seen: Sequence[str]) -> Color | None:
    if value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 255:
        return Color.from_ansi(value)
    if isinstance(value, str) and value.startswith("#"):
        digits = value[1:]
        if len(digits) == 6 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
            return Color.from_rgb(int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16))
        raise SettingsError(f'{path.name}: "{value}" is no colour; write it as "#rrggbb".')
    if isinstance(value, str) and value in seen:
        raise SettingsError(f'{path.name}: the variable "{value}" refers to itself.')
    if isinstance(value, str) and value in variables:
        return _color(variables[value], variables, path, (*seen, value))
    raise SettingsError(f'{path.name}: "{value}" is neither a colour nor a variable of the file.')


def _build_styles(colors: Mapping[str, Color | None], attributes: Mapping[str, Any]) -> dict[str, Style]:
    styles: dict[str, Style] = {}
    for token, color in colors.items():
        source = token if token in attributes else FALLBACKS.get(token, token)
        words = set(str(attributes.get(source, "")).split()) & ATTRIBUTES
        extra = Style.parse(" ".join(sorted(words))) if words else Style()
        styles[token] = (Style(bgcolor=color) if token.endswith("Bg") else Style(color=color)) + extra
    return styles
