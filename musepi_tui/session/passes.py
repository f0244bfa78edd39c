"""What a summary in the middle of a conversation says about itself, in the words people read (TUI-2.45)."""

import re

from musepi_tui.base.text import duration, group_digits
from musepi_tui.session.entries import CompactionEntry
from musepi_tui.session.messages import Content, text_of

NO_SUMMARY = "No summary text: the provider keeps this window"
EMPTY_HANDOFF = "(empty handoff)"

_REASONS = {"provider_switch": "provider switch", "provider-switch": "provider switch"}
_FILES = re.compile(r"<files>\n(.*?)\n?</files>\s*", re.DOTALL)
_PREAMBLE = re.compile(r"\A\s*The user explored [^\n]*\nSummary of that branch:\s*")
"""What the model is told in front of a branch summary (``branch-summary-preamble``), and what it is told in
sessions of other tools."""

_HANDOFF_OPEN, _HANDOFF_CLOSE = "<handoff-context>", "</handoff-context>"


def token_line(before: int, after: int | None) -> str:
    """``231,785 → 24,100 tokens``; without the second figure ``231,785 tokens before``; empty for 0."""
    if not before:
        return ""
    if after is None:
        return f"{group_digits(before)} tokens before"
    return f"{group_digits(before)} → {group_digits(after)} tokens"


def pass_facts(entry: CompactionEntry) -> tuple[str, ...]:
    """Why and how a compaction was made, as far as it is stored: reason, method, model, time, cost."""
    facts: list[str] = []
    if entry.mid_turn:
        facts.append("mid-turn")
    elif entry.reason:
        facts.append(_REASONS.get(entry.reason, entry.reason))
    facts += [text for text in (entry.method, entry.model) if text]
    if entry.duration_ms is not None:
        facts.append(duration(entry.duration_ms / 1000))
    if entry.usage is not None and entry.usage.cost is not None and entry.usage.cost.total:
        facts.append(f"${entry.usage.cost.total:.4f}")
    return tuple(facts)


def split_files(summary: str) -> tuple[str, tuple[str, ...]]:
    """A summary without its folded file block (compaction 7.2), and that block as indented lines."""
    match = _FILES.search(summary)
    if match is None:
        return summary.strip(), ()
    lines: list[str] = []
    depth = 0
    for line in match[1].split("\n"):
        header = line.lstrip("#")
        if header != line:
            depth = len(line) - len(header)
            lines.append("  " * (depth - 1) + header.strip())
        elif line.strip():
            lines.append("  " * depth + line.strip())
    return (summary[: match.start()] + summary[match.end() :]).strip(), tuple(lines)


def handoff_text(content: Content) -> str:
    """A handoff document without its wrapper, and without what the model is told behind it."""
    text = text_of(content).strip()
    if text.startswith(_HANDOFF_OPEN):
        inside, _, _ = text.removeprefix(_HANDOFF_OPEN).partition(_HANDOFF_CLOSE)
        text = inside.strip()
    return text or EMPTY_HANDOFF


def branch_text(summary: str) -> str:
    """A branch summary without what the model is told in front of it."""
    return _PREAMBLE.sub("", summary).strip()
