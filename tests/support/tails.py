"""Live tails for pruning: ``read("a.py", 1200)`` is a call and its result of that many tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from musepi_tui.context.edits import Edit, Edits
from musepi_tui.context.estimate import Estimator
from musepi_tui.session.entries import Entry
from musepi_tui.session.messages import Message, ToolResultMessage
from tests.support.builders import START_MS, Part, a, call, edit, path, stub_count, t

ESTIMATE = Estimator(stub_count)
_IDS = count(1)


def answered(
    tool: str, size: int | str, /, *, error: bool = False, useless: bool = False, **arguments: object
) -> list[Part]:
    """An answer that makes one call, and its result."""
    call_id = f"c{next(_IDS)}"
    result = t(size, call_id, tool, error=error, useless=useless)
    return [a("", [call(tool, call_id, **arguments)]), result]


def read(name: str, size: int | str, **fields: bool) -> list[Part]:
    """A ``read`` of that path and its result."""
    return answered("read", size, path=name, **fields)


def flat(*groups: Part | Sequence[Part]) -> tuple[Entry, ...]:
    """The path of all these, in order."""
    return path(*_parts(groups))


def with_edits(
    entries: Sequence[Entry], edits: Edits | Sequence[Edit], pruned_at_ms: int = START_MS
) -> tuple[Entry, ...]:
    """The path with the edits stored behind it, as a session stores them."""
    changes = edits.changes if isinstance(edits, Edits) else edits
    stored = [
        replace(
            edit(one.target_id),
            replacement=one.replacement,
            reason=one.reason.value,
            pruned_at_ms=pruned_at_ms,
        )
        for one in changes
    ]
    start = len(entries)
    added = path(*stored, ids=[f"x{start + index}" for index in range(len(stored))])
    return (*entries, *added)


def results_of(messages: Sequence[Message]) -> list[ToolResultMessage]:
    """The tool results among the messages."""
    return [message for message in messages if isinstance(message, ToolResultMessage)]


def _parts(groups: Sequence[Part | Sequence[Part]]) -> Iterator[Part]:
    for group in groups:
        if isinstance(group, list | tuple):
            yield from group
        else:
            yield group
