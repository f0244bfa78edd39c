import asyncio
import logging

import pytest

from musepi_tui.base.errors import EmptySummaryError, ErrorKind, MaintenanceError, ProviderError
from musepi_tui.base.http import close_shared_client
from musepi_tui.base.resources import read_prompt
from musepi_tui.context.estimate import Estimator
from musepi_tui.context.prepare import PrepareOptions, prepare_compaction
from musepi_tui.providers.apis import load_provider
from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.runtime import remote_summary
from musepi_tui.runtime.candidates import find_chain
from musepi_tui.runtime.gateway import ModelGateway
from musepi_tui.runtime.remote_summary import ask_endpoint
from musepi_tui.runtime.services import llm_templates
from musepi_tui.runtime.summarizer import SummaryOrder, Tools, summarize
from musepi_tui.settings.schema import ModelRoles, RetrySettings, Settings
from tests.support.builders import stub_count
from tests.support.clock import FakeClock
from tests.support.fake_gateway import FakeGateway
from tests.support.harness import write_models
from tests.support.server import (
    ModelServer,
    drop_reply,
    hang_reply,
    json_reply,
    openai_reply,
    status_reply,
)
from tests.support.sketch import sketch

SYSTEM = read_prompt("summarization-system")
TEXT = "## Goal\nFrom the endpoint"


@pytest.fixture
async def server():
    with ModelServer() as running:
        yield running
        await close_shared_client()


@pytest.fixture
def gateway(tmp_path, server):
    """On a model that lives at the address of the server and has a key."""
    write_models(tmp_path, "openai-completions", f"{server.base_url}/v1")
    registry = ModelRegistry.load(tmp_path, {})
    made = ModelGateway(Settings(), registry, load_provider)
    made.choose(registry.find("local", "m1"), made.thinking)
    return made


def endpoint_of(gateway, address):
    return find_chain(None, None, ModelRoles(), gateway, address).candidates[0]


async def ask(gateway, address):
    return await ask_endpoint(endpoint_of(gateway, address), gateway, "PROMPT")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat/completions/"])
async def test_a_chat_endpoint_gets_messages_and_the_key_of_its_address(server, gateway, path):
    server.script(json_reply({"choices": [{"message": {"content": TEXT}}]}))
    assert await ask(gateway, server.base_url + path) == TEXT
    (seen,) = server.requests
    assert (seen.method, seen.path) == ("POST", path)
    assert seen.headers["authorization"] == "Bearer secret-key"
    assert seen.body == {
        "model": "m1",
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "PROMPT"}],
        "stream": False,
    }


async def test_another_endpoint_gets_two_texts(server, gateway):
    server.script(json_reply({"summary": TEXT}))
    assert await ask(gateway, f"{server.base_url}/summarise") == TEXT
    assert server.requests[0].body == {"systemPrompt": SYSTEM, "prompt": "PROMPT"}


async def test_a_key_is_not_sent_to_another_address(server, gateway):
    with ModelServer(json_reply({"summary": TEXT})) as other:
        await ask(gateway, f"{other.base_url}/summarise")
        assert "authorization" not in other.requests[0].headers


async def test_parts_of_a_chat_answer_are_joined(server, gateway):
    parts = [{"type": "text", "text": "## Goal\n"}, {"type": "text", "text": "X"}, {"type": "image"}]
    server.script(json_reply({"choices": [{"message": {"content": parts}}]}))
    assert await ask(gateway, f"{server.base_url}/chat/completions") == "## Goal\nX"


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("/x", {"text": "no"}, "without summary"),
        ("/x", {"summary": 5}, "without summary"),
        ("/x", [1], "without summary"),
        ("/x", "<html>", "no JSON"),
        ("/chat/completions", {"choices": []}, r"without choices\[0\]"),
        ("/chat/completions", {"choices": [{"message": {}}]}, r"without choices\[0\]"),
    ],
)
async def test_an_answer_without_a_summary_is_a_failure(server, gateway, path, body, text):
    server.script(status_reply(200, body))
    with pytest.raises(MaintenanceError, match=text):
        await ask(gateway, server.base_url + path)


async def test_a_refusal_keeps_its_status_and_is_logged_cut(server, gateway, caplog, monkeypatch):
    server.script(status_reply(503, {"error": {"message": "x" * 9_000}}, {"retry-after": "7"}))
    monkeypatch.setattr(logging.getLogger("musepi"), "propagate", True)
    with caplog.at_level(logging.WARNING, "musepi.maintenance"), pytest.raises(ProviderError) as caught:
        await ask(gateway, f"{server.base_url}/x")
    assert (caught.value.status, caught.value.retry_after_s) == (503, 7)
    (message,) = {text for text in map(logging.LogRecord.getMessage, caplog.records) if "x" * 100 in text}
    assert 4_000 < len(message) < 4_200


