"""The screen over a fake runtime as a program of its own: for tests in a real terminal.

``python -m tests.support.shell_program HOME [crash] [busy] [blocked]``; exits with the code of ``run_app``.

``crash``: alt+m fails. ``busy``: a turn runs until esc. ``blocked``: alt+m stops the event loop.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from musepi_tui.runtime.events import AgentStarted, Phase, PhaseChanged
from musepi_tui.runtime.intents import Cancel, Intent
from musepi_tui.tui.app import run_app
from tests.support.builders import a, path, u
from tests.support.fake_runtime import FakeRuntime


class BusyRuntime(FakeRuntime):
    """Works from the start until it is cancelled."""

    def begin(self) -> None:
        """Loading is over and a turn runs."""
        super().begin()
        self.emit(PhaseChanged(Phase.STREAMING), AgentStarted())

    def send(self, intent: Intent) -> str:
        """Esc ends the turn."""
        if isinstance(intent, Cancel):
            self.emit(PhaseChanged(Phase.IDLE))
        return super().send(intent)


async def main(home: Path, words: Sequence[str]) -> int:
    """Runs the screen until it ends."""
    made = BusyRuntime if "busy" in words else FakeRuntime
    runtime = made(home, *path(u("first prompt"), a("first answer")))
    if "blocked" in words:
        runtime.models = lambda: time.sleep(3600)  # type: ignore[method-assign,assignment,return-value]
    if "crash" in words:
        secret = "a-secret-local-value"
        runtime.list_sessions = lambda **_: 1 / len(secret[:0])  # type: ignore[method-assign,assignment]
        runtime.models = lambda: 1 / 0  # type: ignore[method-assign,assignment]
    return await run_app(cast("Any", runtime), os.environ)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), sys.argv[2:])))
