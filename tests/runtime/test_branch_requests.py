"""The requests for the summary of a branch: who is asked, in how many parts, what follows a failure."""

import pytest

from musepi_tui.base.errors import EmptySummaryError, ErrorKind, MaintenanceError, ProviderError
from musepi_tui.base.resources import read_prompt
from musepi_tui.runtime.candidates import Candidate, Chain
from musepi_tui.runtime.services import llm_templates
from musepi_tui.runtime.summarizer import BranchOrder, Tools, summarize_branch
from musepi_tui.session.messages import StopReason, Usage
from musepi_tui.settings.schema import RetrySettings
from tests.support.builders import a, call, stub_count, t, u, words
from tests.support.clock import FakeClock
from tests.support.fake_gateway import FakeGateway, model, prompt_of

SAID = (u("try it"), a("tried", [call("read", path="x")]), t("found"), a("it failed"))


class Desk:
    """A summarizer's surroundings."""

    def __init__(self, *models):
        self.gateway = FakeGateway(*(models or (model(max_tokens=64_000),)))
        self.told, self.events = [], []

    def run(self, messages=SAID, instructions=None):
        chain = Chain(tuple(Candidate(row, None, row.context_window) for row in self.gateway.rows))
        tools = Tools(
            self.gateway,
            FakeClock(),
            stub_count,
            llm_templates(),
            RetrySettings(),
            self.told.append,
            lambda _: None,
            self.events.append,
        )
        return summarize_branch(BranchOrder(messages, chain, instructions), tools)


async def test_branch_is_asked_for_once_with_its_prompt():
    desk = Desk()
    summary = await desk.run()
    ((_, request),) = desk.gateway.requests
    assert request.system == read_prompt("summarization-system")
    assert (request.tools, request.max_tokens, request.cache_retention) == ((), 2048, "none")
    assert prompt_of(request) == (
        '<conversation>\n[User]: try it\n\n[Assistant]: tried\n\n[Tool Call]: read(path="x")\n\n'
        f"[Tool Result]: found\n\n[Assistant]: it failed\n</conversation>\n\n{read_prompt('branch-summary')}"
    )
    assert (summary.model, summary.usage.input) == ("test/model", 100)


async def test_instructions_of_the_person_replace_the_prompt():
    desk = Desk()
    await desk.run(instructions="Only the files.")
    assert desk.gateway.prompts[0].endswith("</conversation>\n\nOnly the files.")


async def test_answer_loses_the_tags_around_it():
    desk = Desk()
    desk.gateway.reply = lambda *_: a("<summary>\n## Goal\nIt.\n</summary>")
    assert (await desk.run()).text == "## Goal\nIt."


async def test_another_provider_is_asked_after_a_refused_key_and_for_no_other_failure():
    desk = Desk(model("first", "one"), model("second", "two"))
    desk.gateway.refused = {"one/first"}
    assert (await desk.run()).model == "two/second"
    desk = Desk(model("first", "one"), model("second", "two"))
    desk.gateway.reply = lambda *_: ProviderError("down", kind=ErrorKind.SERVER, retryable=True)
    with pytest.raises(ProviderError, match="down"):
        await desk.run()
    assert len(desk.gateway.requests) == 1


async def test_answer_that_was_cut_off_is_asked_for_with_twice_the_room():
    desk = Desk()
    replies = [a("half", stop=StopReason.LENGTH, usage=Usage(10, 20)), a("whole", usage=Usage(10, 30))]
    desk.gateway.reply = lambda *_: replies.pop(0)
    summary = await desk.run()
    assert [request.max_tokens for _, request in desk.gateway.requests] == [2048, 4096]
    assert (summary.text, summary.usage.output) == ("whole", 50)


async def test_blank_answer_is_an_error():
    desk = Desk()
    desk.gateway.reply = lambda *_: a("  ")
    with pytest.raises(EmptySummaryError):
        await desk.run()


async def test_branch_that_does_not_fit_a_small_window_is_asked_for_in_parts():
    desk = Desk(model(context_window=8_192, max_tokens=1000))
    summary = await desk.run((u(words(1900)), a(words(1900)), u(words(1900)), a(words(1900))), "In one line.")
    first, *others = desk.gateway.prompts
    assert "part 1 of 4" in first
    assert "In one line." not in first
    assert others[-1].endswith("In one line.")
    assert summary.stages > 1


async def test_message_that_fits_no_window_is_an_error():
    desk = Desk(model(context_window=8_192))
    with pytest.raises(MaintenanceError, match="too large for the largest window"):
        await desk.run((u(words(9000)),))
