from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.providers.types import BlockDelta, BlockEnd, BlockStart
from musepi_tui.runtime.events import (
    AgentEnded,
    AgentStarted,
    ApprovalAsked,
    ApprovalClosed,
    AssistantDelta,
    AssistantEnded,
    AssistantStarted,
    EntryAppended,
    Event,
    Notice,
    Phase,
    PhaseChanged,
    RuntimeFault,
    SessionReady,
    ToolEnded,
    ToolProgress,
    ToolStarted,
)
from musepi_tui.session.entries import Entry, EntryHead
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from musepi_tui.tools.types import ToolView, view_to_json
from musepi_tui.tui.transcript import blocks
from musepi_tui.tui.transcript.blocks import Block, Item, ItemKind, NoticeBlock, ToolBlock, ToolState
from musepi_tui.tui.transcript.model import TranscriptModel
from tests.support.builders import (
    Part,
    a,
    branch_summary,
    call,
    compaction,
    custom,
    edit,
    entry,
    path,
    state,
    t,
    u,
)
from tests.support.transcripts import model_of, reader, session_view


def tell_answer(message: AssistantMessage, live_id: str) -> list[Event]:
    """The events of an answer before its entry exists."""
    events: list[Event] = [AssistantStarted(live_id, message.model, message.provider)]
    for index, block in enumerate(message.content):
        match block:
            case TextBlock():
                events += [
                    AssistantDelta(live_id, BlockStart("text", index)),
                    AssistantDelta(live_id, BlockDelta("text", index, block.text)),
                    AssistantDelta(live_id, BlockEnd("text", index, block.text)),
                ]
            case ThinkingBlock():
                events += [
                    AssistantDelta(live_id, BlockStart("thinking", index)),
                    AssistantDelta(live_id, BlockDelta("thinking", index, block.thinking)),
                    AssistantDelta(live_id, BlockEnd("thinking", index, block.thinking)),
                ]
            case ToolCallBlock():
                events += [
                    AssistantDelta(live_id, BlockStart("toolcall", index, block.name, block.id)),
                    AssistantDelta(live_id, BlockDelta("toolcall", index, "{", {})),
                    AssistantDelta(live_id, BlockEnd("toolcall", index, tool_call=block)),
                ]
            case _:
                continue
    return events


def live_events(entries: Sequence[Entry], first: int = 0) -> list[Event]:
    """How a session with these entries, the first of them number ``first``, was told while it happened."""
    events: list[Event] = []
    for number, made in enumerate(entries, first):
        message = getattr(made, "message", None)
        if isinstance(message, AssistantMessage):
            live_id = f"live-{number}"
            events += tell_answer(message, live_id)
            events += [EntryAppended(made, live_id=live_id), AssistantEnded(live_id, made.id)]
            for tool_call in message.content:
                if isinstance(tool_call, ToolCallBlock):
                    view = ToolView("tail", "$ x")
                    events.append(ToolStarted(tool_call.id, tool_call.name, {}, view))
                    events.append(ToolProgress(tool_call.id, "so far"))
                    events.append(ToolEnded(tool_call.id, tool_call.name, "x", view, False, 1500))
        else:
            events.append(EntryAppended(made))
        if number % 3 == 0:
            events.append(Notice("info", "by the way", "test"))
    events.append(AgentEnded())
    return events


def stored_items(model: TranscriptModel) -> list[Item]:
    return [item for item in model.items if not item.id.startswith("local:")]


def without_times(block: Block) -> Block:
    match block:
        case ToolBlock():
            return replace(block, seconds=None)
        case blocks.ThinkingBlock():
            return replace(block, seconds=None)
        case _:
            return block


