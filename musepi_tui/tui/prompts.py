"""Earlier prompts of this folder, read and written away from the event loop."""

import asyncio
import logging

from musepi_tui.storage.state import PromptHistory

_log = logging.getLogger("musepi.tui")


class PromptStore:
    """The history file of a project. A folder that cannot be written costs the history, nothing else."""

    def __init__(self, history: PromptHistory) -> None:
        self._history = history

    async def load(self) -> list[str]:
        """The prompts, oldest first; none when they cannot be read."""
        try:
            return await asyncio.to_thread(self._history.load)
        except OSError as error:
            _log.warning("the prompt history cannot be read: %s", error)
            return []

    async def append(self, text: str) -> None:
        """Adds a prompt."""
        try:
            await asyncio.to_thread(self._history.append, text)
        except OSError as error:
            _log.warning("the prompt history cannot be written: %s", error)
