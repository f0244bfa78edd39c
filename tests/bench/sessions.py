"""Session files of any size, written by the product's own codec, and a Markdown text of any length."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from musepi_tui.base.clock import iso_time
from musepi_tui.session.codec import dump_json, dump_line, encode_header
from musepi_tui.session.entries import CompactionEntry, Entry, SessionHeader
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


def write_large_session(path: Path, entries: int, size_bytes: int, cwd: Path) -> None:
    """A session of about that many bytes, made as fast as the disk takes it: a gigabyte in a few seconds.

    The kinds of entries are those of ``write_session``; ids are random to look at, as stored ones are.
    """
    header = SessionHeader("00000000-0000-7000-8000-000000000002", "2025-06-15T15:06:40.000Z", str(cwd))
    forms = [_Form(index, max(0, size_bytes // entries)) for index in (0, 1, 2, 3, COMPACTED_EVERY)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb", buffering=4 * 1024 * 1024) as file:
        file.write(dump_json(encode_header(header)) + b"\n")
        for index in range(entries - 1):
            is_compaction = index > 0 and index % COMPACTED_EVERY == 0
            file.write(forms[-1 if is_compaction else index % 4].line(index))
        last = entry(_message(entries - 1, is_last=True), _mixed_id(entries - 1), _mixed_id(entries - 2))
        file.write(dump_line(last) + b"\n")


class _Form:
    """A line with blanks for what differs from entry to entry."""

    def __init__(self, index: int, average_bytes: int) -> None:
        made = entry(_part(index, is_last=False), "@id", "@parent", START_MS)
        if isinstance(made, CompactionEntry):
            made = replace(made, first_kept_entry_id="@kept")
        front, quoted, self._rest = dump_line(made).partition(b'"@parent"')
        assert quoted
        self._front = front
        # Every other line is short; the long ones make up for them.
        padding = max(0, 2 * average_bytes - len(self._rest)) if index in (2, 3) else 0
        self._rest = self._rest.replace(b'"text":"', b'"text":"' + b"padding " * (padding // 8))

    def line(self, index: int) -> bytes:
        """The line of entry ``index``, LF included."""
        parent = b'"%s"' % _mixed_id(index - 1).encode() if index else b"null"
        stamp, kept = iso_time(START_MS + 1000 * index).encode(), _mixed_id(index - KEPT_ENTRIES).encode()
        front = self._front.replace(b"@id", _mixed_id(index).encode())
        head, text = self._rest[:_HEAD_BYTES], self._rest[_HEAD_BYTES:]
        head = head.replace(_START_TIME, stamp)
        if b"@kept" in text:
            text = text.replace(b"@kept", kept)
        return b"".join((front, parent, head, text, b"\n"))


_HEAD_BYTES = 60
"""As much of the rest of a line as holds its timestamp."""

_START_TIME = iso_time(START_MS).encode()


def _mixed_id(index: int) -> str:
    """An id for each index, none twice."""
    return f"{index * 2_654_435_761 % 2**32:08x}"


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


def write_branched_session(path: Path, entries: int, branches: int, cwd: Path) -> None:
    """A session of that many entries whose leaf went back to an earlier prompt ``branches`` times.

    The kinds of entries are those of ``write_session``. Branches leave from anywhere, also from each other.
    """
    header = SessionHeader("00000000-0000-7000-8000-000000000004", "2025-06-15T15:06:40.000Z", str(cwd))
    every = entries // (branches + 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb", buffering=4 * 1024 * 1024) as file:
        file.write(dump_json(encode_header(header)) + b"\n")
        for index in range(entries):
            before = index - 1
            if index and index % every == 0 and index // every <= branches:
                # An answer before a prompt: the last one of four entries.
                before = index * 2_654_435_761 % 2**32 % index // 4 * 4 - 1
            made = _part(index, is_last=index == entries - 1)
            parent = _mixed_id(before) if before >= 0 else None
            file.write(dump_line(entry(made, _mixed_id(index), parent, START_MS + 1000 * index)) + b"\n")