RESULT = view_to_json(ToolView("tail", "$ x"))
TWO = t("two", "c2", details={"view": RESULT})
STEPS: st.SearchStrategy[list[Part]] = st.sampled_from(
    [
        [u("question")],
        [a("answer")],
        [a("answer", thinking="hm")],
        [
            a("", [call("bash", "c1"), call("read", "c2")]),
            t("one", "c1"),
            t("two", "c2", details={"view": RESULT}),
        ],
        [a("look", [call("bash", "c1")]), t("again", "c1", error=True)],
        [a("stopped", [call("bash", "c9")], stop=StopReason.ABORTED)],
        [a(stop=StopReason.ERROR, error_message="503")],
        [a("half", stop=StopReason.ERROR, error_message="cut")],
        [compaction("sum")],
        [branch_summary("left")],
        [custom("note"), custom("hidden", display=False), custom("<handoff-context>x", "handoff")],
        [
            state("model_change", provider="p", modelId="m"),
            state("thinking_level_change", thinkingLevel="low"),
        ],
        [state("label", targetId="e1", label="here"), state("session_info", name="n")],
        [state("custom", customType="compaction.warning", data={"warning": "tight"})],
        [BashExecution("ls", "a")],
        [t("nobody asked", "lost")],
        [edit("e2", "[pruned]"), edit("e4", "[pruned twice]")],
    ]
)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_items_told_live_are_the_items_after_resume(steps):
    entries = path(*(part for step in steps for part in step))
    live = TranscriptModel(reader(entries))
    live.reset(session_view([]))
    live.apply(AgentStarted())
    for event in live_events(entries):
        live.apply(event)
        assert len(live.items) >= 0  # items are looked at all the time, so nothing stale may be kept
    resumed = stored_items(model_of(entries))
    told = stored_items(live)
    assert [(item.id, item.kind) for item in told] == [(item.id, item.kind) for item in resumed]
    assert [without_times(item.block) for item in told] == [without_times(item.block) for item in resumed]


@given(st.lists(STEPS, max_size=8), st.integers(0, 10))
def test_whole_session_after_its_tail_is_as_if_opened_at_once(steps, tail):
    entries = path(*(part for step in steps for part in step))
    model = TranscriptModel(reader(entries))
    model.reset(session_view(entries, phase=Phase.LOADING, tail=min(tail, len(entries))))
    assert len(model.items) >= 0
    model.apply(SessionReady(session_view(entries)))
    assert model.items == model_of(entries).items


def test_answer_blocks_become_items_in_their_order():
    entries = path(u("hi"), a("text", [call("read", "c", path="x")], thinking="hm"), t("ok", "c"))
    assert [(item.id, item.kind) for item in model_of(entries).items] == [
        ("e1", ItemKind.USER),
        ("e2/0", ItemKind.THINKING),
        ("e2/1", ItemKind.ASSISTANT),
        ("e2/2", ItemKind.TOOL),
    ]


def test_opening_reads_nothing_and_the_end_reads_little():
    entries = path(*(part for _ in range(1000) for part in (u("q"), a("", [call("bash", "c")]), t("r", "c"))))
    read: list[str] = []

    def counted(entry_id: str) -> Entry:
        read.append(entry_id)
        return by_id(entry_id)

    by_id = reader(entries)
    model = TranscriptModel(counted)
    model.reset(session_view(entries))
    assert model.estimates(80)
    assert read == []
    assert len(model.items_at(len(model) - 2)) == 1
    assert len(read) <= 3


def test_heads_without_roles_are_read_when_they_are_looked_at():
    entries = path(u("q"), a("", [call("bash", "c")]), t("r", "c"), a("done"))
    heads = [EntryHead(made.id, made.parent_id, made.type, made.timestamp, 0, 400) for made in entries]
    model = TranscriptModel(reader(entries))
    model.reset(session_view(entries, heads=heads))
    assert model.items == model_of(entries).items


def test_equal_call_ids_of_different_answers_are_told_apart():
    entries = path(a("", [call("x", "c")]), t("one", "c"), a("", [call("x", "c")]), t("two", "c"))
    texts = [item.block.text for item in model_of(entries).items if isinstance(item.block, ToolBlock)]
    assert texts == ["one", "two"]


def live_model(*parts: Part) -> TranscriptModel:
    model = model_of(path(*parts))
    model.apply(AgentStarted())
    model.take_changes()
    return model


def tool_blocks(model: TranscriptModel) -> list[ToolBlock]:
    return [item.block for item in model.items if isinstance(item.block, ToolBlock)]


