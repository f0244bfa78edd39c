"""The ends of stored sessions, read in a thread and kept while the list is open."""

import asyncio
from collections import OrderedDict

from musepi_tui.base.errors import SessionError
from musepi_tui.storage.foreign import needs_import
from musepi_tui.storage.glance import SessionInfo
from musepi_tui.storage.tail import open_tail
from musepi_tui.tui.screens.session_preview import LAST_ENTRIES, Preview

KEPT = 32
"""Ends that are kept: a person goes up and down among the same few sessions."""

RESTING_S = 0.08
"""How long a row stays marked before its file is read: keys that are held down read nothing."""

FOREIGN = "its messages are shown once a copy of it is opened"


class Previews:
    """Previews by file and size: a session that goes on elsewhere is read again."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], Preview] = OrderedDict()

    def find(self, info: SessionInfo) -> Preview | None:
        """The preview of a session when it was read."""
        return self._kept.get(_key(info))

    async def read(self, info: SessionInfo) -> None:
        """Reads the end of a session, unless it is not wanted any more in a moment."""
        await asyncio.sleep(RESTING_S)
        self._kept[_key(info)] = await asyncio.to_thread(_read, info)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)


def _read(info: SessionInfo) -> Preview:
    if needs_import(info):
        return Preview(info, problem=FOREIGN)
    try:
        return Preview(info, open_tail(info.path, LAST_ENTRIES).entries)
    except SessionError as error:
        return Preview(info, problem=str(error))


def _key(info: SessionInfo) -> tuple[str, int]:
    return str(info.path), info.size
