import asyncio

import pytest

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.context.usage import calculate_context_tokens
from musepi_tui.maintenance.triggers import ManualRequested, PromptPending, ToolBoundary, TurnFinished
from musepi_tui.runtime.events import (
    EntryAppended,
    MaintenanceEnded,
    MaintenanceProgress,
    MaintenanceStarted,
    Notice,
    Phase,
)
from musepi_tui.runtime.queue import QueuedMessage
from musepi_tui.session.entries import CompactionEntry, ContextEditEntry, SessionHeader
from musepi_tui.session.messages import CompactionSummary, Cost, StopReason, Usage, text_of
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.settings.schema import CompactionSettings, Settings
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.session_file import SessionFile
from tests.support.builders import a, call, path, t, u, words
from tests.support.fake_services import bench, model
from tests.support.sketch import parts, sketch

MANUAL = ManualRequested()
SMALL = model(context_window=40_000)
SPLIT = "u100 a200 t4000 a300 u50 a6000 t3000 a100"
LONG = "u3000 a3000 u3000 a3000 u3000 a3000 u3000 a3000"


def settings(**compaction):
    return Settings(compaction=CompactionSettings(**compaction))


def full(**fields):
    """A session over the threshold of a 40,000-token window (23,616)."""
    last = a(words(300), usage=Usage(input=30_000, output=300))
    return bench(path(*parts(LONG), u(words(30)), last), models=(SMALL,), **fields)


def turn(desk):
    return TurnFinished(desk.history.messages[-1])


def state_of(desk):
    return desk.history.messages, desk.history.tree.leaf_id, tuple(desk.saver.written)


def submit(desk):
    """The number of a message the person has just submitted."""
    return desk.queue.number(QueuedMessage("go on")).submission


async def start(desk, signal):
    """A running pass that waits for its summary."""
    desk.gateway.gate = asyncio.Event()
    running = asyncio.ensure_future(desk.maintainer.consider(signal))
    await desk.gateway.wait_for_requests(1)
    return running


async def test_manual_pass_writes_one_compaction_and_tells_so():
    desk = bench(sketch(LONG))
    stop = await desk.maintainer.consider(MANUAL)
    assert (stop.error, stop.blocked) == (None, False)
    events = desk.events(MaintenanceStarted, EntryAppended, MaintenanceEnded)
    assert [type(event).__name__ for event in events] == [
        "MaintenanceStarted",
        "EntryAppended",
        "MaintenanceEnded",
    ]
    entry, end = events[1].entry, events[2]
    assert isinstance(entry, CompactionEntry)
    assert (events[0].reason, events[0].action, end.error, end.aborted) == ("manual", "summary", None, False)
    assert (end.result.entry_id, end.result.first_kept_entry_id) == (entry.id, entry.first_kept_entry_id)
    assert isinstance(desk.history.messages[0], CompactionSummary)
    assert len(desk.history.messages) < 8


async def test_the_entry_says_how_it_was_made():
    desk = bench(sketch(LONG))
    desk.gateway.reply = lambda *_: a(
        "## Goal\nX", usage=Usage(input=900, output=90, total_tokens=990, cost=Cost(total=0.1))
    )
    await desk.maintainer.consider(MANUAL)
    entry = desk.saver.written[-1][-1]
    assert (entry.method, entry.reason, entry.model) == ("summary", "manual", "test/model")
    assert entry.usage.cost.total == pytest.approx(0.1)
    assert calculate_context_tokens(entry.usage) == 990
    assert entry.details == {"readFilesAdded": [], "modifiedFilesAdded": []}


async def test_tokens_after_are_those_of_the_rebuilt_context():
    desk = bench(sketch(LONG))
    await desk.maintainer.consider(MANUAL)
    assert desk.saver.written[-1][-1].tokens_after == desk.services.meter.measure().stored


