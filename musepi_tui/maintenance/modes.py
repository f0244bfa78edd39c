"""The modes of a pass that a person asks for (tui 4.2)."""

from musepi_tui.maintenance.triggers import Strategy

MODES = ("summary", "soft", "remote", "shake")
"""What ``/compact`` does here. The first three are a summary; ``remote`` wants it from
``compaction.remoteEndpoint``, ``soft`` from a model."""

SHAKE_TAKES_NO_FOCUS = (
    "shake takes no focus text: nothing is summarised. Use /compact shake alone, or quote the text."
)

_NOT_HERE = {
    "snapcompact": 'This version has no compaction mode "snapcompact".',
    "handoff": "A handoff is a command of its own: /handoff [focus].",
    "--preview": "This version has no /compact --preview; musepi compact FILE --dry-run shows as much.",
    "edit": "This version has no /compact edit.",
    "undo": "This version has no /compact undo; /tree goes back to before a compaction.",
}
"""Words of the grammar that do nothing here. As silent focus text they would pay for a summary that nobody
asked for."""

WORDS = (*MODES, *_NOT_HERE)
"""First words that are never focus text unless they are quoted."""


def wants_endpoint(mode: str | None) -> bool:
    """Whether the summary shall come from ``compaction.remoteEndpoint``."""
    return mode is not None and mode.lower() == "remote"


def shuns_endpoint(mode: str | None) -> bool:
    """Whether no ``compaction.remoteEndpoint`` may be asked, although there is one."""
    return mode is not None and mode.lower() == "soft"


def refuse_mode(mode: str | None, focus: str | None) -> str | None:
    """Why a pass in that mode cannot be had, with what to do instead; None when it can."""
    if mode is None:
        return None
    word = mode.lower()
    if word in MODES:
        return SHAKE_TAKES_NO_FOCUS if word == Strategy.SHAKE and focus else None
    if word not in _NOT_HERE:
        return f'There is no compaction mode "{mode}"; use {", ".join(MODES)}.'
    words = f"{word} {focus}" if focus else word
    quote = "'" if '"' in words else '"'
    takes_none = " It would take no focus text." if word == "snapcompact" and focus else ""
    as_focus = f"To have the words as focus text, quote them: /compact {quote}{words}{quote}"
    return f"{_NOT_HERE[word]}{takes_none} {as_focus}"
