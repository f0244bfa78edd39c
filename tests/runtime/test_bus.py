import asyncio

from musepi_tui.providers.types import BlockDelta, BlockEnd
from musepi_tui.runtime.bus import EventBus
from musepi_tui.runtime.events import AssistantDelta, Notice, ToolProgress


def delta(text: str, index: int = 0, live_id: str = "live-1", kind: str = "text") -> AssistantDelta:
    return AssistantDelta(live_id, BlockDelta(kind, index, text))


def test_deltas_are_merged_when_nobody_fetched_them():
    bus = EventBus()
    subscription = bus.subscribe()
    for word in ("one ", "two ", "three"):
        bus.emit(delta(word))
    assert subscription.drain() == (delta("one two three"),)


def test_deltas_are_kept_apart_when_block_kind_or_message_differ():
    bus = EventBus()
    subscription = bus.subscribe()
    events = [
        delta("a"),
        delta("b", index=1),
        delta("c", index=1, kind="thinking"),
        delta("d", live_id="live-2"),
    ]
    for event in events:
        bus.emit(event)
    assert subscription.drain() == tuple(events)


def test_merging_never_moves_text_past_another_event():
    bus = EventBus()
    subscription = bus.subscribe()
    notice = Notice("info", "between", "test")
    end = AssistantDelta("live-1", BlockEnd("text", 0, "ab"))
    for event in (delta("a"), notice, delta("b"), end):
        bus.emit(event)
    assert subscription.drain() == (delta("a"), notice, delta("b"), end)


def test_tool_arguments_keep_the_newest_parse_when_deltas_are_merged():
    bus = EventBus()
    subscription = bus.subscribe()
    bus.emit(AssistantDelta("live-1", BlockDelta("toolcall", 0, '{"path"', {})))
    bus.emit(AssistantDelta("live-1", BlockDelta("toolcall", 0, ': "a"}', {"path": "a"})))
    bus.emit(AssistantDelta("live-1", BlockDelta("toolcall", 0, "")))
    merged = BlockDelta("toolcall", 0, '{"path": "a"}', {"path": "a"})
    assert subscription.drain() == (AssistantDelta("live-1", merged),)


def test_only_the_newest_progress_of_a_call_waits():
    bus = EventBus()
    subscription = bus.subscribe()
    for event in (ToolProgress("a", "1"), ToolProgress("a", "2"), ToolProgress("b", "1")):
        bus.emit(event)
    assert subscription.drain() == (ToolProgress("a", "2"), ToolProgress("b", "1"))


def test_each_subscriber_has_its_own_queue():
    bus = EventBus()
    first, second = bus.subscribe(), bus.subscribe()
    bus.emit(delta("a"))
    assert first.drain() == (delta("a"),)
    bus.emit(delta("b"))
    assert first.drain() == (delta("b"),)
    assert second.drain() == (delta("ab"),)


async def test_iteration_ends_after_what_waited_when_the_bus_closes():
    bus = EventBus()
    subscription = bus.subscribe()
    bus.emit(Notice("info", "last", "test"))
    bus.close()
    bus.emit(Notice("info", "too late", "test"))
    async with asyncio.timeout(1):
        assert [event async for event in subscription] == [Notice("info", "last", "test")]


async def test_a_waiting_subscriber_is_woken_by_an_event():
    bus = EventBus()
    subscription = bus.subscribe()
    async with asyncio.timeout(1), asyncio.TaskGroup() as group:
        waiting = group.create_task(anext(subscription))
        await asyncio.sleep(0)
        bus.emit(delta("a"))
    assert waiting.result() == delta("a")


async def test_a_closed_subscription_gets_nothing_more():
    bus = EventBus()
    subscription = bus.subscribe()
    bus.emit(delta("a"))
    subscription.close()
    bus.emit(delta("b"))
    async with asyncio.timeout(1):
        assert [event async for event in subscription] == []
