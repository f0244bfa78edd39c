import asyncio
import threading

import pytest

from musepi_tui.runtime.threads import WorkStoppedError, run_stoppable, stopping


async def test_the_result_comes_back():
    assert await run_stoppable(lambda check: sum(map(stopping(abs, check), (-1, 2)))) == 3


async def test_cancelled_work_ends_at_its_next_checkpoint():
    begun, ended = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def count_for_ever(check):
        loop.call_soon_threadsafe(begun.set)
        try:
            while True:
                check()
        except WorkStoppedError:
            ended.set()
            raise

    running = asyncio.ensure_future(run_stoppable(count_for_ever))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(ended.wait, 5)


async def test_an_error_of_the_work_comes_through():
    def fail(_):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await run_stoppable(fail)
