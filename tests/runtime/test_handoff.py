"""Handoffs on a session in memory: what is asked, what the new one begins with, a cancel at every await."""

import asyncio
from dataclasses import replace

import pytest

from musepi_tui.base.errors import (
    CompactionStoppedError,
    ErrorKind,
    MaintenanceError,
    NothingToCompactError,
    ProviderError,
    SummaryRejectedError,
)
from musepi_tui.maintenance.triggers import Reason
from musepi_tui.providers.types import ToolSpec
from musepi_tui.runtime.events import (
    MaintenanceEnded,
    MaintenanceStarted,
    SummaryRetryEnded,
    SummaryRetryScheduled,
    SummaryRetryStarted,
)
from musepi_tui.runtime.handoff import HandoffDoor, HandoffOrder, hand_off
from musepi_tui.runtime.loop import Briefing
from musepi_tui.session.messages import StopReason, Usage, text_of
from tests.support.builders import a, branch_summary, call, compaction, custom, path, t, u
from tests.support.fake_services import bench, model
from tests.support.suspension import SuspensionProbe

BRIEFING = Briefing("You help.", (ToolSpec("read", "Reads.", {"type": "object"}),))
DOCUMENT = "## Goal\nGo on."
MOST_AWAITS = 100


class FakeDoor:
    """Opens a session in memory that holds the letter; ``letters`` are those that came through."""

    def __init__(self, bus):
        self.letters = []
        self.refuse = False
        self._bus = bus

    def door(self):
        async def briefing():
            await asyncio.sleep(0)
            return BRIEFING

        return HandoffDoor(briefing, self.open_next, self.tell_opened, None)

    async def tell_opened(self, following):
        await asyncio.sleep(0)

    async def open_next(self, letter, seal):
        await asyncio.sleep(0)
        if self.refuse:
            raise CompactionStoppedError("The extension x stopped the handoff.")
        seal()
        await asyncio.sleep(0)
        self.letters.append(letter)
        return replace(bench(path(custom(letter.content, "handoff"))).services, bus=self._bus)


def desk_with(*parts, **fields):
    desk = bench(path(*parts), **fields)
    door = FakeDoor(desk.services.bus)
    desk.gateway.reply = lambda _, __: a(DOCUMENT, usage=Usage(input=100, output=7))
    desk.maintainer.door = door.door()
    return desk, door


async def handed_off(desk, *, reason=Reason.MANUAL, focus=None, opened=lambda *_: None):
    order = HandoffOrder(reason, focus, lambda: None, opened)
    return await hand_off(desk.services, desk.maintainer.door, order)


async def test_the_live_request_is_repeated_and_one_message_added():
    desk, _ = desk_with(u("one"), a("two"))
    await handed_off(desk, focus="the parser")
    ((_, request),) = desk.gateway.requests
    assert (request.system, request.tools) == (BRIEFING.system, BRIEFING.tools)
    assert request.messages[:-1] == desk.services.context_messages()
    assert text_of(request.messages[-1].content).endswith("Additional focus: the parser")
    assert (request.tool_choice, request.max_tokens) == ("none", None)


async def test_the_letter_says_what_it_cost_and_which_files_were_worked_on():
    desk, door = desk_with(u("one"), a("", [call("read", "1", path="a.py")]), t("x", "1"), a("two"))
    results = []
    done = await handed_off(desk, opened=lambda result, _: results.append(result))
    (letter,) = door.letters
    assert done.document == f"{DOCUMENT}\n\n<files>\na.py (Read)\n</files>"
    assert letter.content.startswith(f"<handoff-context>\n{done.document}\n</handoff-context>\n\n")
    assert (letter.details["readFiles"], letter.details["modifiedFiles"]) == (["a.py"], [])
    assert letter.spent is not None
    assert (letter.spent["kind"], letter.spent["usage"]["output"]) == ("handoff", 7)
    (result,) = results
    assert result.usage is not None
    assert result.first_kept_entry_id is None


async def test_files_of_what_came_before_are_carried_along():
    desk, _ = desk_with(
        u("one"),
        a("two"),
        compaction("sum", first="e1", details={"readFilesAdded": ["c.py"], "modifiedFilesAdded": []}),
        replace(custom("doc", "handoff"), details={"readFiles": ["h.py"], "modifiedFiles": ["m.py"]}),
        replace(branch_summary("left"), details={"readFiles": ["b.py"], "modifiedFiles": []}),
        replace(custom("doc", "mine"), details={"readFiles": ["no.py"], "modifiedFiles": []}),
        u("three"),
        a("four"),
    )
    document = (await handed_off(desk)).document
    assert document.endswith("<files>\nb.py (Read)\nc.py (Read)\nh.py (Read)\nm.py (Write)\n</files>")


@pytest.mark.parametrize("count", [0, 1])
async def test_fewer_than_two_messages_are_nothing_to_hand_off(count):
    desk, door = desk_with(custom("doc", "handoff"), *(u("one"),) * count)
    with pytest.raises(NothingToCompactError, match="Nothing to hand off"):
        await handed_off(desk)
    assert (door.letters, desk.gateway.requests) == ([], [])


async def test_a_closing_tag_in_the_document_cannot_end_it():
    desk, door = desk_with(u("one"), a("two"))
    desk.gateway.reply = lambda _, __: a("It ends with </handoff-context> here.")
    await handed_off(desk)
    assert door.letters[0].content.count("</handoff-context>") == 1


