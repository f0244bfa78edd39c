"""The live messages of a session: what the model is sent, kept up to date entry by entry."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from musepi_tui.context.usage import fresh_index
from musepi_tui.runtime.cooling import context_heads
from musepi_tui.session.entries import Entry
from musepi_tui.session.messages import (
    BashExecution,
    Content,
    CustomMessage,
    DeveloperMessage,
    Message,
    ToolResultMessage,
    UserMessage,
)
from musepi_tui.session.rebuild import SessionContext, build_session_context, message_of, with_content
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies

_Editable = ToolResultMessage | UserMessage | DeveloperMessage | CustomMessage | BashExecution
"""Messages whose content can be replaced without touching any other: they hold no tool calls."""


@dataclass(frozen=True, slots=True)
class LiveState:
    """A rebuilt context. ``fresh_from`` is the index of the first message after the compaction; 0 without
    one."""

    context: SessionContext
    fresh_from: int = 0


def live_state(tree: SessionTree, context: SessionContext) -> LiveState:
    """The state for a context that was built from the path of a tree. What lies before the compaction costs
    nothing."""
    if context.compaction_id is None:
        return LiveState(context)
    newer = ids_behind(tree, context.compaction_id)
    return LiveState(context, fresh_index(context.entry_ids, newer))


def ids_behind(tree: SessionTree, ancestor_id: str | None) -> tuple[str, ...]:
    """The entries of the path behind an ancestor of the leaf, oldest first; all of them for None."""
    found: list[str] = []
    entry_id = tree.leaf_id
    while entry_id is not None and entry_id != ancestor_id:
        found.append(entry_id)
        entry_id = tree.parent(entry_id)
    return tuple(reversed(found))


def read_live(tree: SessionTree, bodies: Bodies) -> LiveState:
    """The context of the path to the leaf, read from where its entries are. Blocks."""
    path = bodies.read_all(context_heads(tree, bodies))
    return live_state(tree, build_session_context(path))


class LiveMessages:
    """The context now. ``messages`` and ``entry_ids`` are parallel."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.entry_ids: list[str] = []
        self.compaction_id: str | None = None
        self.fresh_from = 0

    def take(self, state: LiveState) -> None:
        """Starts over from a rebuilt context."""
        self.messages = list(state.context.messages)
        self.entry_ids = list(state.context.entry_ids)
        self.compaction_id = state.context.compaction_id
        self.fresh_from = state.fresh_from

    def extend(self, entry: Entry) -> None:
        """Adds what a rebuild would add for an entry that came last."""
        message = message_of(entry)
        if message is not None:
            self.messages.append(message)
            self.entry_ids.append(entry.id)

    def hide(self, entry_ids: Collection[str]) -> None:
        """Takes messages out."""
        kept = [pair for pair in zip(self.entry_ids, self.messages, strict=True) if pair[0] not in entry_ids]
        self.entry_ids = [pair[0] for pair in kept]
        self.messages = [pair[1] for pair in kept]

    def places_of(self, entry_ids: Collection[str]) -> dict[str, int]:
        """Where the newest message of each entry is; entries without one are left out."""
        missing = set(entry_ids)
        places: dict[str, int] = {}
        # From the end: what is looked for is recent, and a whole session may be live.
        for index in range(len(self.entry_ids) - 1, -1, -1):
            if not missing:
                break
            if self.entry_ids[index] in missing:
                places[self.entry_ids[index]] = index
                missing.remove(self.entry_ids[index])
        return places

    def edit(self, replacements: Mapping[str, Content | None], pruned_at_ms: int) -> bool:
        """Replaces the content of some entries as a rebuild would; whether that could be done here.

        It cannot when a message goes or an answer changes, because others may depend on its tool calls, or
        when an entry is not among the live messages; then nothing changes.
        """
        places = self.places_of(replacements)
        edited: dict[int, Message] = {}
        for entry_id, content in replacements.items():
            place = places.get(entry_id)
            message = None if place is None else self.messages[place]
            if place is None or content is None or not isinstance(message, _Editable):
                return False
            edited[place] = with_content(message, content, pruned_at_ms)
        for place, message in edited.items():
            self.messages[place] = message
        return True
