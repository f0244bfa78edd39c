"""A failed answer on its way out of the context, and back (compaction 2.3, 2.4)."""

from musepi_tui.runtime.history import History
from musepi_tui.runtime.memory import End
from musepi_tui.session.messages import AssistantMessage, StopReason, ToolResultMessage

_FAILED = frozenset({StopReason.ERROR, StopReason.ABORTED, StopReason.LENGTH})


class FailedTurn:
    """The answer at the end of the context, with the results that only say that its calls were not run.

    ``hide`` takes it out of the live messages, ``drop`` also off the branch; its lines stay in the file.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._ids: tuple[str, ...] = ()
        self._before: End | None = None
        self._dropped = False

    def hide(self) -> bool:
        """Takes the answer out of the live messages; false when the newest one did not fail."""
        if self._before is not None:
            return True
        self._ids = failed_ids(self._history)
        if not self._ids:
            return False
        self._before = self._history.end()
        self._history.hide(self._ids)
        return True

    def drop(self) -> bool:
        """Takes it off the branch too: what comes next hangs under the entry in front of it."""
        if self._dropped:
            return True
        if not self.hide():
            return False
        self._history.drop_end(self._ids[0])
        self._dropped = True
        return True

    def drop_hidden(self) -> None:
        """Drops it if it is hidden, so that a line that is about to be added stays on the path."""
        if self._before is not None:
            self.drop()

    def restore(self) -> bool:
        """Puts it back where it was; false when nothing was taken out."""
        if self._before is None:
            return False
        self._history.restore_end(self._before)
        self._before = None
        self._dropped = False
        return True


def failed_ids(history: History) -> tuple[str, ...]:
    """Entries of a failed or cut-off answer at the end of the context and results of its calls; oldest
    first."""
    ids: list[str] = []
    pairs = zip(reversed(history.message_entry_ids), reversed(history.messages), strict=True)
    for entry_id, message in pairs:
        if isinstance(message, ToolResultMessage):
            ids.append(entry_id)
        elif isinstance(message, AssistantMessage) and message.stop_reason in _FAILED:
            return tuple(reversed((*ids, entry_id)))
        else:
            break
    return ()
