"""Going on by itself: after a pass, and with a request that is sent again (compaction 2.8)."""

import asyncio
from functools import partial

from musepi_tui.base.resources import read_prompt
from musepi_tui.runtime.history import History
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.tasks import CancelKind, cancel_once

CONTINUE_AFTER_S = 0.1
"""Seconds before a turn is asked for again: esc and a new prompt still reach it (compaction 2.8)."""

AUTO_CONTINUE = "auto-continue"
"""Custom type of the message that goes on by itself, and the name of its prompt."""


def append_continuation(history: History) -> None:
    """Adds the message that asks the model to go on."""
    history.append_custom(AUTO_CONTINUE, read_prompt(AUTO_CONTINUE), display=True)


async def pause(services: Services) -> bool:
    """Waits a moment before a retry; false when it was cancelled meanwhile."""
    child = services.children.start("retry", services.clock.sleep(CONTINUE_AFTER_S))
    with services.cancels.pushed(CancelKind.RETRY, partial(cancel_once, child)):
        await asyncio.wait((child,))
    return not child.cancelled()
