"""Tells people what maintenance has to say."""

from collections.abc import Sequence

from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.runtime.bus import EventBus
from musepi_tui.runtime.events import Notice


class Notifier:
    """Puts notices of maintenance on the bus; those that are shown once in a session, once."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._told: set[str] = set()

    def tell(self, text: NoticeText) -> None:
        """Shows one."""
        if text.once is not None:
            if text.once in self._told:
                return
            self._told.add(text.once)
        self._bus.emit(Notice(text.level, text.text, "compaction"))

    def tell_all(self, texts: Sequence[NoticeText]) -> None:
        """Shows several, in order."""
        for text in texts:
            self.tell(text)
