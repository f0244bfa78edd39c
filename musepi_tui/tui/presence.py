"""Tells the runtime that somebody is there, for the clock of idle compaction (TUI-6.6)."""

from collections.abc import Callable

from textual import events

from musepi_tui.runtime.intents import EditorChanged, Intent, Touch

TOUCH_EVERY_S = 1.0
"""At most one ``Touch`` in this time: an idle pass is at least a minute away, so no more are needed."""

SIGNS_OF_LIFE = (
    events.Key,
    events.Paste,
    events.MouseDown,
    events.MouseScrollUp,
    events.MouseScrollDown,
)


class Presence:
    """Sends ``Touch`` and ``EditorChanged``; nothing while ``enabled`` is false, when nobody counts."""

    def __init__(self, send: Callable[[Intent], object], now: Callable[[], float], *, enabled: bool) -> None:
        self._send = send
        self._now = now
        self._enabled = enabled
        self._touched_s = float("-inf")
        self._is_empty = True

    def notice(self, event: events.Event) -> None:
        """An event of the terminal."""
        if not self._enabled or not isinstance(event, SIGNS_OF_LIFE):
            return
        now_s = self._now()
        if now_s - self._touched_s >= TOUCH_EVERY_S:
            self._touched_s = now_s
            self._send(Touch())

    def edited(self, text: str) -> None:
        """The editor holds this text."""
        is_empty = not text
        if is_empty != self._is_empty:
            self._is_empty = is_empty
            if self._enabled:
                self._send(EditorChanged(empty=is_empty))

    def session_opened(self) -> None:
        """Another session is there: it takes the editor for an empty one."""
        if self._enabled and not self._is_empty:
            self._send(EditorChanged(empty=False))
