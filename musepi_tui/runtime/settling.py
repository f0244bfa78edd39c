"""How an intent ends."""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

STILL_LOADING = "The session is still being loaded."
STOPPED_UNEXPECTEDLY = "This stopped unexpectedly; the log has the details."
LOAD_FAILED = "The session could not be loaded: the log has the details (musepi doctor)."
BUSY = "wait for the turn to end or press esc"


class Settle(Protocol):
    """Ends an intent: with an error line, or None and data. Only the first call counts."""

    def __call__(self, error: str | None, data: Mapping[str, Any] | None = None) -> None:
        """Called at least once for each intent."""
        ...


def settle_with(task: "asyncio.Task[Any]", settle: Settle) -> None:
    """Makes sure that an intent ends with the task that works on it: whoever waits must hear of a failure."""
    task.add_done_callback(lambda _: settle(STOPPED_UNEXPECTEDLY))
