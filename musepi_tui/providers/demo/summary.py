"""The demo's summaries: computed from the conversation it is given, in the structure asked for.

It reads what ``context.serialize`` wrote (compaction 6.1): parts such as ``[User]: …``, ``[Tool Call]: …``.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from musepi_tui.base.text import cut, plural

_TAGGED = r"<{0}>\n(.*)\n</{0}>"
_PART = re.compile(r"^\[(User|Developer|Think|Assistant|Tool Call|Tool Result)\]: ", re.MULTILINE)
_CALL = re.compile(r"(\w+)\(")
_EXIT = re.compile(r"exit code (-?\d+)")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_FOCUS = re.compile(r"^Additional focus: (.+)", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"\w{4,}")

_HEADINGS = (
    "## Goal",
    "## Constraints & Preferences",
    "## Progress",
    "### Done",
    "### In Progress",
    "### Blocked",
    "## Key Decisions",
    "## Next Steps",
    "## Critical Context",
    "## Additional Notes",
)
_BRANCH_HEADINGS = _HEADINGS[:8]
_HANDOFF_HEADINGS = (*_HEADINGS[:5], "## Key Decisions", "## Critical Context", "## Next Steps")
_BRANCH = "branch that is being left"
_BY_DEMO = "- Written by the demo of musepi: counted from the conversation, not understood."
_PREFIX_HEADINGS = ("## Original Request", "## Early Progress", "## Context for Suffix")

_MAX_ITEMS = 14
"""Bullet points a heading keeps, newest last: with more, the summary of a long session would not fit."""
_PLACE = "- The project is in "
_REQUEST_CHARS = 160
_LINE_CHARS = 120


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call and the first and last line of what it gave; ``result`` None when it is unknown."""

    tool: str
    arguments: Mapping[str, object]
    result: str | None = None

    @property
    def path(self) -> str:
        """The path argument, or an empty string."""
        value = self.arguments.get("path")
        return value if isinstance(value, str) else ""


@dataclass(slots=True)
class Digest:
    """What a conversation holds: requests, tool uses in order, and the last word of the assistant.

    ``is_open``: the last request has no final answer yet.
    """

    requests: list[str] = field(default_factory=list[str])
    uses: list[ToolUse] = field(default_factory=list[ToolUse])
    last_answer: str = ""
    is_open: bool = False


def write_summary(prompt: str) -> str:
    """The text for a summary request: the ten headings, the three of a split turn, or those of a branch."""
    conversation = (_inside(prompt, "conversation") or "").replace("<\\/conversation>", "</conversation>")
    instruction = prompt.rpartition("</conversation>")[2]
    digest = read_conversation(conversation)
    focus = find_focus(instruction)
    notes = [] if focus is None else _focus_notes(focus, conversation)
    if "## Original Request" in instruction and "## Goal" not in instruction:
        sections = _prefix_sections(digest)
        sections["## Context for Suffix"] += notes
        return _join(_PREFIX_HEADINGS, sections)
    sections = _sections(digest, _read_sections(_inside(prompt, "previous-summary") or ""))
    if _BRANCH in instruction and "## Additional Notes" not in instruction:
        if not digest.requests:  # the person goes back to the very prompt the branch began with
            sections["## Goal"] = ["- What was asked for before this branch."]
        return f"{_join(_BRANCH_HEADINGS, sections)}\n\n{_BY_DEMO}"
    sections["## Additional Notes"] += notes
    return _join(_HEADINGS, sections)


def write_handoff(conversation: str, earlier: str, focus: str | None) -> str:
    """The document another session goes on from. ``earlier`` is the summary or document the context begins
    with, empty without one."""
    digest = read_conversation(conversation)
    sections = _sections(digest, _read_sections(earlier))
    sections["### In Progress"] += sections["### Blocked"]
    notes = [] if focus is None else _focus_notes(focus, conversation)
    sections["## Critical Context"] += [*notes, _BY_DEMO]
    return _join(_HANDOFF_HEADINGS, sections)


def find_focus(prompt: str) -> str | None:
    """What a person wants the text to dwell on; None when nothing is said."""
    focus = _FOCUS.search(prompt)
    return None if focus is None else focus[1].strip()


