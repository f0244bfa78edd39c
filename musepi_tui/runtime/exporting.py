"""Exporting the open session, in a thread, while it goes on (TUI-4.17)."""

import asyncio
import re
from functools import partial
from pathlib import Path

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import MusepiError
from musepi_tui.base.known_secrets import KnownSecrets
from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.runtime.events import Notice
from musepi_tui.runtime.history import History
from musepi_tui.runtime.intents import ExportSession
from musepi_tui.runtime.settling import Settle
from musepi_tui.session.entries import SessionHeader
from musepi_tui.storage.exporters.export import Exported, ExportOptions, export_session
from musepi_tui.storage.exporters.items import ExportSource
from musepi_tui.storage.exporters.totals import title_of
from musepi_tui.storage.paths import expand_home

EMPTY = "There is nothing to export yet."

_TITLE_CHARS = 40
_NAMES_TRIED = 1000
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_OTHER_CHARS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class OpenSessionExport:
    """Exports of one open session. ``folder`` is what relative paths start from."""

    history: History
    registry: ModelRegistry
    folder: Path

    async def run(self, intent: ExportSession, settle: Settle) -> Notice | None:
        """Settles with ``data["path"]`` once the file is synced; the notice says where it is."""
        history = self.history
        if history.is_empty:
            settle(EMPTY)
            return None
        path = history.saver.path
        file = path if path is not None and path.is_file() else None
        source = ExportSource(history.header, history.name, history.tree, history.bodies, file)
        try:
            exported = await asyncio.to_thread(partial(self._write, source, intent))
        except MusepiError as error:
            settle(str(error))
            return None
        settle(None, {"path": str(exported.path), "warnings": list(exported.warnings)})
        text = " ".join([f"Exported to {exported.path}.", *exported.warnings])
        return Notice("warning" if exported.warnings else "info", text, "export")

    def _write(self, source: ExportSource, intent: ExportSession) -> Exported:
        """Blocks."""
        target = self._target(source, intent)
        secrets: KnownSecrets | None = None if intent.raw else self.registry.known_secrets()
        options = ExportOptions(secrets, force=intent.force, inline=intent.inline)
        return export_session(source, target, options)

    def _target(self, source: ExportSource, intent: ExportSession) -> Path:
        if intent.path:
            return self.folder / expand_home(intent.path)
        stem = default_stem(source.header, title_of(source))
        names = (
            f"{stem}.html" if number == 1 else f"{stem}-{number}.html" for number in range(1, _NAMES_TRIED)
        )
        return next(
            (self.folder / name for name in names if not (self.folder / name).exists()), self.folder / stem
        )


def default_stem(header: SessionHeader, title: str) -> str:
    """A file name without ending for a session: its day, and its title or the end of its id.

    What comes from the file passes a strict pattern, so it never leads to another folder (SAF-142).
    """
    day = header.timestamp[:10] if _DAY.fullmatch(header.timestamp[:10]) else ""
    words = _slug(title)[:_TITLE_CHARS].strip("-") or _slug(header.id)[-8:].strip("-")
    return "-".join(part for part in ("musepi", day, words) if part)


def _slug(text: str) -> str:
    return _OTHER_CHARS.sub("-", text.lower()).strip("-")
