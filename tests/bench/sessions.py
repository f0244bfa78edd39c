"""Session files of any size, written by the product's own codec, and a Markdown text of any length."""

from collections.abc import Iterator
from pathlib import Path

from musepi_tui.session.codec import dump_json, dump_line, encode_header
from musepi_tui.session.entries import Entry, SessionHeader
from musepi_tui.session.messages import Message
from tests.support.builders import START_MS, Part, a, call, compaction, entry, t, u

LAST_WORDS = "the-last-words-of-this-session"
"""Ends the last answer, so that the last screen is complete when these are on it."""

COMPACTED_EVERY = 400
KEPT_ENTRIES = 40

_PARAGRAPH = (
    "The parser keeps **one** token of look-ahead, so `peek()` never reads twice; the loop in "
    "`read_block` relies on that and would hang on an empty line without it. "
)
_BLOCKS = (
    "## Step {n}: what changes\n\n",
    _PARAGRAPH * 2 + "\n\n",
    "- the reader stops at a blank line\n- the writer *adds* one\n- both agree on `utf-8`\n\n",
    "```python\ndef read_block_{n}(lines: list[str]) -> str:\n"
    '    """The text up to a blank line."""\n'
    "    kept = [line for line in lines if line.strip()]\n"
    '    return "\\n".join(kept[: {n} + 1])\n```\n\n',
    "| file | lines | use |\n|---|---:|---|\n| reader.py | {n} | look-ahead |\n| writer.py | 12 | tail |\n\n",
)


def markdown(tokens: int) -> str:
    """Prose, lists, code and tables of about that many tokens, counted as pieces cut at blanks."""
    parts: list[str] = []
    missing, number = tokens, 0
    while missing > 0:
        part = _BLOCKS[number % len(_BLOCKS)].replace("{n}", str(number))
        parts.append(part)
        missing -= len(part.split())
        number += 1
    return "".join(parts)


def write_session(path: Path, entries: int, cwd: Path) -> None:
    """A session of that many entries: prompts, calls with results of about 2 kB, answers in Markdown, and a
    compaction now and then, as in any session of that length."""
    header = SessionHeader("00000000-0000-7000-8000-000000000001", "2025-06-15T15:06:40.000Z", str(cwd))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(dump_json(encode_header(header)) + b"\n")
        for made in _entries(entries):
            file.write(dump_line(made) + b"\n")


def _entries(number: int) -> Iterator[Entry]:
    parent: str | None = None
    for index in range(number):
        entry_id = f"{index:08x}"
        yield entry(_part(index, is_last=index == number - 1), entry_id, parent, START_MS + 1000 * index)
        parent = entry_id


def _part(index: int, *, is_last: bool) -> Part:
    if index % COMPACTED_EVERY or not index or is_last:
        return _message(index, is_last=is_last)
    return compaction(markdown(300), f"{index - KEPT_ENTRIES:08x}", tokens_before=180_000)


def _message(index: int, *, is_last: bool) -> Message:
    if is_last:
        return a(f"{markdown(120)}Done: {LAST_WORDS}")
    match index % 4:
        case 0:
            return u(f"Prompt {index}: please look at the reader and say why the blank line matters.")
        case 1:
            found = call("read", f"call-{index}", path=f"src/reader_{index}.py")
            return a("I look at the file first.", [found], thinking="Where is the loop that hangs?")
        case 2:
            lines = "\n".join(f"{line:4} | value_{line} = read(source, {index})" for line in range(50))
            return t(lines, f"call-{index - 1}", "read")
        case _:
            return a(markdown(100))