async def test_live_context_equals_the_one_rebuilt_from_the_entries():
    desk = bench(sketch(LONG))
    await desk.maintainer.consider(MANUAL)
    rebuilt = build_session_context(await desk.history.load_live())
    assert (rebuilt.messages, rebuilt.entry_ids) == (desk.history.messages, desk.history.message_entry_ids)


async def test_file_alone_gives_the_live_context(tmp_path):
    path_of_file = tmp_path / "session.jsonl"
    file = SessionFile.create(path_of_file, SessionHeader("session", "2026-01-01T00:00:00.000Z", "/project"))
    desk = bench(settings=settings(keep_recent_tokens=5_000), file=file)
    desk.say(*(part for part in parts(SPLIT)))
    assert (await desk.maintainer.consider(MANUAL)).error is None
    file.close()
    loaded = load_session(path_of_file)
    entries = [loaded.bodies.get(head) for head in loaded.tree.path()]
    rebuilt = build_session_context(entries)
    assert rebuilt.entry_ids == desk.history.message_entry_ids
    assert [type(message) for message in rebuilt.messages] == [
        type(message) for message in desk.history.messages
    ]
    assert rebuilt.messages[0].summary == desk.history.messages[0].summary
    assert rebuilt.messages[2].content == desk.history.messages[2].content
    assert "artifact://1" in text_of(rebuilt.messages[2].content)


async def test_files_of_the_history_end_the_summary():
    calls = [call("read", "1", path="src/a.py"), call("edit", "2", path="src/b.py")]
    entries = path(u(words(3000)), a(words(3000), calls), t("x", "1"), t("y", "2", "edit"), *parts(LONG))
    desk = bench(entries)
    await desk.maintainer.consider(MANUAL)
    assert desk.history.messages[0].summary.endswith(
        "\n\n<files>\n# src/\na.py (Read)\nb.py (Write)\n</files>"
    )


async def test_focus_reaches_the_request():
    desk = bench(sketch(LONG))
    await desk.maintainer.consider(ManualRequested(focus="keep the numbers"))
    assert desk.gateway.prompts[0].endswith("Additional focus: keep the numbers")


async def test_large_results_of_the_kept_tail_move_to_an_artifact():
    desk = bench(sketch(SPLIT), settings=settings(keep_recent_tokens=5_000))
    await desk.maintainer.consider(MANUAL)
    *edits, divider = desk.saver.written[-1]
    assert [edit.target_id for edit in edits] == ["e7"]
    assert (edits[0].reason, divider.type) == ("tail", "compaction")
    marker = text_of(edits[0].replacement)
    assert marker.endswith("recover the full output at artifact://1]")
    assert words(3_000) in desk.artifacts.texts["1"]
    assert marker in [
        text_of(message.content) for message in desk.history.messages if hasattr(message, "content")
    ]


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        (sketch("u10 a10"), "Nothing to compact (session too small)"),
        ((), "Nothing to compact (session too small)"),
    ],
)
async def test_manual_pass_refuses_a_small_session(entries, text):
    desk = bench(entries)
    before = state_of(desk)
    stop = await desk.maintainer.consider(MANUAL)
    assert stop.error == text
    assert desk.gateway.requests == []
    assert state_of(desk) == before
    (end,) = desk.events(MaintenanceEnded)
    assert (end.skipped, end.result, end.error, end.aborted) == (True, None, None, False)


async def test_manual_pass_refuses_right_after_another():
    desk = bench(sketch(LONG))
    await desk.maintainer.consider(MANUAL)
    assert (await desk.maintainer.consider(MANUAL)).error == "Already compacted"


async def test_manual_pass_refuses_an_unknown_mode():
    desk = bench(sketch(LONG))
    stop = await desk.maintainer.consider(ManualRequested(mode="shrink"))
    assert stop.error == 'There is no compaction mode "shrink"; use summary, soft, remote, shake.'
    assert desk.events() == []