def test_call_goes_through_its_states():
    model = live_model(u("go"))
    message = a("", [call("bash", "c", command="make")])
    view = ToolView("tail", "$ make")
    states: list[tuple[ToolState, str]] = []

    def tell(event: Event) -> None:
        assert model.apply(event)
        states.extend((block.state, block.text) for block in tool_blocks(model))

    for event in tell_answer(message, "live")[:2]:
        model.apply(event)
    tell(AssistantDelta("live", BlockEnd("toolcall", 0, tool_call=message.content[0])))  # pyright: ignore
    tell(EntryAppended(entry(message, "e2", "e1"), live_id="live"))
    model.apply(AssistantEnded("live", "e2"))
    tell(ApprovalAsked("r", "c", "bash", {}, "writes", None, view))
    tell(ApprovalClosed("r", "allow", ""))
    tell(ToolStarted("c", "bash", {}, view))
    tell(ToolProgress("c", "half"))
    tell(ToolEnded("c", "bash", "all", view, False, 2500))
    tell(EntryAppended(entry(t("all of it", "c", "bash"), "e3", "e2")))
    assert states == [
        (ToolState.PENDING, ""),
        (ToolState.PENDING, ""),
        (ToolState.WAITING, ""),
        (ToolState.PENDING, ""),
        (ToolState.RUNNING, ""),
        (ToolState.RUNNING, "half"),
        (ToolState.OK, "all"),
        (ToolState.OK, "all of it"),
    ]
    assert tool_blocks(model)[0].seconds == 2.5


def test_call_nobody_answered_is_cancelled_when_the_turn_ends():
    model = live_model(u("go"))
    model.apply(EntryAppended(entry(a("", [call("bash", "c")]), "e2", "e1")))
    assert tool_blocks(model)[0].state is ToolState.PENDING
    assert model.apply(AgentEnded())
    assert tool_blocks(model)[0].state is ToolState.CANCELLED


def test_thinking_is_timed_while_it_is_watched():
    now = [10.0]
    model = TranscriptModel(reader([]), now=lambda: now[0])
    model.reset(session_view([]))
    message = a("so", thinking="hm")
    started, delta, ended, *others = tell_answer(message, "live")[1:]
    model.apply(AssistantStarted("live", "m", "p"))
    model.apply(started)
    model.apply(delta)
    now[0] = 22.0
    for event in (ended, *others):
        model.apply(event)
    assert model.items[0].block == blocks.ThinkingBlock("hm", seconds=12.0)
    model.apply(EntryAppended(entry(message, "e1", None), live_id="live"))
    assert model.items[0].block == blocks.ThinkingBlock("hm", seconds=12.0)
    assert model.live_name("e1/0") == "live/0"


def test_entries_that_come_while_an_answer_streams_stand_before_it():
    model = live_model(u("go"))
    model.apply(AssistantStarted("live", "m", "p"))
    model.apply(AssistantDelta("live", BlockStart("text", 0)))
    model.apply(AssistantDelta("live", BlockDelta("text", 0, "hi")))
    model.apply(EntryAppended(entry(state("model_change", model="a/b"), "e2", "e1")))
    assert [item.id for item in model.items] == ["e1", "e2", "live/0"]


def test_answer_that_was_not_kept_disappears():
    model = live_model(u("go"))
    model.apply(AssistantStarted("live", "m", "p"))
    model.apply(AssistantDelta("live", BlockDelta("text", 0, "hi")))
    model.apply(AssistantEnded("live", None))
    assert [item.id for item in model.items] == ["e1"]


def test_entry_told_twice_is_shown_once():
    model = live_model(u("go"))
    model.apply(EntryAppended(entry(u("go"), "e1", None)))
    assert [item.id for item in model.items] == ["e1"]


def test_equal_notices_in_a_row_are_counted():
    model = live_model(u("go"))
    for text in ("slow", "slow", "other", "slow"):
        model.notice("warning", text)
    assert [item.block for item in model.items[1:]] == [
        NoticeBlock("warning", "slow", count=2),
        NoticeBlock("warning", "other"),
        NoticeBlock("warning", "slow"),
    ]


FAILED = a(stop=StopReason.ERROR, error_message="503: busy", error_status=503)


def told(model: TranscriptModel) -> list[Block]:
    return [item.block for item in model.items if not isinstance(item.block, blocks.HeaderBlock)][1:]


