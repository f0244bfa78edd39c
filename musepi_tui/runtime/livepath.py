"""The part of the path that maintenance works on, read once and then kept up to date."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from musepi_tui.runtime.live import LiveMessages
from musepi_tui.runtime.threads import Checkpoint
from musepi_tui.session.entries import CompactionEntry, Entry, EntryHead, MessageEntry
from musepi_tui.session.fields import as_object
from musepi_tui.session.messages import Message
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies


class LivePath:
    """Gives the entries of the live part of a path, again and again.

    Of a resumed session they lie in the file. What was read stays here, with the very message objects of the
    context: every turn asks for them, their tokens are remembered by identity, and a second copy of a large
    context would take as much memory again.
    """

    def __init__(self) -> None:
        self._known: dict[str, Entry] = {}
        self._last: dict[str, Entry] = {}

    def forget_messages(self) -> None:
        """The context was rebuilt. Compactions stay as they are."""
        self._known = {key: each for key, each in self._known.items() if isinstance(each, CompactionEntry)}
        self._last = {}

    def forget(self, entry_ids: Iterable[str]) -> None:
        """The lines of these entries were written anew."""
        self._known = {key: each for key, each in self._known.items() if key not in frozenset(entry_ids)}
        self._last = {}

    def read(
        self, tree: SessionTree, bodies: Bodies, live: LiveMessages, check: Checkpoint
    ) -> tuple[Entry, ...]:
        """The live entries, oldest first. Blocks.

        Walks from the leaf to where the walk before began: what lies before the context costs nothing, and
        in most turns the context little.
        """
        shown = dict(zip(live.entry_ids, live.messages, strict=True))
        missing = set(shown) if live.compaction_id is None else {*shown, live.compaction_id}
        before, last_id = self._last, next(reversed(self._last), None)
        found: list[Entry] = []
        entry_id = tree.leaf_id
        while entry_id is not None and missing:
            if entry_id == last_id and missing <= before.keys():
                break
            check()
            found.append(self._get(tree.head(entry_id), bodies, shown))
            missing.discard(entry_id)
            entry_id = tree.parent(entry_id)
        else:
            before = {}
        self._last = {**before, **{entry.id: entry for entry in reversed(found)}}
        return tuple(self._last.values())

    def read_earlier_lists(
        self, live: Sequence[Entry], tree: SessionTree, bodies: Bodies, check: Checkpoint
    ) -> tuple[Entry, ...]:
        """The compactions before ``live`` that hold the file lists its newest one builds on, oldest first."""
        known = {entry.id for entry in live}
        chain: list[Entry] = []
        entry = next((each for each in reversed(live) if isinstance(each, CompactionEntry)), None)
        while isinstance(entry, CompactionEntry):
            check()
            base_id = (as_object(entry.details) or {}).get("base")
            if not isinstance(base_id, str) or base_id not in tree:
                break
            earlier = self._get(tree.head(base_id), bodies, {})
            if base_id not in known:
                chain.append(earlier)
            elif earlier in chain:
                break  # a ring, in a damaged file
            known.add(base_id)
            entry = earlier
        return tuple(reversed(chain))

    def _get(self, head: EntryHead, bodies: Bodies, shown: Mapping[str, Message]) -> Entry:
        known = self._known.get(head.id)
        if known is not None:
            return known
        entry = bodies.get(head)
        if not bodies.is_hot(head.id):
            entry = self._known[head.id] = _slim(entry, shown.get(head.id))
        return entry


def _slim(entry: Entry, shown: Message | None) -> Entry:
    """The entry without the parsed line it came from, and with the message object that is shown already."""
    if isinstance(entry, MessageEntry) and shown == entry.message and shown is not None:
        return replace(entry, message=shown, raw=None)
    return replace(entry, raw=None)