@pytest.mark.parametrize("mode", ["summary", "SOFT"])
async def test_manual_pass_takes_the_modes_there_are(mode):
    desk = bench(sketch(LONG))
    assert (await desk.maintainer.consider(ManualRequested(mode=mode))).error is None


async def test_second_manual_pass_is_refused_while_one_runs():
    desk = bench(sketch(LONG))
    running = await start(desk, MANUAL)
    assert (await desk.maintainer.consider(MANUAL)).error == "Compaction already in progress"
    desk.gateway.gate.set()
    assert (await running).error is None
    assert len(desk.events(MaintenanceStarted)) == len(desk.events(MaintenanceEnded)) == 1


async def test_manual_pass_replaces_a_running_automatic_one():
    desk = full()
    running = await start(desk, turn(desk))
    desk.gateway.gate.set()
    manual = asyncio.ensure_future(desk.maintainer.consider(MANUAL))
    stops = await asyncio.gather(running, manual)
    assert [stop.error for stop in stops] == ["Auto-compaction cancelled", None]
    ends = [(end.reason, end.aborted, end.result is not None) for end in desk.events(MaintenanceEnded)]
    assert ends == [("threshold", True, False), ("manual", False, True)]
    assert len(desk.saver.written) == 1


async def test_cancelled_pass_leaves_everything_as_it_was():
    desk = bench(sketch(LONG))
    before = state_of(desk)
    running = await start(desk, MANUAL)
    assert desk.maintainer.cancel()
    stop = await running
    assert (stop.error, stop.blocked) == ("Compaction cancelled", True)
    assert state_of(desk) == before
    (end,) = desk.events(MaintenanceEnded)
    assert (end.aborted, end.result, end.error) == (True, None, None)
    assert desk.gateway.streams[0].closed
    assert not desk.maintainer.running


async def test_cancel_works_while_the_start_event_is_handled():
    desk = bench(sketch(LONG))
    heard = []

    def watch(event):
        if isinstance(event, MaintenanceStarted):
            heard.append((desk.maintainer.running is not None, desk.maintainer.cancel()))

    desk.watchers.append(watch)
    stop = await desk.maintainer.consider(MANUAL)
    assert heard == [(True, True)]
    assert stop.error == "Compaction cancelled"
    assert desk.saver.written == []


@pytest.mark.parametrize("phase", ["prepare", "summary", "write"])
async def test_cancel_in_any_phase_leaves_everything_as_it_was(phase):
    desk = bench(sketch(SPLIT), settings=settings(keep_recent_tokens=5_000))
    before = state_of(desk)

    def watch(event):
        if isinstance(event, MaintenanceProgress) and event.phase == phase:
            desk.maintainer.cancel()

    desk.watchers.append(watch)
    assert (await desk.maintainer.consider(MANUAL)).error == "Compaction cancelled"
    assert state_of(desk) == before
    assert len(desk.events(MaintenanceEnded)) == 1


async def test_cancel_is_too_late_once_the_pass_is_being_written():
    desk = bench(sketch(LONG))
    desk.saver.hold = asyncio.Event()
    running = asyncio.ensure_future(desk.maintainer.consider(MANUAL))
    await desk.saver.wrote.wait()
    assert not desk.maintainer.cancel()
    desk.saver.hold.set()
    assert (await running).error is None


async def test_cancel_has_nothing_to_do_at_rest():
    assert not bench().maintainer.cancel()


async def test_closing_the_runtime_ends_the_pass_and_its_announcement():
    desk = bench(sketch(LONG))
    running = await start(desk, MANUAL)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (end,) = desk.events(MaintenanceEnded)
    assert end.aborted


async def test_failed_pass_leaves_everything_as_it_was():
    desk = bench(sketch(LONG))
    before = state_of(desk)
    desk.gateway.reply = lambda *_: ProviderError("529: overloaded", kind=ErrorKind.OVERLOADED)
    stop = await desk.maintainer.consider(MANUAL)
    assert stop.error == "529: overloaded"
    assert state_of(desk) == before
    (end,) = desk.events(MaintenanceEnded)
    assert (end.error, end.aborted, end.result) == ("529: overloaded", False, None)


