"""Throughput of the wire decoders: bytes of a long recorded answer into its message, no network."""

import time

from musepi_tui.providers.apis import load_provider
from tests.bench.programs import median
from tests.bench.sessions import markdown
from tests.bench.table import Row
from tests.support.server import Reply, anthropic_reply, openai_reply

TOKENS = 20_000
CHUNK_BYTES = 4096
RUNS = 5


def measure() -> list[Row]:
    """One row for each wire format."""
    text = markdown(TOKENS)
    thinking = text[: len(text) // 8]
    return [
        _row("anthropic-messages", anthropic_reply(text, thinking=thinking)),
        _row("openai-completions", openai_reply(text, thinking=thinking)),
    ]


def _row(api: str, reply: Reply) -> Row:
    decode = load_provider(api).decode
    assert decode is not None
    body = reply.body
    chunks = [body[start : start + CHUNK_BYTES] for start in range(0, len(body), CHUNK_BYTES)]
    times: list[float] = []
    for _ in range(RUNS):
        started = time.process_time()
        decode(200, {"content-type": "text/event-stream"}, chunks)
        times.append(time.process_time() - started)
    seconds = median(times)
    value = f"{len(body) / 1e6 / seconds:.1f} MB/s, {len(reply.chunks) / seconds:,.0f} events/s"
    return Row(f"decode {api}", value)
