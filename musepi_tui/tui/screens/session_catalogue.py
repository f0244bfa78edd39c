"""The sessions that were listed so far, and those of them a search finds (TUI-4.80, 4.82). Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from musepi_tui.tui.screens.panel import Item
from musepi_tui.tui.screens.search import EXPRESSION, INSIDE, Narrowing, Search, Texts, fitting, texts_of
from musepi_tui.tui.screens.session_preview import Family
from musepi_tui.tui.screens.session_rows import (
    DAMAGED,
    Facts,
    SessionRow,
    describe_damaged,
    details_of,
    facts_besides,
    item_of,
    row_of,
    sort_key,
)

if TYPE_CHECKING:
    from musepi_tui.storage.listing import Batch, DamagedFile, SessionInfo

UNREADABLE = "files that are no sessions"


class Catalogue:
    """Sessions and damaged files by path. ``facts`` is what their rows depend on; ``named_only`` leaves out
    the sessions nobody gave a name."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._named_only = False
        self._rows: dict[str, SessionRow] = {}
        self._damaged: dict[str, DamagedFile] = {}
        self._searched: Narrowing[SessionRow] | None = None

    def __len__(self) -> int:
        """How many sessions there are."""
        return len(self._rows)

    @property
    def named_only(self) -> bool:
        """Whether sessions nobody gave a name are left out."""
        return self._named_only

    @named_only.setter
    def named_only(self, is_wanted: bool) -> None:
        self._named_only, self._searched = is_wanted, None

    @property
    def paths(self) -> Collection[str]:
        """The files of the sessions."""
        return self._rows.keys()

    def info_of(self, path: str) -> "SessionInfo | None":
        """What is known of a session."""
        row = self._rows.get(path)
        return None if row is None else row.info

    def damage_of(self, key: str) -> "DamagedFile | None":
        """The file behind the row of one that is no session."""
        return self._damaged.get(key)

    # -- what changes it

    def restart(self, facts: Facts) -> None:
        """Begins anew, with nothing."""
        self.facts = facts
        self._rows, self._damaged, self._searched = {}, {}, None

    def tell(self, facts: Facts) -> None:
        """The same sessions, told otherwise."""
        self.facts = facts
        self._rows = {path: replace(row, item=item_of(row.info, facts)) for path, row in self._rows.items()}
        self._searched = None

    def take(self, batch: "Batch") -> None:
        """Adds a part of the list."""
        self._rows.update((str(info.path), self._row(info)) for info in batch.rows)
        self._searched = None if batch.rows else self._searched
        self._damaged.update((f"{DAMAGED}{file.path}", file) for file in batch.damaged)

    def settle(self, infos: Iterable["SessionInfo"]) -> None:
        """These are all sessions, in their order."""
        self._rows = {str(info.path): self._row(info) for info in infos}
        self._searched = None

    def forget(self, path: str) -> bool:
        """A session is gone. Whether it was there."""
        self._searched = None
        return self._rows.pop(path, None) is not None

    def rename(self, path: str, name: str | None) -> None:
        """A session is called something else now."""
        row = self._rows.get(path)
        if row is not None:
            self._searched = None
            title = name or row.info.first_message
            self._rows[path] = row_of(replace(row.info, title=title, is_named=bool(title)), self.facts)

    def _row(self, info: "SessionInfo") -> SessionRow:
        known = self._rows.get(str(info.path))
        return known if known is not None and known.info is info else row_of(info, self.facts)

    # -- what is asked of it

    def details(self, item: Item) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """What the row of a session says, and what is known of the session besides."""
        info = self.info_of(item.key or "")
        if info is None:
            return {}, {}
        return details_of(info, self.facts), {} if self.facts.paths else facts_besides(info, self.facts)

    def family_of(self, info: "SessionInfo") -> Family:
        """The sessions a session was copied or handed on from and to."""
        names = (info.id, str(info.path))
        rows = [row.info for row in self._rows.values()]
        parents = [row.title for row in rows if info.parent in (row.id, str(row.path))]
        children = tuple(row.title for row in rows if row.parent in names)
        return Family(parents[0] if info.parent and parents else "", children)

    def find(self, query: str, inside: Collection[str]) -> list[Item]:
        """What a search finds, in the order of ``facts``; damaged files come last.

        ``inside`` are the files in which the text of a search through everything was found. Raises
        ``ValueError`` with a sentence for a regular expression that cannot be used.
        """
        items = [row.item for row in self._found(query, inside)]
        if query.startswith((INSIDE, EXPRESSION)):
            return items
        damaged = [describe_damaged(file) for file in self._damaged.values()]
        damaged = [item for item in damaged if not query or _fits(query, item)]
        return [*items, Item(None, UNREADABLE), *damaged] if damaged else items

    def _in_order(self) -> Narrowing[SessionRow]:
        """The rows in their order, as long as none of them changes."""
        if self._searched is None:
            rows = [row for row in self._rows.values() if not self._named_only or row.has_own_name]
            rows.sort(key=sort_key(self.facts.order), reverse=True)
            self._searched = Narrowing(rows, _texts_of_row)
        return self._searched

    def _found(self, query: str, inside: Collection[str]) -> Sequence[SessionRow]:
        searched = self._in_order()
        rows = searched.rows
        if not query:
            return rows
        if query.startswith(INSIDE):
            return [row for row in rows if str(row.info.path) in inside]
        if query.startswith(EXPRESSION):
            return fitting(query.removeprefix(EXPRESSION), rows, _texts_of_row)
        return searched.find_best(query) if self.facts.order == "best" else searched.find(query)


def _texts_of_row(row: SessionRow) -> Texts:
    return row.texts


def _fits(query: str, item: Item) -> bool:
    return Search(query).hit(texts_of(item.label, item.detail, "", "")) is not None