async def test_failed_automatic_pass_names_itself():
    desk = full()
    desk.gateway.reply = lambda *_: ProviderError("insufficient_quota", kind=ErrorKind.QUOTA)
    stop = await desk.maintainer.consider(turn(desk))
    assert stop.error == "Auto-compaction failed: insufficient_quota"
    assert stop.blocked
    assert desk.events(MaintenanceEnded)[0].error == stop.error


async def test_write_failure_is_told_and_nothing_is_kept():
    desk = bench(sketch(LONG))
    before = state_of(desk)
    desk.saver.refuse = True
    stop = await desk.maintainer.consider(MANUAL)
    assert stop.error == "Could not save the compaction: No space left on device"
    assert state_of(desk) == before


async def test_summary_is_thrown_away_when_the_conversation_moved_on():
    desk = bench(sketch(LONG))
    running = await start(desk, MANUAL)
    desk.say(u("meanwhile"))
    desk.gateway.gate.set()
    stop = await running
    assert "changed meanwhile" in stop.error
    assert not any(isinstance(entry, CompactionEntry) for write in desk.saver.written for entry in write)


async def test_turn_over_the_threshold_starts_a_pass():
    desk = full()
    stop = await desk.maintainer.consider(turn(desk))
    assert (stop.error, stop.blocked) == (None, False)
    (end,) = desk.events(MaintenanceEnded)
    assert (end.reason, end.mid_turn, end.will_retry) == ("threshold", False, False)
    assert end.result.tokens_before == 30_300
    assert end.result.tokens_after < 23_616
    assert desk.phases == [Phase.MAINTAINING]


@pytest.mark.parametrize(
    "compaction", [{"enabled": False}, {"strategy": "off"}], ids=["disabled", "strategy-off"]
)
async def test_turn_over_the_threshold_starts_no_pass_when_switched_off(compaction):
    desk = full(settings=settings(**compaction))
    await desk.maintainer.consider(turn(desk))
    assert desk.events() == []
    assert (await desk.maintainer.consider(MANUAL)).error is None


@pytest.mark.parametrize("stop", [StopReason.ERROR, StopReason.ABORTED])
async def test_failed_turn_starts_no_pass(stop):
    desk = full()
    await desk.maintainer.consider(TurnFinished(a("x", stop=stop)))
    assert desk.events() == []


async def test_the_end_names_what_was_done_where_the_configured_pass_could_not_help():
    desk = full(settings=settings(strategy="shake"))
    await desk.maintainer.consider(turn(desk))
    ((started,), (ended,)) = desk.events(MaintenanceStarted), desk.events(MaintenanceEnded)
    assert (started.action, ended.action) == ("shake", "summary")
    assert ended.result.entry_id == desk.history.compaction_id


async def test_usage_from_before_the_compaction_starts_no_second_pass():
    desk = full()
    await desk.maintainer.consider(turn(desk))
    desk.say(u("next"), a("answer", usage=Usage(input=0, output=0)))
    await desk.maintainer.consider(turn(desk))
    assert len(desk.events(MaintenanceStarted)) == 1


async def dead_end():
    """A pass that leaves more than the recovery band."""
    desk = full()
    desk.gateway.reply = lambda *_: a(words(9_500))
    stop = await desk.maintainer.consider(turn(desk))
    return desk, stop


async def test_dead_end_warns_with_figures_and_marks_the_divider():
    desk, stop = await dead_end()
    assert (stop.blocked, stop.error) == (True, None)
    (notice,) = desk.events(Notice)
    assert (notice.level, notice.source) == ("warning", "compaction")
    assert "18,892" in notice.text
    assert "40,000" in notice.text
    mark = desk.saver.written[-1][-1]
    (divider,) = [entry for lines in desk.saver.written for entry in lines if entry.type == "compaction"]
    assert mark.fields == {
        "customType": "compaction.warning",
        "data": {"targetId": divider.id, "warning": notice.text},
    }
    events = desk.events(Notice, MaintenanceEnded)
    assert [type(event).__name__ for event in events] == ["Notice", "MaintenanceEnded"]


