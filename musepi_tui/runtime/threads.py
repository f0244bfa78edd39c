"""Work in a thread that ends soon after nobody waits for it any more."""

import asyncio
from collections.abc import Callable
from threading import Event
from typing import TypeAlias, TypeVar

from musepi_tui.base.collector import collector_paused

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

Checkpoint: TypeAlias = Callable[[], None]
"""To be called now and then by long work in a thread. It raises once the work is not wanted any more."""


class WorkStoppedError(Exception):
    """Ends work nobody waits for. It is seen in the thread alone."""


async def run_stoppable(work: Callable[[Checkpoint], T]) -> T:
    """The result of ``work``, done in a thread. After a cancel it ends at its next checkpoint.

    Without that, a cancelled count of a gigabyte would go on for minutes and take one of the few threads.
    """
    stopped = Event()

    def check() -> None:
        if stopped.is_set():
            raise WorkStoppedError

    def run() -> T:
        # The collector would look through the whole program again and again for the many objects made here,
        # and keys would wait for it.
        with collector_paused():
            return work(check)

    try:
        return await asyncio.to_thread(run)
    finally:
        stopped.set()


def stopping(function: Callable[[A], B], check: Checkpoint) -> Callable[[A], B]:
    """The function with a checkpoint before each call."""

    def call(argument: A) -> B:
        check()
        return function(argument)

    return call