def test_failure_that_is_tried_again_is_one_quiet_line():
    assert told(live_model(u("hi"), FAILED, a("done"))) == [
        NoticeBlock("info", "503: busy · tried again"),
        blocks.AnswerBlock("done"),
    ]


def test_equal_failures_in_a_row_are_one_error():
    model = live_model(u("hi"), FAILED, FAILED, FAILED)
    model.apply(AgentEnded("error"))
    assert [type(block) for block in told(model)] == [blocks.ErrorBlock]


def test_failure_has_no_remedy_while_it_may_be_tried_again():
    model = live_model(u("hi"), FAILED)
    assert told(model) == [blocks.ErrorBlock("503: busy")]
    assert model.apply(AgentEnded("error"))
    (error,) = told(model)
    assert isinstance(error, blocks.ErrorBlock)
    assert error.remedy


def test_explanation_of_a_failure_stands_at_the_failed_answer():
    model = live_model(u("hi"), FAILED)
    model.apply(Notice("error", "p/m: 503: busy. Is it running?", "provider"))
    model.apply(AgentEnded("error"))
    assert told(model) == [blocks.ErrorBlock("p/m: 503: busy", "Is it running?")]


def test_explanation_of_something_else_is_a_notice():
    model = live_model(u("hi"), FAILED)
    model.apply(Notice("error", "the key is missing", "provider"))
    assert [type(block) for block in told(model)] == [blocks.ErrorBlock, NoticeBlock]


def test_bug_of_the_runtime_is_told():
    model = live_model()
    model.apply(RuntimeFault("loop", "oops"))
    assert model.items[0].block == NoticeBlock("error", "Something went wrong in loop: oops")


def test_events_that_show_elsewhere_change_nothing():
    assert not live_model().apply(PhaseChanged(Phase.IDLE))


def test_header_stays_first_and_notices_stay_where_they_came_in_the_same_session():
    entries = path(u("one"), a("two"), u("three"))
    model = TranscriptModel(reader(entries))
    model.set_header(("musepi",))
    model.reset(session_view(entries[:2]))
    model.notice("info", "here")
    model.reset(session_view(entries))
    assert [item.kind for item in model.items] == ["header", "user", "assistant", "notice", "user"]
    other = session_view(entries[:1])
    model.reset(replace(other, header=replace(other.header, id="another")))
    assert [item.kind for item in model.items] == ["header", "user"]
    model.set_header(())
    assert [item.kind for item in model.items] == ["user"]


def test_toggles_hold_for_all_and_for_one():
    model = live_model(u("go"), a("x", [call("bash", "c")], thinking="hm"), t("r", "c"))
    user, thinking, _, tool = model.items
    assert [model.is_expanded(item) for item in (user, thinking, tool)] == [False, True, False]
    model.toggle(tool)
    assert [model.is_expanded(item) for item in (user, tool)] == [False, True]
    model.toggle_thinking()
    assert not model.is_expanded(thinking)
    model.toggle_expanded()
    assert [model.is_expanded(item) for item in (user, thinking, tool)] == [True, False, True]


def test_toggle_of_one_item_stays_with_it_when_its_answer_is_stored():
    model = live_model(u("go"))
    message = a("", [call("bash", "c")])
    for event in tell_answer(message, "live"):
        model.apply(event)
    model.toggle(model.items[-1])
    model.apply(EntryAppended(entry(message, "e2", "e1"), live_id="live"))
    assert model.items[-1].id == "e2/0"
    assert model.is_expanded(model.items[-1])


def test_model_changes_can_be_hidden():
    model = live_model(state("model_change", model="a/b"), u("go"))
    model.show_model_changes(shown=False)
    assert [item.kind for item in model.items] == ["user"]


@pytest.mark.parametrize("width", [1, 20, 80, 300])
def test_estimates_grow_with_the_text_and_hidden_entries_take_nothing(width):
    entries = path(u("x"), u("x" * 5000), a("y" * 5000), t("r", "c"), state("label"), compaction("s"))
    short, long_user, answer, result, label, divider = model_of(entries).estimates(width)
    assert short == 2
    assert long_user <= 42
    assert answer >= 5000 // max(20, width)
    assert (result, label, divider) == (0, 0, 2)