async def test_dead_end_stops_automatic_passes_until_the_next_user_message():
    desk, _ = await dead_end()
    over = a("more", usage=Usage(input=35_000, output=10))
    desk.say(over)
    await desk.maintainer.consider(TurnFinished(over))
    assert len(desk.events(MaintenanceStarted)) == 1
    desk.say(u("go on"), over)
    await desk.maintainer.consider(TurnFinished(over))
    assert len(desk.events(MaintenanceStarted)) == 2


@pytest.mark.parametrize("message_count", [1, 2])
async def test_what_was_given_up_before_a_prompt_holds_for_all_its_messages(message_count):
    desk = full()
    desk.gateway.reply = lambda *_: a("")
    submitted = [submit(desk) for _ in range(message_count)]
    await desk.maintainer.consider(PromptPending(10, submitted[-1]))
    for number in submitted:
        desk.say(u("go on"))
        desk.maintainer.note_prompt(number)
    over = a("more", usage=Usage(input=35_000, output=10))
    desk.say(over)
    await desk.maintainer.consider(ToolBoundary(over))
    assert len(desk.events(MaintenanceStarted)) == 1
    desk.say(u("no, stop"))
    desk.maintainer.note_prompt(submit(desk))
    desk.say(over)
    await desk.maintainer.consider(TurnFinished(over))
    assert len(desk.events(MaintenanceStarted)) == 2


async def test_what_was_given_up_does_not_hold_for_a_prompt_that_was_submitted_later():
    desk, _ = await dead_end()
    over = a("more", usage=Usage(input=35_000, output=10))
    desk.say(over)
    await desk.maintainer.consider(PromptPending(10, submit(desk)))
    assert len(desk.events(MaintenanceStarted)) == 2


async def test_what_was_given_up_holds_for_messages_that_waited_until_a_later_one_is_sent():
    desk = full()
    desk.gateway.reply = lambda *_: a("")
    waiting = [submit(desk) for _ in range(3)]
    over = a("more", usage=Usage(input=35_000, output=10))
    await desk.maintainer.consider(turn(desk))
    for number in waiting[:2]:
        await desk.maintainer.consider(PromptPending(10, number))
        desk.say(u("and this"))
        desk.maintainer.note_prompt(number)
        desk.say(over)
        await desk.maintainer.consider(TurnFinished(over))
    assert len(desk.events(MaintenanceStarted)) == 1
    later = submit(desk)
    desk.say(u("do it"))
    desk.maintainer.note_prompt(later)
    desk.say(u("the last that waited"))
    desk.maintainer.note_prompt(waiting[2])
    desk.say(over)
    await desk.maintainer.consider(TurnFinished(over))
    assert len(desk.events(MaintenanceStarted)) == 2


async def test_what_was_given_up_elsewhere_does_not_hold_again_with_a_message_that_waited():
    desk = full()
    desk.gateway.reply = lambda *_: a("")
    waiting = submit(desk)
    await desk.maintainer.consider(turn(desk))
    other, over = model("other", context_window=40_001), a("more", usage=Usage(input=35_000, output=10))
    desk.gateway.model, before = other, desk.gateway.model
    await desk.maintainer.consider(ManualRequested("nonsense"))
    desk.gateway.model = before
    desk.say(u("and this"))
    desk.maintainer.note_prompt(waiting)
    desk.say(over)
    await desk.maintainer.consider(TurnFinished(over))
    assert len(desk.events(MaintenanceStarted)) == 2


async def test_dead_end_is_forgotten_with_another_model():
    desk, _ = await dead_end()
    over = a("more", usage=Usage(input=39_000, output=10))
    desk.say(over)
    desk.gateway.model = model("other", context_window=41_000)
    await desk.maintainer.consider(TurnFinished(over))
    assert len(desk.events(MaintenanceStarted)) == 2