def read_conversation(text: str) -> Digest:
    """The digest of a serialized conversation. Text that only looks like a part heading is taken for one."""
    digest = Digest()
    starts = list(_PART.finditer(text))
    ends = [*(start.start() for start in starts[1:]), len(text)][: len(starts)]
    waiting: list[int] = []
    for start, end in zip(starts, ends, strict=True):
        body = text[start.end() : end].strip()
        match start[1]:
            case "User":
                digest.requests.append(body)
                digest.is_open = True
            case "Assistant":
                digest.last_answer = body
                digest.is_open = False
            case "Tool Call":
                waiting = []
                for use in _read_calls(body):
                    waiting.append(len(digest.uses))
                    digest.uses.append(use)
                digest.is_open = True
            case "Tool Result" if waiting:
                place = waiting.pop(0)
                use = digest.uses[place]
                digest.uses[place] = ToolUse(use.tool, use.arguments, body)
            case _:
                pass
    return digest


def _read_calls(text: str) -> list[ToolUse]:
    """The calls of one ``[Tool Call]`` part: ``name(key=json, key2=json); name2(…)``."""
    decoder = json.JSONDecoder()
    uses: list[ToolUse] = []
    position = 0
    while match := _CALL.match(text, position):
        arguments: dict[str, object] = {}
        position = match.end()
        while argument := re.compile(r"(?:, )?(\w+)=").match(text, position):
            try:
                arguments[argument[1]], position = decoder.raw_decode(text, argument.end())
            except ValueError:
                break
        uses.append(ToolUse(match[1], arguments))
        closing = text.find("; ", position)
        if closing < 0:
            break
        position = closing + 2
    return uses


