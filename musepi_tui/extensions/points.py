"""The hooks: what each hands to an extension and what it takes back (compaction 11).

Names and payloads are stable (contract 6). A handler answers with None, with the result class of its hook, or
with a mapping of the same names.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Any, ClassVar

from musepi_tui.session.entries import BranchSummaryEntry, CompactionEntry, Entry
from musepi_tui.session.messages import Message


class Hook(StrEnum):
    """The name a handler is registered under."""

    BEFORE_COMPACT = "session_before_compact"
    COMPACTING = "session_compacting"
    COMPACT = "session_compact"
    BEFORE_TREE = "session_before_tree"
    TREE = "session_tree"
    BEFORE_SWITCH = "session_before_switch"
    SWITCH = "session_switch"


ALIASES: Mapping[str, Hook] = {"session.compacting": Hook.COMPACTING}
"""Other spellings that are accepted when registering (compaction C14)."""

LIMITS_S: Mapping[Hook, float] = {
    Hook.BEFORE_COMPACT: 180.0,
    Hook.COMPACTING: 180.0,
    Hook.BEFORE_TREE: 180.0,
}
"""Seconds a handler may take: these hooks may ask a model (tui 10.5). All others have ``USUAL_LIMIT_S``."""

USUAL_LIMIT_S = 5.0

_STRICT = {"extra": "forbid"}
"""For pydantic: a name no result has is a mistake worth telling."""


class CancelSignal:
    """Tells a handler that its work is no longer wanted. Coroutines are cancelled as well."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def aborted(self) -> bool:
        """Whether it was cancelled. May be read in any thread."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Returns once it was cancelled."""
        await self._event.wait()

    def abort(self) -> None:
        """Called by musepi: the person pressed esc, or the program ends."""
        self._event.set()


@dataclass(frozen=True, slots=True)
class CompactionPreparation:
    """What a compaction will do.

    ``messages`` are summarised; with ``is_split_turn`` so are ``turn_prefix``, the beginning of the turn the
    cut goes through. ``kept`` stay in the context. All are in order; tokens are estimates, ``tokens_before``
    is what the provider counted last.
    """

    first_kept_entry_id: str
    tokens_before: int
    messages: tuple[Message, ...]
    turn_prefix: tuple[Message, ...]
    kept: tuple[Message, ...]
    previous_summary: str | None
    is_split_turn: bool
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BeforeCompact:
    """``session_before_compact``: a compaction is prepared, nothing is changed yet.

    ``custom_instructions`` is the focus of a manual one; ``reason`` is ``manual``, ``threshold``,
    ``overflow``, ``incomplete`` or ``idle``.
    """

    preparation: CompactionPreparation
    branch_entries: tuple[Entry, ...]
    custom_instructions: str | None
    signal: CancelSignal
    reason: str


@dataclass(frozen=True, slots=True)
class Compacting:
    """``session_compacting``: a model is about to be asked for the summary of ``messages``."""

    session_id: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Compacted:
    """``session_compact``: the compaction is stored. ``from_extension``: an extension wrote its summary."""

    compaction_entry: CompactionEntry
    from_extension: bool


@dataclass(frozen=True, slots=True)
class TreePreparation:
    """What a move within a session leaves behind.

    ``entries_to_summarize`` are those of the branch that is left, behind the ``common_ancestor_id`` of both
    places, oldest first. ``user_wants_summary``: a summary of them is to be stored.
    """

    target_id: str
    old_leaf_id: str | None
    common_ancestor_id: str | None
    entries_to_summarize: tuple[Entry, ...]
    user_wants_summary: bool


@dataclass(frozen=True, slots=True)
class BeforeTree:
    """``session_before_tree``: the person wants to go on from another entry, nothing is changed yet."""

    preparation: TreePreparation
    signal: CancelSignal


@dataclass(frozen=True, slots=True)
class TreeMoved:
    """``session_tree``: the session goes on from another entry.

    ``summary_entry`` is the branch summary stored on the way, None without one; ``from_extension`` says who
    wrote it, None without one.
    """

    new_leaf_id: str | None
    old_leaf_id: str | None
    summary_entry: BranchSummaryEntry | None
    from_extension: bool | None


@dataclass(frozen=True, slots=True)
class BeforeSwitch:
    """``session_before_switch``: another session is about to take the place of this one.

    ``reason`` is ``new``, ``resume``, ``fork``, ``clone``, ``branch``, ``import`` or ``handoff``;
    ``target_file`` None for a session that has no file yet.
    """

    reason: str
    target_file: str | None


@dataclass(frozen=True, slots=True)
class Switched:
    """``session_switch``: another session is open now."""

    reason: str
    previous_file: str | None
    file: str | None


Payload = BeforeCompact | Compacting | Compacted | BeforeTree | TreeMoved | BeforeSwitch | Switched


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """A finished compaction, given back instead of the one a model would write.

    ``first_kept_entry_id`` is that of the preparation, another valid cut point of its window, or
    ``KEEP_NOTHING``.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    summary: str
    first_kept_entry_id: str
    tokens_before: int
    short_summary: str | None = None
    details: Any = None
    preserve_data: dict[str, Any] | None = None
    summary_stages: int | None = None


@dataclass(frozen=True, slots=True)
class BeforeCompactResult:
    """Answer to ``session_before_compact``: stop the compaction, or supply it."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    cancel: bool = False
    compaction: CompactionResult | None = None


@dataclass(frozen=True, slots=True)
class CompactingResult:
    """Answer to ``session_compacting``: another instruction for the model, lines of context for it, and data
    to store with the compaction."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    prompt: str | None = None
    context: Sequence[str] = ()
    preserve_data: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class BranchSummaryResult:
    """A finished summary of a branch, given back instead of the one a model would write. ``details`` are
    stored as they are."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    summary: str
    details: Any = None


@dataclass(frozen=True, slots=True)
class BeforeTreeResult:
    """Answer to ``session_before_tree``: stop the move, or supply the summary; one nobody asked for is not
    used."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    cancel: bool = False
    summary: BranchSummaryResult | None = None


@dataclass(frozen=True, slots=True)
class CancelResult:
    """Answer to ``session_before_switch``: stop the switch."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    cancel: bool = False


Result = BeforeCompactResult | CompactingResult | BeforeTreeResult | CancelResult

_RESULTS: Mapping[Hook, type[Result]] = {
    Hook.BEFORE_COMPACT: BeforeCompactResult,
    Hook.COMPACTING: CompactingResult,
    Hook.BEFORE_TREE: BeforeTreeResult,
    Hook.BEFORE_SWITCH: CancelResult,
}


def read_result(hook: Hook, value: object) -> Result | None:
    """What a handler gave back, checked; None for nothing, and for hooks whose answer is ignored.

    Raises ``ValueError`` naming what is wrong and what is accepted (SAF-123).
    """
    wanted = _RESULTS.get(hook)
    if value is None or wanted is None:
        return None
    from pydantic import TypeAdapter, ValidationError  # deferred: only where an extension answers

    try:
        return TypeAdapter(wanted).validate_python(_plain(value))
    except ValidationError as error:
        found = "; ".join(f"{_place(each['loc'])}: {each['msg']}" for each in error.errors())
        raise ValueError(f"the answer is no {wanted.__name__}: {found}") from None


def _plain(value: object) -> object:
    """Dataclasses as dictionaries, one level at a time, so that all of it is checked anew."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return value


def _place(place: tuple[int | str, ...]) -> str:
    return ".".join(map(str, place)) or "it"
