from dataclasses import replace

import pytest

from musepi_tui.runtime.events import SessionReady
from musepi_tui.runtime.intents import Cancel, ForkSession, OpenSession, SubmitPrompt, WaitForSession
from tests.support.builders import a, call, path, u
from tests.support.screens import on_stage

BUSY = "session is open in another musepi (pid 4711)"
NEWER = "session file version 4 is newer than this musepi understands (3)"


def busy(runtime):
    runtime.view_now = replace(runtime.view_now, read_only=True, read_only_cause=BUSY, can_wait=True)


def newer(runtime):
    runtime.view_now = replace(runtime.view_now, read_only=True, read_only_cause=NEWER)


def own_again(runtime):
    view = replace(runtime.view_now, read_only=False, read_only_cause=None, can_wait=False)
    return SessionReady(view, "resume")


async def test_the_choices_are_asked_at_once(tmp_path):
    async with on_stage(tmp_path, prepare=busy) as stage:
        await stage.shows("Session is open in another musepi (pid 4711)")
        for row in ("Fork", "Wait", "Read", "Close"):
            assert row in stage.text


async def test_a_newer_file_cannot_be_waited_for(tmp_path):
    async with on_stage(tmp_path, prepare=newer) as stage:
        await stage.shows("Session file version 4 is newer than this musepi understands (3)")
        assert "Fork" in stage.text
        assert "Wait" not in stage.text


async def test_the_bar_stays_with_the_whole_sentence(tmp_path):
    async with on_stage(tmp_path, prepare=busy) as stage:
        await stage.shows("Fork")
        await stage.press("escape")
        await stage.settle()
        shown = " ".join(stage.text.split())
        assert f"{BUSY}; fork it (/fork) or close the other one" in shown
        assert "shown as it was when it was read · enter: read it again" in shown


async def test_enter_in_an_empty_editor_opens_the_choices(tmp_path):
    async with on_stage(tmp_path, prepare=busy) as stage:
        await stage.shows("Fork")
        await stage.press("escape")
        await stage.until(lambda: "Fork" not in stage.text)
        await stage.press("enter")
        await stage.shows("Fork")
        assert "Read again" in stage.text


async def test_the_session_is_read_again_without_another_question(tmp_path):
    def stored(runtime):
        busy(runtime)
        runtime.view_now = replace(runtime.view_now, file=tmp_path / "s.jsonl")

    async with on_stage(tmp_path, prepare=stored) as stage:
        await stage.shows("Fork")
        await stage.press("escape")
        await stage.press("enter")
        await stage.shows("Read again")
        await stage.press("down", "down", "enter")
        assert stage.sent == [OpenSession(str(tmp_path / "s.jsonl"), "again")]
        await stage.tell(SessionReady(stage.runtime.view_now, "reload"))
        assert "Fork" not in stage.text
        assert "read-only" in stage.text


async def test_what_is_typed_into_the_question_goes_to_the_editor(tmp_path):
    async with on_stage(tmp_path, prepare=newer) as stage:
        await stage.shows("Fork")
        await stage.type("hi")
        await stage.press("enter")
        await stage.shows("Fork")
        assert stage.draft == "hi"
        assert stage.sent == []


async def test_a_call_that_runs_elsewhere_is_not_drawn_as_cancelled(tmp_path):
    entries = path(u("go"), a(calls=[call("bash", command="make")]))
    async with on_stage(tmp_path, *entries, prepare=busy) as stage:
        await stage.press("escape")
        await stage.shows("make")
        assert "cancelled" not in stage.text
        await stage.tell(own_again(stage.runtime))
        await stage.shows("cancelled")


@pytest.mark.parametrize(("keys", "sent"), [((), ForkSession()), (("down",), WaitForSession())])
async def test_a_choice_is_carried_out(keys, sent, tmp_path):
    async with on_stage(tmp_path, prepare=busy) as stage:
        await stage.shows("Fork")
        await stage.press(*keys, "enter")
        assert stage.sent == [sent]


async def test_a_message_stays_in_the_editor_and_the_choices_come_back(tmp_path):
    async with on_stage(tmp_path, prepare=busy) as stage:
        await stage.shows("Fork")
        await stage.press("escape")
        await stage.type("hello")
        await stage.press("enter")
        await stage.shows("Fork")
        assert stage.draft == "hello"
        assert not any(isinstance(intent, SubmitPrompt) for intent in stage.sent)


async def test_esc_ends_the_wait(tmp_path):
    async with on_stage(tmp_path, prepare=busy) as stage:
        await stage.shows("Fork")
        await stage.press("down", "enter")
        await stage.settle()
        assert "waiting for the other one to close it" in stage.text
        await stage.press("escape")
        assert stage.sent == [WaitForSession(), Cancel()]
        stage.runtime.settle(0, cancelled=True)
        await stage.settle()
        assert "waiting for the other one" not in stage.text
        assert "is yours now" not in stage.text


async def test_the_session_is_taken_over_when_it_is_free(tmp_path):
    async with on_stage(tmp_path, *path(u("hi"), a("hello")), prepare=busy) as stage:
        await stage.shows("Fork")
        await stage.press("down", "enter")
        await stage.tell(own_again(stage.runtime))
        stage.runtime.settle(0)
        await stage.shows("The session is yours now")
        assert "read-only" not in stage.text


async def test_the_choices_go_when_the_session_becomes_writable(tmp_path):
    async with on_stage(tmp_path, prepare=busy) as stage:
        await stage.shows("Fork")
        await stage.tell(own_again(stage.runtime))
        assert "Fork" not in stage.text
        await stage.type("now it goes")
        await stage.press("enter")
        assert stage.sent == [SubmitPrompt("now it goes")]


@pytest.mark.parametrize("size", [(40, 12), (120, 40)])
async def test_the_editor_is_there_beside_the_bar(size, tmp_path):
    async with on_stage(tmp_path, *path(u("hi"), a("hello")), prepare=busy, size=size) as stage:
        await stage.shows("Fork")
        await stage.press("escape")
        await stage.type("draft")
        await stage.settle()
        assert "draft" in stage.text
        assert "close the other one" in " ".join(stage.text.split())
