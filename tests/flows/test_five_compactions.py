"""A summarizer that drops everything: the last request still stands in every context, pass after pass."""

import pytest

from musepi_tui.runtime.intents import Compact
from tests.support.harness import reopened, running
from tests.support.passes import (
    WINDOW,
    check_request,
    passes,
    solid,
    stored,
    summary_of,
    texts,
)

SETTINGS = ("compaction.keepRecentTokens=1000", "compaction.threshold=17000")
REQUEST = "Port the parser to Rust. Never touch tests/golden, keep the public names, and answer in French."
DROPPED = "## Goal\nUnknown.\n\n## Next Steps\n1. Ask."


@pytest.fixture
def model(model):
    model.summary = model.says(DROPPED)
    return model


def requests_in(text):
    return text.count(REQUEST)


async def test_last_request_survives_five_passes_inside_one_turn(over_http, model, project):
    (project / "a.txt").write_text("alpha")
    async with running(over_http(*SETTINGS, row=WINDOW)) as harness:
        model.turns.append(model.says("bonjour"))
        await harness.prompt("Hello, use tabs everywhere")
        for number in range(10):
            call = ("read", {"path": "a.txt", "limit": number + 1}, f"call-{number}")
            model.turns.append(model.says(8_200, tools=[call]))
        await harness.prompt(REQUEST)
        done = [began["midTurn"] for began, end in passes(harness) if end["result"] is not None]
        assert done.count(True) >= 5
        path = harness.file
        for request in model.asked:
            assert requests_in(texts(request)) == (0 if request is model.asked[0] else 1)
            check_request(request)
        file = stored(path)
        assert len(file.compactions) == len(done)
        for divider in file.compactions:
            assert f"<last-request>\n{REQUEST}\n</last-request>" in divider.summary
            assert divider.summary.count("<last-request>") == 1
        live = harness.runtime.context_messages()
    async with running(reopened(over_http(*SETTINGS, row=WINDOW), path)) as harness:
        assert harness.runtime.context_messages() == live
        await harness.prompt("et maintenant")
    assert requests_in(texts(model.asked[-1])) == 1


async def test_last_request_survives_continuations(over_http, model):
    async with running(over_http(*SETTINGS, row=WINDOW)) as harness:
        model.turns += [model.says(9_000), model.says(8_500), *[model.says(15_800)] * 3]
        await harness.prompt("Hello")
        await harness.prompt(REQUEST)
        assert [end["result"] is not None for _, end in passes(harness)] == [True] * 4
        await harness.prompt("et maintenant")
    assert [requests_in(texts(request)) for request in model.asked] == [0, 1, 1, 1, 1, 1]
    assert REQUEST in summary_of(model.asked[-1])


async def test_newer_request_takes_the_place_of_the_older_one(over_http, model):
    async with running(over_http(*SETTINGS, row=WINDOW)) as harness:
        for number in range(5):
            model.turns.append(model.says(4_000))
            await harness.prompt(f"request {number}: {REQUEST}")
            model.turns.append(model.says(4_000))
            assert (await harness.settle(Compact())).ok
            (block,) = [
                message.summary for message in live(harness) if type(message).__name__ == "CompactionSummary"
            ]
            assert f"<last-request>\nrequest {number}: {REQUEST}\n</last-request>" in block
            assert block.count("<last-request>") == 1


async def test_kept_request_is_not_repeated_in_the_summary(over_http, model):
    settings = ("compaction.keepRecentTokens=3000", *SETTINGS[1:])
    async with running(over_http(*settings, row=WINDOW)) as harness:
        model.turns += [model.says(9_000), model.says(2_500)]
        await harness.prompt("Hello")
        await harness.prompt(f"{REQUEST} {solid(700)}")
        assert (await harness.settle(Compact())).ok
        await harness.prompt("et maintenant")
    assert "<last-request>" not in summary_of(model.asked[-1])
    assert requests_in(texts(model.asked[-1])) == 1


def live(harness):
    return harness.runtime._stage.desk.history.messages
