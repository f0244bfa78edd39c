"""The only place that starts tasks: guarded children, and what Esc cancels first."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import contextmanager
from enum import IntEnum
from functools import partial
from typing import Any, TypeVar

from musepi_tui.runtime.events import RuntimeFault

CANCEL_WITHIN_S = 2.5
"""How long a turn may take to store what it has when the runtime closes (SAF-12: 5 s for everything)."""

T = TypeVar("T")
_LOG = logging.getLogger("musepi.runtime")


def cancel_once(task: "asyncio.Task[Any]") -> bool:
    """Cancels a task unless that was asked for already: a second cancel would tear its clean-up.

    False when the task is over.
    """
    if task.done():
        return False
    if not task.cancelling():
        task.cancel()
    return True


class Children:
    """Tasks inside the runtime's group. An unexpected error ends one child, never its siblings."""

    def __init__(self, group: asyncio.TaskGroup, report: Callable[[RuntimeFault], None]) -> None:
        self._group = group
        self._report = report
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, name: str, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T | None]":
        """The running child. Its result is None when it failed; the failure was logged and reported."""
        task = self._group.create_task(self._guard(name, work), name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        # A task cancelled before its first step leaves ``work`` unstarted; Python warns of that on stderr.
        task.add_done_callback(lambda _: work.close())
        return task

    async def wait_all(self, tasks: Sequence["asyncio.Task[Any]"]) -> None:
        """Waits until all of these have ended, however they ended. Cancelling the wait leaves them
        running."""
        if tasks:
            await asyncio.wait(tasks)

    def call(self, name: str, function: Callable[[], None]) -> bool:
        """Calls a function under the same guard. False when it failed."""
        try:
            function()
        except Exception as error:  # noqa: BLE001 - the task guard is one of the three borders
            self._fault(name, error)
            return False
        return True

    async def stop(self, within_s: float) -> None:
        """Cancels every child and waits for their clean-up, at most ``within_s`` seconds."""
        try:
            async with asyncio.timeout(within_s):
                while running := tuple(self._running):
                    for task in running:
                        cancel_once(task)
                    await asyncio.wait(running, timeout=within_s)
        except TimeoutError:
            _LOG.error("still running at closing: %s", [task.get_name() for task in self._running])

    async def _guard(self, name: str, work: Coroutine[Any, Any, T]) -> T | None:
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - the task guard is one of the three borders
            self._fault(name, error)
            return None

    def _fault(self, name: str, error: Exception) -> None:
        _LOG.error("%s failed", name, exc_info=error)
        self._report(RuntimeFault(name, f"{type(error).__name__}: {error}"))


class CancelKind(IntEnum):
    """What Esc can cancel; the smaller number goes first."""

    HANDOFF = 1
    COMPACTION = 2
    BRANCH_SUMMARY = 3
    RETRY = 4
    TURN = 5


MAINTENANCE_KINDS = frozenset({CancelKind.HANDOFF, CancelKind.COMPACTION, CancelKind.BRANCH_SUMMARY})
"""What ``Cancel(only_maintenance=True)`` may cancel."""


class CancelStack:
    """What is running and can be cancelled."""

    def __init__(self) -> None:
        self._handles: list[tuple[CancelKind, Callable[[], bool]]] = []

    @contextmanager
    def pushed(self, kind: CancelKind, cancel: Callable[[], bool]) -> Generator[None]:
        """Offers ``cancel`` while the block runs. It answers whether it really had something to cancel."""
        handle = (kind, cancel)
        self._handles.append(handle)
        try:
            yield
        finally:
            self._handles.remove(handle)

    async def watch(
        self, child: "asyncio.Task[Any]", kind: CancelKind, cancel: Callable[[], bool] | None = None
    ) -> None:
        """Waits until a child has ended and offers to cancel it, in the way ``cancel`` does it.

        Who is cancelled while waiting takes the child along.
        """
        with self.pushed(kind, cancel or partial(cancel_once, child)):
            try:
                await asyncio.wait((child,))
            except asyncio.CancelledError:
                cancel_once(child)
                await asyncio.wait((child,), timeout=CANCEL_WITHIN_S)
                raise

    def cancel_first(self, kinds: Iterable[CancelKind] = tuple(CancelKind)) -> CancelKind | None:
        """Cancels the first of ``kinds`` that runs, and says which; None when nothing did."""
        wanted = frozenset(kinds)
        for kind, cancel in sorted(self._handles, key=lambda handle: handle[0]):
            if kind in wanted and cancel():
                return kind
        return None
