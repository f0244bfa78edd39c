import asyncio

from musepi_tui.runtime.events import RuntimeFault
from musepi_tui.runtime.tasks import MAINTENANCE_KINDS, CancelKind, CancelStack, Children


async def test_a_failing_child_is_reported_and_its_siblings_go_on(caplog):
    faults: list[RuntimeFault] = []

    async def fail() -> None:
        raise ValueError("broken")

    async def succeed() -> str:
        await asyncio.sleep(0)
        return "done"

    async with asyncio.TaskGroup() as group:
        children = Children(group, faults.append)
        failed = children.start("bad one", fail())
        sibling = children.start("good one", succeed())
    assert (failed.result(), sibling.result()) == (None, "done")
    assert faults == [RuntimeFault("bad one", "ValueError: broken")]
    assert "bad one failed" in caplog.text


async def test_stop_cancels_children_and_waits_for_their_clean_up():
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("yes")

    async with asyncio.timeout(2), asyncio.TaskGroup() as group:
        children = Children(group, lambda _: None)
        children.start("work", work())
        await asyncio.sleep(0)
        await children.stop(1)
        assert cleaned == ["yes"]


def test_compaction_goes_before_retry_and_turn():
    stack = CancelStack()
    cancelled: list[str] = []

    def cancel(name: str):
        return lambda: cancelled.append(name) is None

    with stack.pushed(CancelKind.TURN, cancel("turn")), stack.pushed(CancelKind.RETRY, cancel("retry")):
        with stack.pushed(CancelKind.COMPACTION, cancel("compaction")):
            assert stack.cancel_first() is CancelKind.COMPACTION
        assert stack.cancel_first() is CancelKind.RETRY
    assert cancelled == ["compaction", "retry"]
    assert stack.cancel_first() is None


def test_what_has_nothing_to_cancel_is_passed_over():
    stack = CancelStack()
    with (
        stack.pushed(CancelKind.COMPACTION, lambda: False),
        stack.pushed(CancelKind.TURN, lambda: True),
    ):
        assert stack.cancel_first() is CancelKind.TURN
        assert stack.cancel_first(MAINTENANCE_KINDS) is None