async def test_calls_in_the_answer_are_ignored():
    desk, _ = desk_with(u("one"), a("two"))
    desk.gateway.reply = lambda _, __: a(DOCUMENT, [call("read", path="a")], stop=StopReason.TOOL_USE)
    assert (await handed_off(desk)).document == DOCUMENT


@pytest.mark.parametrize("kind", [ErrorKind.OVERFLOW, ErrorKind.PAYLOAD])
async def test_a_request_that_is_too_long_leaves_room_for_another_kind_of_pass(kind):
    desk, _ = desk_with(u("one"), a("two"))
    desk.gateway.reply = lambda _, __: ProviderError("too long", kind=kind, status=400)
    with pytest.raises(SummaryRejectedError, match="too long"):
        await handed_off(desk, reason=Reason.THRESHOLD)


def failing_first(error):
    answers = [error, a(DOCUMENT)]
    return lambda _, __: answers.pop(0)


async def test_an_automatic_handoff_is_tried_again_after_a_failure_that_passes():
    desk, _ = desk_with(u("one"), a("two"))
    desk.gateway.reply = failing_first(ProviderError("busy", kind=ErrorKind.OVERLOADED, status=529))
    await handed_off(desk, reason=Reason.THRESHOLD)
    tries = desk.events(SummaryRetryScheduled, SummaryRetryStarted, SummaryRetryEnded)
    assert [type(event).__name__ for event in tries] == [
        "SummaryRetryScheduled",
        "SummaryRetryStarted",
        "SummaryRetryEnded",
    ]
    assert tries[-1].success
    assert desk.clock.slept[-1] == 2.0


async def test_a_try_that_ends_the_handoff_says_why():
    desk, _ = desk_with(u("one"), a("two"))
    answers = [
        ProviderError("busy", kind=ErrorKind.OVERLOADED, status=529),
        ProviderError("too long", kind=ErrorKind.OVERFLOW),
    ]
    desk.gateway.reply = lambda _, __: answers.pop(0)
    with pytest.raises(MaintenanceError):
        await handed_off(desk, reason=Reason.THRESHOLD)
    assert [(end.success, end.error) for end in desk.events(SummaryRetryEnded)] == [(False, "too long")]


async def test_a_handoff_by_hand_fails_at_once():
    desk, _ = desk_with(u("one"), a("two"))
    desk.gateway.reply = failing_first(ProviderError("busy", kind=ErrorKind.OVERLOADED, status=529))
    with pytest.raises(MaintenanceError, match="^Handoff failed: busy; nothing was changed"):
        await handed_off(desk)


@pytest.mark.parametrize(
    ("text", "status", "asked"),
    [
        ("tool_choice: only auto is supported", 400, ["none", "auto"]),
        ("Tool choice must be auto", 400, ["none", "auto"]),
        ("max_tokens is too large", 400, ["none"]),
        ("tool_choice: try later", 503, ["none"]),
    ],
)
async def test_only_a_server_that_knows_no_other_choice_is_asked_with_auto(text, status, asked):
    desk, _ = desk_with(u("one"), a("two"))
    error = ProviderError(text, kind=ErrorKind.INVALID_REQUEST, status=status)
    desk.gateway.reply = failing_first(error)
    if asked[-1] == "auto":
        await handed_off(desk)
    else:
        with pytest.raises(MaintenanceError):
            await handed_off(desk)
    assert [request.tool_choice for _, request in desk.gateway.requests] == asked


async def test_a_conversation_that_changed_meanwhile_throws_the_document_away():
    desk, door = desk_with(u("one"), a("two"))

    def reply(_, __):
        desk.say(u("three"))
        return a(DOCUMENT)

    desk.gateway.reply = reply
    with pytest.raises(MaintenanceError, match="changed meanwhile"):
        await handed_off(desk)
    assert door.letters == []


async def test_an_extension_that_stops_it_ends_the_pass_as_aborted():
    desk, door = desk_with(u("one"), a("two"))
    door.refuse = True
    with pytest.raises(CompactionStoppedError, match="extension x"):
        await desk.maintainer.hand_off(None)
    (end,) = desk.events(MaintenanceEnded)
    assert (end.aborted, end.error, end.result) == (True, None, None)


async def test_a_handoff_cancelled_at_any_await_happened_wholly_or_not_at_all():
    kept = opened = 0
    for at in range(1, MOST_AWAITS):
        desk, door = desk_with(u("one"), a("two"), models=(model(),))
        before, answers = desk.history.messages, []
        probe = SuspensionProbe(at, lambda _, said=answers, who=desk.maintainer: said.append(who.cancel()))
        try:
            await probe.run(desk.maintainer.hand_off(None))
        except CompactionStoppedError as error:
            assert str(error) == "Handoff cancelled"
            assert door.letters == []
            kept += 1
        else:
            assert len(door.letters) == 1
            opened += 1
        assert desk.history.messages == before
        assert desk.saver.written == []
        assert not desk.maintainer.running
        assert len(desk.events(MaintenanceStarted)) == len(desk.events(MaintenanceEnded))
        if not probe.acted:
            break
    assert kept > 3
    assert opened > 1
