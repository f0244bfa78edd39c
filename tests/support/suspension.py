"""Counts every place where a coroutine, or a task it starts, waits; and does something at one of them."""

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any


class SuspensionProbe:
    """``run`` runs a coroutine in a task of its own and calls ``act`` at its ``at``-th suspension.

    Suspensions of tasks that it starts count too. ``count`` is how many there were, ``acted`` whether ``at``
    was reached.
    """

    def __init__(self, at: int, act: Callable[["asyncio.Task[Any]"], object]) -> None:
        self.count = 0
        self.acted = False
        self._at = at
        self._act = act
        self._main: asyncio.Task[Any] | None = None

    async def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of ``work``."""
        loop = asyncio.get_running_loop()
        before = loop.get_task_factory()
        loop.set_task_factory(self._make_task)
        try:
            self._main = loop.create_task(work)
            return await self._main
        finally:
            loop.set_task_factory(before)

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **fields: Any
    ) -> "asyncio.Task[Any]":
        return asyncio.Task(self._counted(work), loop=loop, **fields)

    @types.coroutine
    def _counted(self, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        step: Callable[[], Any] = partial(work.send, None)
        while True:
            try:
                waited_for = step()
            except StopIteration as stop:
                return stop.value
            self.count += 1
            if self.count == self._at and self._main is not None:
                self.acted = True
                self._act(self._main)
            try:
                yield waited_for
            except BaseException as error:  # noqa: BLE001 - handed on to the coroutine, whatever it is
                step = partial(work.throw, error)
            else:
                step = partial(work.send, None)
