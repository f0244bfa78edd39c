"""What a shake took out of the context since its newest answer was billed (compaction 3.4)."""

from musepi_tui.context.usage import usable_usage
from musepi_tui.runtime.history import History
from musepi_tui.runtime.live import ids_behind


class Relief:
    """Tokens that a billed figure still holds and the context does not any more.

    A summary makes older figures void; edits do not. Without this the prompt after a shake would start
    another pass, for tokens that are gone. On another branch they are there again.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._entry_id: str | None = None
        self._leaf_id: str | None = None
        self._tokens = 0

    @property
    def tokens(self) -> int:
        """What to take off the newest billed figure."""
        if not self._tokens or self._entry_id != self._billed_id():
            return 0
        # Only behind that answer: what lies before it may be a whole session.
        here = (None, self._entry_id, *ids_behind(self._history.tree, self._entry_id))
        return self._tokens if self._leaf_id in here else 0

    def note(self, tokens: int) -> None:
        """So much was taken out now, estimated."""
        if tokens:
            self._tokens = self.tokens + tokens
            self._entry_id = self._billed_id()
            self._leaf_id = self._history.tree.leaf_id

    def _billed_id(self) -> str | None:
        pairs = zip(reversed(self._history.message_entry_ids), reversed(self._history.messages), strict=True)
        return next((entry_id for entry_id, message in pairs if usable_usage(message) is not None), None)