async def test_nothing_left_to_summarise_is_a_dead_end():
    last = a("x", usage=Usage(input=30_000, output=10))
    desk = bench(path(last), models=(SMALL,))
    stop = await desk.maintainer.consider(TurnFinished(last))
    assert stop.blocked
    assert desk.events(MaintenanceEnded)[0].skipped
    assert "nothing in it could be summarised" in desk.events(Notice)[0].text
    await desk.maintainer.consider(TurnFinished(last))
    assert len(desk.events(MaintenanceStarted)) == 1


async def test_overhead_above_the_threshold_warns_once_and_starts_nothing():
    desk = full()
    desk.services.tokens.set_overhead(words(24_000), ())
    await desk.maintainer.consider(turn(desk))
    await desk.maintainer.consider(turn(desk))
    assert desk.events(MaintenanceStarted) == []
    assert len(desk.events(Notice)) == 1


async def test_settings_that_are_not_honoured_are_told_once():
    desk = full(settings=settings(threshold="300000", strategy="snapcompact"))
    await desk.maintainer.consider(turn(desk))
    await desk.maintainer.consider(turn(desk))
    texts = [notice.text for notice in desk.events(Notice)]
    assert len(texts) == 2
    assert "39,999" in texts[0]
    assert "snapcompact" in texts[1]


async def test_clamp_warning_comes_again_for_another_small_window():
    desk = full(settings=settings(threshold="300000"))
    await desk.maintainer.consider(turn(desk))
    for window in (400_000, 50_000, 40_000):
        desk.gateway.model = model(context_window=window)
        await desk.maintainer.consider(turn(desk))
    texts = [notice.text for notice in desk.events(Notice) if "compaction.threshold" in notice.text]
    assert len(texts) == 2
    assert "50,000" in texts[1]


async def test_progress_goes_from_preparing_over_the_summary_to_writing():
    desk = bench(sketch(LONG))
    await desk.maintainer.consider(MANUAL)
    phases = [event.phase for event in desk.events(MaintenanceProgress)]
    assert list(dict.fromkeys(phases)) == ["prepare", "summary", "write"]


async def test_two_passes_keep_one_summary_and_extend_the_file_list():
    calls = [call("read", "1", path="a.py")]
    desk = bench(path(u(words(3000)), a(words(3000), calls), t("x", "1"), *parts(LONG)))
    await desk.maintainer.consider(MANUAL)
    for index in range(4):
        reading = a(words(3000), [call("edit", f"n{index}", path=f"b{index}.py")])
        desk.say(u(words(3000)), reading, t("done", f"n{index}", "edit"))
    desk.say(a("finished"))
    await desk.maintainer.consider(MANUAL)
    summaries = [message for message in desk.history.messages if isinstance(message, CompactionSummary)]
    assert len(summaries) == 1
    assert desk.history.messages[0] is summaries[0]
    assert "a.py (Read)" in summaries[0].summary
    assert "b0.py (Write)" in summaries[0].summary
    assert (
        "<previous-summary>" in desk.gateway.prompts[-1] or "<previous-summary>" in desk.gateway.prompts[-2]
    )
    dividers = [
        entry for write in desk.saver.written for entry in write if isinstance(entry, CompactionEntry)
    ]
    assert dividers[1].details["base"] == dividers[0].id


async def test_edits_of_an_earlier_pass_are_not_made_again():
    desk = bench(sketch(SPLIT), settings=settings(keep_recent_tokens=5_000))
    await desk.maintainer.consider(MANUAL)
    desk.say(u(words(5000)), a(words(3500)))
    await desk.maintainer.consider(MANUAL)
    edits = [entry for write in desk.saver.written for entry in write if isinstance(entry, ContextEditEntry)]
    assert [edit.target_id for edit in edits] == ["e7"]
