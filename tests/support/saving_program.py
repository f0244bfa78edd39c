"""A runtime with a hundred prompts to work on that tells each entry it has stored: something to kill.

``python -m tests.support.saving_program HOME PROJECT`` writes ``file PATH`` once, and ``saved ID`` for each.
"""

import asyncio
import sys
from pathlib import Path

from musepi_tui.runtime.events import EntryAppended
from musepi_tui.runtime.intents import SubmitPrompt
from musepi_tui.runtime.session import SessionRuntime
from tests.support.harness import runtime_options


async def main(home: Path, project: Path) -> None:
    """Works until it is killed."""
    async with SessionRuntime.open(runtime_options(home, project)) as runtime:
        events = runtime.subscribe()
        runtime.begin()
        for number in range(100):
            runtime.send(SubmitPrompt(f"prompt {number}", delivery="follow_up"))
        _tell(f"file {runtime.view().file}")
        async for event in events:
            if isinstance(event, EntryAppended) and event.saved:
                _tell(f"saved {event.entry.id}")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
