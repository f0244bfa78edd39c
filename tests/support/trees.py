"""Trees of entries in memory, and what a tree model draws of them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from musepi_tui.base.errors import EntryNotFoundError
from musepi_tui.session.codec import dump_json, dump_line, encode_header
from musepi_tui.session.entries import Entry, EntryHead, MessageEntry, SessionHeader, StateEntry
from musepi_tui.session.message_codec import encode_message
from musepi_tui.session.tree import LEAF_MARK, SessionTree
from musepi_tui.storage.loading import LoadedSession, load_session
from musepi_tui.tui.tree.model import FilterMode, TreeModel
from tests.support.builders import START_MS, Part, entry


class Planted:
    """Entries, their tree, and a way to read them. ``unreadable`` ids raise as damaged ones do."""

    def __init__(self, entries: tuple[Entry, ...], leaf_id: str | None = "") -> None:
        self.entries = {made.id: made for made in entries}
        self.tree = SessionTree.from_heads(map(head_of, entries), leaf_id)
        self.unreadable: set[str] = set()

    def read(self, entry_id: str) -> Entry:
        """The entry with that id."""
        if entry_id in self.unreadable:
            raise EntryNotFoundError(f"Entry {entry_id} not found")
        return self.entries[entry_id]

    def model(self, mode: FilterMode = FilterMode.DEFAULT, *, active_first: bool = True) -> TreeModel:
        """The model with everything read."""
        made = TreeModel(self.tree, self.read, mode=mode, active_first=active_first)
        finish(made)
        return made

    def append(self, part: Part, entry_id: str, parent_id: str | None) -> None:
        """One more entry, which becomes the leaf."""
        made = entry(part, entry_id, parent_id, START_MS + 1000 * len(self.entries))
        self.entries[entry_id] = made
        self.tree = self.tree.with_entry(head_of(made))


def plant(parts: Mapping[str, tuple[str | None, Part]], leaf_id: str | None = "") -> Planted:
    """Entries a second apart from ids, parents and parts; the leaf is the last one unless told else."""
    made = (
        entry(part, entry_id, parent_id, START_MS + 1000 * index)
        for index, (entry_id, (parent_id, part)) in enumerate(parts.items())
    )
    return Planted(tuple(made), leaf_id)


def head_of(made: Entry) -> EntryHead:
    """The head as the file scan makes it, role included."""
    role = None
    if isinstance(made, MessageEntry):
        role = encode_message(made.message)["role"]
    elif isinstance(made, StateEntry) and made.fields.get("customType") == LEAF_MARK:
        role = LEAF_MARK
    return EntryHead(made.id, made.parent_id, made.type, made.timestamp, role=role)


@contextmanager
def stored(folder: Path, entries: tuple[Entry, ...]) -> Iterator[LoadedSession]:
    """The entries in a session file, loaded."""
    header = SessionHeader("00000000-0000-7000-8000-000000000009", "2025-06-15T15:06:40.000Z", "/project")
    file = folder / "session.jsonl"
    lines = [dump_json(encode_header(header)), *map(dump_line, entries)]
    file.write_bytes(b"\n".join(lines) + b"\n")
    loaded = load_session(file)
    try:
        yield loaded
    finally:
        loaded.bodies.close()


def reader_of(loaded: LoadedSession) -> Callable[[str], Entry]:
    """Reads the entries of a loaded session."""
    return lambda entry_id: loaded.bodies.get(loaded.tree.head(entry_id))


def finish(model: TreeModel) -> None:
    """Do all pending work."""
    while model.work(1000):
        pass


def ids_of(model: TreeModel) -> list[str]:
    """The ids of all rows."""
    return [model.row(index).entry_id for index in range(len(model))]


def drawn(model: TreeModel) -> list[str]:
    """The rows as the screen has them: cursor, tree, path mark, label, id, leaf mark."""
    return [_line(model, index) for index in range(len(model))]


def _line(model: TreeModel, index: int) -> str:
    row = model.row(index)
    parts = (
        "> " if index == model.index else "  ",
        row.prefix,
        "• " if row.on_path else "",
        f"[{row.label.text}] " if row.label else "",
        row.entry_id,
        " ← here" if row.is_leaf else "",
    )
    return "".join(parts)
