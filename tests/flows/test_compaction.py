"""Maintenance over real HTTP: after a turn, by hand, and what a resumed session sends."""

import pytest

from musepi_tui.runtime.events import MaintenanceEnded, MaintenanceStarted
from musepi_tui.runtime.intents import Compact
from musepi_tui.session.messages import CompactionSummary
from tests.support.harness import reopened, running

LONG = "word " * 3000
SMALL = ("compaction.keepRecentTokens=200", "compaction.threshold=6000")


def usage(api: str, prompt: int, answer: int) -> dict[str, int]:
    if api == "anthropic-messages":
        return {"input_tokens": prompt, "output_tokens": answer}
    return {"prompt_tokens": prompt, "completion_tokens": answer}


@pytest.fixture
def filled(server, reply, api):
    """Two turns, the second of which crosses the threshold."""
    server.script(
        reply(text=LONG, usage=usage(api, 500, 3700)),
        reply(text="shorter " * 300, usage=usage(api, 4300, 2000)),
    )
    server.fallback = reply(text="## Goal\nKeep counting.\n\n## Next\nCount on.")
    return server


async def test_a_turn_over_the_threshold_is_compacted_and_goes_on_smaller(over_http, filled, api):
    async with running(over_http(*SMALL)) as harness:
        await harness.prompt("first")
        assert harness.of(MaintenanceStarted) == []
        await harness.prompt("second")
        ended = harness.of(MaintenanceEnded)[0]
        assert (ended.reason, ended.error, ended.aborted) == ("threshold", None, False)
        assert ended.result.tokens_after < ended.result.tokens_before
        count = len(filled.requests)
        await harness.prompt("third")
        assert harness.runtime.outcome.stop == "ok"
        path, live = harness.file, harness.runtime.context_messages()
    body = str(filled.requests[count].body)
    assert "Keep counting." in body
    assert LONG[:500] not in body
    assert isinstance(harness.runtime._stage.desk.history.messages[0], CompactionSummary)
    async with running(reopened(over_http(*SMALL), path)) as harness:
        assert harness.runtime.context_messages() == live


async def test_a_manual_pass_with_a_focus_asks_for_it(over_http, filled):
    async with running(over_http(SMALL[0])) as harness:
        await harness.prompt("first")
        await harness.prompt("second")
        count = len(filled.requests)
        settled = await harness.settle(Compact(focus="the parser module"))
        assert settled.ok, settled.error
    assert any("the parser module" in str(request.body) for request in filled.requests[count:])
    assert all(not request.body.get("tools") for request in filled.requests[count:])
