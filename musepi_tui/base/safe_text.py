"""Text from outside, made safe for a terminal (SAF-50, 51, 52).

Nothing that a model, a tool, a file or a server wrote reaches the screen without passing here.
"""

import re
from typing import NewType

Safe = NewType("Safe", str)
"""Text that cannot steer a terminal."""

TAB_CELLS = 4
"""Tabs are expanded to this: half the terminals' eight, since code is shown inside a narrow view."""

_PLAIN_ASCII = bytes([0x0A, *range(0x20, 0x7F)])

_INVISIBLE = "\u061c\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\U000e0000-\U000e007f"
_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_SURROGATE = "\ud800-\udfff"
_SUSPICIOUS = re.compile(f"[\t{_CONTROL}{_SURROGATE}{_INVISIBLE}]")

_UNSAFE = re.compile(
    "(?P<sgr>\x1b\\[[0-9;:]*m)"
    # OSC, DCS, APC, PM, SOS: to their terminator, or without one to the end of the line
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"
    "|(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"
    "|\x1b[ -/]*[0-~]?"
    f"|(?P<surrogate>[{_SURROGATE}])"
    f"|(?P<invisible>[{_INVISIBLE}])"
    f"|[{_CONTROL}]"
)

_JOINERS = "\u200c\u200d"
_JOINED_SCRIPTS = (
    (0x0600, 0x06FF),  # Arabic
    (0x0750, 0x077F),  # Arabic supplement
    (0x08A0, 0x08FF),  # Arabic extended
    (0x0900, 0x0DFF),  # Devanagari to Sinhala
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x2190, 0x2BFF),  # symbols that may be emoji
    (0xFB50, 0xFDFF),  # Arabic presentation forms
    (0xFE0F, 0xFE0F),  # the selector that makes the symbol before it an emoji
    (0x1F000, 0x1FAFF),  # emoji
)


def display_safe(text: str, *, keep_sgr: bool = False) -> Safe:
    """The text without anything a terminal would obey or a reader could be fooled by.

    Escape sequences and control characters go, line breaks stay, tabs are expanded, lone surrogates become
    U+FFFD, invisible characters go except joiners inside emoji and words of scripts that need them.
    ``keep_sgr`` keeps colour sequences of the form ``ESC [ … m``; their reader closes them. Linear.
    """
    if _is_plain(text):
        return Safe(text)

    def replace(match: re.Match[str]) -> str:
        match match.lastgroup:
            case "sgr":
                return match[0] if keep_sgr else ""
            case "surrogate":
                return "\ufffd"
            case "invisible" if match[0] in _JOINERS and _stands_inside_word(text, match.start()):
                return match[0]
            case _:
                return ""

    return Safe(_UNSAFE.sub(replace, text).expandtabs(TAB_CELLS))


def reveal(text: str) -> Safe:
    """The text with every control and invisible character spelled out as ``⟨U+202E⟩`` (SAF-51).

    For file names, approvals and diffs, where what is hidden matters. Line breaks stay, tabs are expanded.
    """
    if _is_plain(text):
        return Safe(text)
    return Safe(_SUSPICIOUS.sub(_spell_out, text).expandtabs(TAB_CELLS))


def _spell_out(match: re.Match[str]) -> str:
    char = match[0]
    if char == "\t":
        return char
    return "\ufffd" if "\ud800" <= char <= "\udfff" else f"⟨U+{ord(char):04X}⟩"


def _is_plain(text: str) -> bool:
    if text.isascii():
        return not text.encode("ascii").translate(None, _PLAIN_ASCII)
    return _SUSPICIOUS.search(text) is None


def _stands_inside_word(text: str, index: int) -> bool:
    return 0 < index < len(text) - 1 and _is_joined(text[index - 1]) and _is_joined(text[index + 1])


def _is_joined(char: str) -> bool:
    point = ord(char)
    return any(first <= point <= last for first, last in _JOINED_SCRIPTS)
