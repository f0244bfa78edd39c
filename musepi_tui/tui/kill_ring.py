"""What was cut in the editor, newest first (TUI-3.21). Pure."""

MAX_KILLS = 60


class KillRing:
    """Cut texts. Cuts in a row grow one entry; yanking can go back through older ones."""

    def __init__(self) -> None:
        self._kills: list[str] = []
        self._index = 0
        self._growing = False

    def push(self, text: str, *, before: bool) -> None:
        """Takes a cut text in; right after another cut it joins that one, at its start when ``before``."""
        if not text:
            return
        if self._growing and self._kills:
            self._kills[0] = text + self._kills[0] if before else self._kills[0] + text
        else:
            self._kills.insert(0, text)
            del self._kills[MAX_KILLS:]
        self._index = 0
        self._growing = True

    def interrupt(self) -> None:
        """The next cut begins a new entry: something else was done in between."""
        self._growing = False

    def newest(self) -> str:
        """The text cut last, empty when nothing was cut."""
        self._index = 0
        return self._kills[0] if self._kills else ""

    def older(self) -> str:
        """The text cut before the one yanked last; after the oldest the newest again."""
        if not self._kills:
            return ""
        self._index = (self._index + 1) % len(self._kills)
        return self._kills[self._index]
