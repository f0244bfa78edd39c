"""Symbol presets (tui 1.3): every sign the screen draws, by name."""

from collections.abc import Mapping

_UNICODE = {
    "camera": "📷",
    "rule": "─",
    "dot": "·",
    "gauge_full": "▰",
    "gauge_rest": "▱",
    "gauge_mark": "┃",
    "bullet": "•",
    "cursor": "›",
    "tree_branch": "├─",
    "tree_last": "└─",
    "tree_line": "│",
    "fold": "⊞",
    "unfold": "⊟",
    "ok": "✓",
    "err": "✗",
    "warn": "!",
    "branch": "⎇",
    "handoff": "⇥",
    "up": "↑",
    "down": "↓",
    "queued": "↳",
    "arrow": "→",
    "here": "←",
    "ellipsis": "…",
    "bar": "│",
    "minus": "−",
    "titled": "–",
    "corner_tl": "╭",
    "corner_tr": "╮",
    "corner_bl": "╰",
    "corner_br": "╯",
}
_ASCII = {
    "camera": "[o]",
    "rule": "-",
    "dot": ".",
    "gauge_full": "#",
    "gauge_rest": "-",
    "gauge_mark": "|",
    "bullet": "*",
    "cursor": ">",
    "tree_branch": "|-",
    "tree_last": "`-",
    "tree_line": "|",
    "fold": "+",
    "unfold": "-",
    "ok": "ok",
    "err": "x",
    "warn": "!",
    "branch": "br",
    "handoff": "->",
    "up": "^",
    "down": "v",
    "queued": "+>",
    "arrow": "->",
    "here": "<-",
    "ellipsis": "...",
    "bar": "|",
    "minus": "-",
    "titled": "-",
    "corner_tl": "+",
    "corner_tr": "+",
    "corner_bl": "+",
    "corner_br": "+",
}

SYMBOLS: Mapping[str, Mapping[str, str]] = {
    "unicode": _UNICODE,
    "ascii": _ASCII,
    "nerd": {**_UNICODE, "camera": "\uf083", "branch": "\ue0a0", "handoff": "\uf064"},
}
"""Preset → name → sign. All but the camera are one cell in every common font (tui 1.30)."""

SPINNERS: Mapping[str, tuple[str, ...]] = {
    "unicode": tuple("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"),
    "ascii": tuple("|/-\\"),
    "nerd": tuple("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"),
}
"""Frames of the sign for something that runs."""


def choose_preset(wanted: str | None, environ: Mapping[str, str]) -> str:
    """The preset for this terminal: ``ascii`` where the locale or the console cannot do more (tui 1.31).

    An unknown wish counts as ``unicode``; the settings file check names it.
    """
    if environ.get("MUSEPI_ASCII") or environ.get("TERM") == "linux" or not _is_utf8(environ):
        return "ascii"
    return wanted if wanted is not None and wanted in SYMBOLS else "unicode"


def _is_utf8(environ: Mapping[str, str]) -> bool:
    """Whether the locale variables ask for UTF-8; none set at all counts as yes (Windows, containers)."""
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        if value := environ.get(name):
            return value.lower().replace("-", "").endswith("utf8") or "utf8" in value.lower().replace("-", "")
    return True