async def test_a_connection_that_breaks_is_a_failure_of_the_transport(server, gateway):
    server.script(drop_reply())
    with pytest.raises(ProviderError) as caught:
        await ask(gateway, f"{server.base_url}/x")
    assert (caught.value.kind, caught.value.cause) == (ErrorKind.TRANSPORT, "cut")


@pytest.mark.parametrize(
    "reply", [hang_reply(), json_reply({"summary": TEXT}).stall(0)], ids=["head", "body"]
)
async def test_silence_ends_as_a_time_out(server, gateway, monkeypatch, reply):
    monkeypatch.setattr(remote_summary, "TIMEOUT_S", 0.1)
    server.script(reply)
    with pytest.raises(ProviderError) as caught:
        await ask(gateway, f"{server.base_url}/x")
    assert caught.value.cause == "timeout"


async def test_a_cancel_closes_the_connection(server, gateway):
    server.script(hang_reply())
    running = asyncio.ensure_future(ask(gateway, f"{server.base_url}/x"))
    async with asyncio.timeout(10):
        while not server.requests:  # noqa: ASYNC110  # the server counts in a thread of its own
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        while not server.disconnects:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_offline_forbids_an_endpoint_elsewhere(gateway, monkeypatch):
    monkeypatch.setenv("MUSEPI_OFFLINE", "1")
    with pytest.raises(ProviderError, match="Offline"):
        await ask(gateway, "https://summaries.example/x")


def order(gateway, address, *, manual=False, entries="u500 a500 u500 a500", keep=900):
    preparation = prepare_compaction(sketch(entries), PrepareOptions(keep), Estimator(stub_count))
    chain = find_chain(None, None, ModelRoles(), gateway, address)
    return SummaryOrder(preparation, chain, 16_384, manual=manual)


def tools(gateway, told):
    def ignore(_):
        pass

    return Tools(
        gateway, FakeClock(), stub_count, llm_templates(), RetrySettings(), told.append, ignore, ignore
    )


async def test_all_pieces_of_a_summary_are_asked_of_the_endpoint(server, gateway):
    server.fallback = json_reply({"summary": TEXT})
    made = order(gateway, f"{server.base_url}/x", entries="u100 a200 t900 a300 u50 a900 t900 a100")
    summary = await summarize(made, tools(gateway, []))
    assert summary.model == "127.0.0.1"
    assert summary.text.count(TEXT) == 2
    assert {request.path for request in server.requests} == {"/x"}


async def test_a_model_takes_over_where_the_endpoint_fails(server, gateway):
    told = []
    server.script(status_reply(404, {"error": "gone"}), openai_reply(text="## Goal\nFrom the model"))
    summary = await summarize(order(gateway, f"{server.base_url}/x"), tools(gateway, told))
    assert (summary.text, summary.model) == ("## Goal\nFrom the model", "local/m1")
    assert [request.path for request in server.requests] == ["/x", "/v1/chat/completions"]
    assert told[0].text.endswith("local/m1 is asked instead.")


async def test_a_busy_endpoint_is_asked_again(server, gateway):
    server.script(status_reply(503, {"error": "busy"}), json_reply({"summary": TEXT}))
    made = tools(gateway, [])
    assert (await summarize(order(gateway, f"{server.base_url}/x"), made)).text == TEXT
    assert made.clock.slept == [2.0]


async def test_a_blank_summary_of_the_endpoint_is_refused(server, gateway):
    server.script(json_reply({"summary": " \n"}))
    with pytest.raises(EmptySummaryError):
        await summarize(order(gateway, f"{server.base_url}/x", manual=True), tools(gateway, []))


async def test_an_endpoint_needs_no_model(server):
    server.script(json_reply({"summary": TEXT}))
    summary = await summarize(order(FakeGateway(), f"{server.base_url}/x"), tools(FakeGateway(), []))
    assert summary.text == TEXT


async def test_address_that_cannot_be_asked_is_told_by_the_name_of_its_setting(gateway):
    with pytest.raises(ProviderError, match="^compaction.remoteEndpoint is 'ftp://x', which is no usable"):
        await ask(gateway, "ftp://x")
