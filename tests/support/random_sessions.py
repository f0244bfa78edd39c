"""Random sessions as the product writes them, and random damage to the bytes of a file (hypothesis).

``trees`` gives lists of entries in file order: several roots and branches, calls with and without results,
compactions that keep something or nothing, labels, edits, types nobody knows. Ids are unique and parents come
before their children, as in every file that only sound programs wrote.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hypothesis import strategies as st

from musepi_tui.session.entries import KEEP_NOTHING, Entry, MessageEntry, SessionHeader
from musepi_tui.session.messages import AssistantMessage, ToolResultMessage, Usage, tool_calls_of
from tests.support.builders import (
    START_MS,
    Part,
    a,
    branch_summary,
    call,
    compaction,
    custom,
    edit,
    entry,
    state,
    t,
    u,
)

HEADER = SessionHeader("0198c0de-0000-7000-8000-000000000001", "2026-01-01T00:00:00.000Z", "/home/ada/tally")

T = TypeVar("T")

# Strategies that are made anew at every draw take longer than what is drawn.
_flags = st.booleans()
_in_eight = st.integers(0, 7)
_call_counts = st.integers(0, 3)
_tokens = st.integers(0, 10**6)
texts = st.one_of(
    st.sampled_from(
        ["hi", "two\nlines", "tab\tand \u2028 and \u0085", "Größe 路径 🧭", 'quo"ted \\ "usage":{}']
    ),
    st.text(st.characters(exclude_categories=()), max_size=40),  # lone surrogates too
)
KINDS = (
    "user",
    "answer",
    "answer",
    "result",
    "result",
    "compaction",
    "branch_summary",
    "custom",
    "edit",
    "label",
    "session_info",
    "model_change",
    "reset_boundary",
    "future_kind",
)


@dataclass
class _Growing:
    """A tree while it grows."""

    entries: list[Entry] = field(default_factory=list)
    parents: dict[str, str | None] = field(default_factory=dict)

    def add(self, part: Part, parent_id: str | None) -> None:
        made = entry(part, f"{len(self.entries) + 1:08x}", parent_id, START_MS + 1000 * len(self.entries))
        self.entries.append(made)
        self.parents[made.id] = parent_id

    def path_ids(self, leaf: str | None) -> list[str]:
        way: list[str] = []
        while leaf is not None:
            way.append(leaf)
            leaf = self.parents[leaf]
        return way

    def open_calls(self, leaf: str | None) -> list[str]:
        """Ids of calls on the path that no result on it answers."""
        on_path = set(self.path_ids(leaf))
        messages = [e.message for e in self.entries if isinstance(e, MessageEntry) and e.id in on_path]
        answered = {m.tool_call_id for m in messages if isinstance(m, ToolResultMessage)}
        made = [c.id for m in messages if isinstance(m, AssistantMessage) for c in tool_calls_of(m)]
        return [call_id for call_id in made if call_id not in answered]


@st.composite
def trees(draw: st.DrawFn, *, least: int = 1, most: int = 25) -> tuple[Entry, ...]:
    """The entries of a session in file order."""
    growing = _Growing()
    for _ in range(draw(st.integers(least, most))):
        ids = [made.id for made in growing.entries]
        parent = ids[-1] if ids else None
        if ids and draw(_in_eight) == 0:
            parent = _pick(draw, [None, *ids])
        growing.add(_part(draw, growing, parent), parent)
    return tuple(growing.entries)


def _pick(draw: st.DrawFn, options: Sequence[T]) -> T:
    return options[draw(st.integers(0, len(options) - 1))]


def _part(draw: st.DrawFn, growing: _Growing, parent: str | None) -> Part:
    kind = _pick(draw, KINDS)
    above = growing.path_ids(parent)
    if kind == "result" and (open_calls := growing.open_calls(parent)):
        return t(draw(texts), _pick(draw, open_calls), error=draw(_flags))
    if kind == "compaction":
        first = _pick(draw, [KEEP_NOTHING, *above])
        return compaction(draw(texts) or "S", first, tokens_before=draw(_tokens))
    if kind == "edit" and above:
        return edit(_pick(draw, above), _pick(draw, [None, "shorter"]))
    if kind == "label" and growing.entries:
        target = _pick(draw, growing.entries).id
        return state("label", targetId=target, label=_pick(draw, ["", "here", "Größe"]))
    if kind == "answer":
        names = [f"call-{len(growing.entries)}-{number}" for number in range(draw(_call_counts))]
        calls = [call("read", name, path=draw(texts)) for name in names]
        return a(draw(texts), calls, thinking=draw(texts), usage=Usage(1, 2, 3, 4))
    return _plain_part(draw, kind)


def _plain_part(draw: st.DrawFn, kind: str) -> Part:
    match kind:
        case "branch_summary":
            return branch_summary(draw(texts), "root")
        case "custom":
            return custom(draw(texts))
        case "session_info":
            return state("session_info", name=draw(texts))
        case "model_change":
            return state("model_change", provider="test", modelId="model", model="test/model")
        case "reset_boundary":
            return state("reset_boundary")
        case "future_kind":
            return state("future_kind", payload={"keep": [1, 2.5, None, draw(texts)]})
        case _:
            return u(draw(texts))


places = st.integers(0, 10**6)
"""Taken modulo the length of what is damaged."""

JUNK = (
    b"",
    b"null",
    b"42",
    b"[1]",
    b'{"type":"message","id":"x"',
    b"\x00" * 40,
    b'{"id":"noshape"}',
    b'{"type":"message","id":"norole","parentId":null,"timestamp":"t","message":{"content":"x"}}',
    b'{"type":"session","version":3,"id":"again","timestamp":"t","cwd":"/"}',
    b"[" * 3000,
    b'{"type":"custom","id":"deep","parentId":null,"timestamp":"t","data":' + b"[" * 300 + b"]" * 300 + b"}",
    b'{"type":"custom","id":"nan","parentId":null,"timestamp":"t","data":[NaN,Infinity,1e400,'
    + b"9" * 5000
    + b"]}",
    b'{"type":"custom","id":"\xff\xfe","parentId":null,"timestamp":"t"}',
    b'{"type":"custom","id":"\\ud800","parentId":"\\ud800","timestamp":"t"}',
    b'{"type":7,"id":["x"],"parentId":{},"timestamp":null,"message":[]}',
    b'{"type":"compaction","id":"c","parentId":null,"timestamp":"t","summary":7,"firstKeptEntryId":[],"tokensBefore":"x"}',
    b'{"type":"message","id":"m","parentId":null,"timestamp":"t","message":{"role":"assistant","content":null,"usage":"x"}}',
    b'{"type":"message","id":"r","parentId":null,"timestamp":"t","message":{"role":"toolResult","content":{"a":1}}}',
    b"\r",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
)

damages = st.one_of(
    st.tuples(st.just("cut"), places, st.integers(1, 300)),
    st.tuples(st.just("zero"), places, st.integers(1, 300)),
    st.tuples(st.just("flip"), places, st.integers(0, 255)),
    st.tuples(st.just("end"), places, st.just(0)),
    st.tuples(st.just("zero_end"), places, st.just(0)),
    st.tuples(st.just("join"), places, st.just(0)),
    st.tuples(st.just("drop"), places, st.just(0)),
    st.tuples(st.just("repeat"), places, places),
    st.tuples(st.just("swap"), places, places),
    st.tuples(st.just("junk"), places, st.integers(0, len(JUNK) - 1)),
    st.tuples(st.just("parent"), places, places),
)
"""What happens to a file: (kind, place, size or second place)."""


_PARENT = re.compile(rb'"parentId":(?:null|"[0-9a-f]*")')


def damaged(data: bytes, damage: tuple[str, int, int]) -> bytes:
    """The bytes after one damage."""
    kind, place, size = damage
    if kind in ("cut", "zero", "flip", "end", "zero_end"):
        return _damaged_bytes(data, kind, place % (len(data) + 1), size)
    lines = data.split(b"\n")
    at, other = place % len(lines), size % len(lines)
    match kind:
        case "join":
            return b"\n".join(lines[:at]) + b"\n".join(lines[at:])
        case "drop":
            del lines[at]
        case "repeat":
            lines.insert(other, lines[at])
        case "swap":
            lines[at], lines[other] = lines[other], lines[at]
        case "junk":
            lines.insert(at, JUNK[size])
        case _:  # "parent": another entry, a later one or the entry itself becomes the parent
            lines[at] = _PARENT.sub(b'"parentId":"%08x"' % (size % (len(lines) + 2)), lines[at], count=1)
    return b"\n".join(lines)


def _damaged_bytes(data: bytes, kind: str, place: int, size: int) -> bytes:
    match kind:
        case "cut":
            return data[:place] + data[place + size :]
        case "zero":
            return data[:place] + bytes(len(data[place : place + size])) + data[place + size :]
        case "flip":
            return data[:place] + bytes([size]) + data[place + 1 :] if place < len(data) else data
        case "end":
            return data[:place]
        case _:
            return data[:place] + bytes(len(data) - place)