def _sections(digest: Digest, previous: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """What stands under each of the ten headings. ``previous`` are the sections of the summary before."""
    requests = [_quote(request) for request in digest.requests]
    split = previous.get("## Original Request", [])
    first = [f"- First request: {request}" for request in [*split, *requests][:1]]
    goal = previous.get("## Goal") or first or ["- No request yet."]
    steps, begun = previous.get("## Next Steps", []), list[str]()
    if requests:
        goal = [line for line in goal if not line.startswith("- Current")] + [f"- Current: {requests[-1]}"]
        steps = ["1. Nothing is open: wait for the next request."]
    if requests and digest.is_open:
        steps, begun = [f"1. Finish: {requests[-1]}"], [f"- Begun, not answered yet: {requests[-1]}"]
    answered = split + (requests[:-1] if digest.is_open else requests)
    done = [f"- Answered: {request}" for request in answered] + _work_lines(digest.uses)
    return {
        "## Goal": goal,
        "## Constraints & Preferences": previous.get("## Constraints & Preferences", []),
        "### Done": _newest(previous.get("### Done", []), done),
        "### In Progress": begun,
        "### Blocked": _blocked_lines(digest.uses),
        "## Key Decisions": _newest(previous.get("## Key Decisions", []), _decision_lines(digest.uses)),
        "## Next Steps": steps,
        "## Critical Context": _newest(_places(previous), _context_lines(digest)),
        "## Additional Notes": [_BY_DEMO],
    }


def _places(previous: Mapping[str, list[str]]) -> list[str]:
    """What the earlier summary says about where the project is."""
    return [line for line in previous.get("## Critical Context", []) if line.startswith(_PLACE)]


def _prefix_sections(digest: Digest) -> dict[str, list[str]]:
    request = digest.requests[-1] if digest.requests else "(it is in an earlier summary)"
    progress = _work_lines(digest.uses)
    return {
        "## Original Request": [_quote(request)],
        "## Early Progress": progress or ["- Nothing was done yet."],
        "## Context for Suffix": _context_lines(digest) or ["- The turn has only begun."],
    }


def _work_lines(uses: Sequence[ToolUse]) -> list[str]:
    """What was read, changed and run, one line a thing; all reads share one. Files are named from the folder
    they have in common with the others."""
    base = _common_folder(uses)
    reads = _unique(_short_path(use, base) for use in uses if use.tool == "read" and use.path)
    lines = [f"- Read {_name_all(reads)}."] if reads else []
    for use in uses:
        match use.tool:
            case "edit" | "write" if use.path:
                verb = "Changed" if use.tool == "edit" else "Wrote"
                lines.append(f"- {verb} `{_short_path(use, base)}`{'' if _went_well(use) else ' (failed)'}.")
            case "bash":
                lines.append(f"- Ran `{_command(use)}`: {_ending(use)}.")
            case "grep" | "find" if isinstance(use.arguments.get("pattern"), str):
                lines.append(f"- Searched for `{use.arguments['pattern']}`.")
            case _:
                pass
    return _unique(lines)


def _common_folder(uses: Sequence[ToolUse]) -> str:
    """The folder all files of the calls lie in, with a slash at its end; empty when there is none."""
    paths = [use.path for use in uses if use.tool in ("read", "edit", "write") and use.path.startswith("/")]
    parts = os.path.commonpath([os.path.dirname(path) for path in paths]) if paths else ""  # noqa: PTH120 - texts
    return f"{parts}/" if len(parts) > 1 else ""


def _short_path(use: ToolUse, base: str) -> str:
    return use.path.removeprefix(base)


def _decision_lines(uses: Sequence[ToolUse]) -> list[str]:
    base = _common_folder(uses)
    lines: list[str] = []
    for use in uses:
        edits = use.arguments.get("edits")
        if use.tool != "edit" or not isinstance(edits, list) or not _went_well(use):
            continue
        for edit in cast("list[object]", edits):
            if isinstance(edit, Mapping):
                edit = cast("Mapping[str, object]", edit)
                old, new = str(edit.get("oldText", "")), str(edit.get("newText", ""))
                lines.append(
                    f"- **{_short_path(use, base)}**: `{_last_line(old)}` became `{_last_line(new)}`."
                )
    return lines


def _blocked_lines(uses: Sequence[ToolUse]) -> list[str]:
    commands = [use for use in uses if use.tool == "bash"]
    if commands and not _went_well(commands[-1]):
        return [f"- `{_command(commands[-1])}` failed last: {_ending(commands[-1])}."]
    return []


def _context_lines(digest: Digest) -> list[str]:
    lines: list[str] = []
    folders = _unique(use.path for use in digest.uses if use.tool == "ls" and use.path)
    if folders:
        lines.append(f"{_PLACE}{_name_all(folders)}.")
    commands = [use for use in digest.uses if use.tool == "bash"]
    if commands:
        lines.append(f"- Last command: `{_command(commands[-1])}`, {_ending(commands[-1])}.")
    if digest.last_answer:
        lines.append(f"- The last answer began: {_quote(_first_sentence(digest.last_answer))}")
    return lines


def _focus_notes(focus: str, conversation: str) -> list[str]:
    """Lines of people and assistant that share a word with the focus, at most five."""
    wanted = {word.lower() for word in _WORD.findall(focus)}
    found = [
        f"  - {cut(line.strip(), _LINE_CHARS)}"
        for line in conversation.splitlines()
        if wanted & {word.lower() for word in _WORD.findall(line)}
    ]
    return [f"- Focus asked for: {cut(focus, _LINE_CHARS)}", *_unique(found)[:5]]


def _read_sections(summary: str) -> dict[str, list[str]]:
    """The lines under each known heading; lines outside of one are left out."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in summary.splitlines():
        if line.strip() in (*_HEADINGS, *_PREFIX_HEADINGS):
            current = sections.setdefault(line.strip(), [])
        elif line.strip() == "---":
            current = []
        elif line.strip():
            current.append(line)
    return sections


def _join(headings: Iterable[str], sections: Mapping[str, Sequence[str]]) -> str:
    parts = [
        "\n".join((heading, *sections.get(heading, ())))
        for heading in headings
        if sections.get(heading) or heading == "## Progress"
    ]
    return "\n\n".join(parts)


def _newest(old: Sequence[str], new: Sequence[str]) -> list[str]:
    return _unique([*old, *new])[-_MAX_ITEMS:]


def _unique(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))


def _name_all(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:6])
    return shown + (f" and {plural(len(names) - 6, 'more file')}" if len(names) > 6 else "")


def _command(use: ToolUse) -> str:
    command = use.arguments.get("command")
    return cut(" ".join(command.split()) if isinstance(command, str) else "?", _LINE_CHARS)


def _ending(use: ToolUse) -> str:
    """How a command ended: its exit code and its last line."""
    lines = [line.strip() for line in (use.result or "").splitlines() if line.strip()]
    if not lines:
        return "no output"
    code = _EXIT.search(lines[-1])
    words = [line for line in lines if not _EXIT.search(line)]
    last = cut(words[-1], _LINE_CHARS) if words else ""
    return ", ".join(
        part for part in (f"exit code {code[1]}" if code else "", f"`{last}`" if last else "") if part
    )


def _went_well(use: ToolUse) -> bool:
    if use.result is None:
        return False
    if use.tool == "bash":
        return "exit code" not in use.result.rstrip().rpartition("\n")[2]
    return not use.result.lower().startswith(("error", "denied", "no changes", "cannot", "could not"))


def _quote(text: str) -> str:
    return f'"{cut(" ".join(text.split()), _REQUEST_CHARS)}"'


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return cut(lines[-1].strip(), _LINE_CHARS) if lines else ""


def _first_sentence(text: str) -> str:
    match = _SENTENCE.search(text.lstrip("#* "))
    return match[0].strip() if match else ""


def _inside(prompt: str, tag: str) -> str | None:
    """What stands between the first opening and the last closing of a tag."""
    match = re.search(_TAGGED.format(tag), prompt, re.DOTALL)
    return match[1] if match else None
