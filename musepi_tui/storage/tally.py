"""How many messages, compactions and branches a session file holds, from the heads of its lines (tui 4.5)."""

import os
import re
from dataclasses import dataclass, field

from musepi_tui.storage.index import HEAD, HEAD_BYTES

STEP_BYTES = 1024 * 1024
"""How much is counted at once: two milliseconds or so in which nothing else can run."""

MAX_COUNTED_BYTES = 1024 * 1024 * 1024
"""Bigger files are not counted: a list of sessions need not keep a disk busy for minutes."""

MAX_LEAVES = 2_000
"""A file with more branches than this has no number of them: their ids are kept to go on counting."""

HANDOFF_MARK = b',"customType":"handoff"'
"""What follows the head of a handoff document. It counts as a message: the model is sent it as one, and a
session that begins with it is not empty."""

_START = b'\n{"type":"'
"""What every line that is counted begins with."""


@dataclass(slots=True)
class Tally:
    """What was counted so far; ``leaves`` are the entries nothing hangs under.

    A mark that remembers a move (session-format 5) counts as the entry it stands for, so that looking at
    another branch makes no branch.
    """

    messages: int = 0
    compactions: int = 0
    leaves: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, kind: str, entry_id: str, parent_id: str | None, *, is_mark: bool = False) -> None:
        """One more entry, in file order."""
        if kind == "message":
            self.messages += 1
        elif kind == "compaction":
            self.compactions += 1
        was_leaf = parent_id in self.leaves
        if parent_id is not None and was_leaf:
            del self.leaves[parent_id]
        if was_leaf or not is_mark:
            self.leaves[entry_id] = None

    def add_match(self, match: "re.Match[bytes]") -> None:
        """The entry whose head was matched by ``HEAD``."""
        kind, entry_id, parent_id = match[1].decode(), match[2].decode(), match[3]
        parent = None if parent_id is None else parent_id.decode()
        self.add("message" if is_handoff(match) else kind, entry_id, parent, is_mark=match[6] is not None)

    @property
    def branches(self) -> int | None:
        """Ways from the root to a leaf; None when there are too many."""
        return len(self.leaves) if len(self.leaves) <= MAX_LEAVES else None


def is_handoff(match: "re.Match[bytes]") -> bool:
    """Whether the entry whose head was matched by ``HEAD`` is a handoff document."""
    return match[1] == b"custom_message" and match.string.startswith(HANDOFF_MARK, match.end())


def count_lines(
    descriptor: int, start: int, end: int, known: Tally | None = None, *, step_bytes: int = STEP_BYTES
) -> Tally | None:
    """The tally of the lines between two bytes of an open file, on top of ``known``.

    ``start`` is the first byte of a line. None when a line has another form than every writer of the family
    gives it, or the range is too long. ``step_bytes`` is at least twice ``HEAD_BYTES``. Raises ``OSError``.
    """
    if start < 1 or end - start > MAX_COUNTED_BYTES:
        return None
    tally = Tally() if known is None else known
    if end <= start:
        return tally
    lines = found = 0
    carry, position = b"", start - 1
    while position < end:
        data = os.pread(descriptor, min(step_bytes, end - position), position)
        if not data:
            break
        position += len(data)
        lines += data.count(b"\n")
        data = carry + data
        last = data.rfind(b"\n")
        is_cut = position < end and len(data) - last <= HEAD_BYTES
        found += _take_lines(tally, data, last + 1 if is_cut and last >= 0 else len(data))
        carry = data[last:] if is_cut and last >= 0 else b""
    ends_with_lf = os.pread(descriptor, 1, end - 1) == b"\n"
    return tally if found == lines - ends_with_lf else None


def _take_lines(tally: Tally, data: bytes, end: int) -> int:
    """Adds the lines that begin before ``end``; how many."""
    found = 0
    # Not one expression over all of it: plain bytes are found faster than its beginning.
    at = data.find(_START, 0, end)
    while at >= 0:
        match = HEAD.match(data, at + 1)
        if match is not None:
            found += 1
            tally.add_match(match)
        at = data.find(_START, at + 1, end)
    return found
