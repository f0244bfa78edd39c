"""A streamed answer over real HTTP: key echo meanwhile, CPU and bytes for every 1,000 tokens."""

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.programs import MUSEPI, percentile, running, scratch
from tests.bench.serving import FIRST_WORD, LAST_WORD, ModelProcess, serving
from tests.bench.table import Row
from tests.bench.terminal import TerminalProgram

TOKENS_PER_S = 500
KEYS = 160
KEYS_PER_LINE = 40
"""The editor is emptied after so many keys, so that it stays one line."""

WINDOW_S = 6.0
BURST_TOKENS = 10_000
OVER_SSH = {"SSH_CONNECTION": "10.0.0.1 50000 10.0.0.2 22"}
BACKSPACE = "\x7f"


@dataclass(frozen=True, slots=True)
class _Cost:
    """Of 1,000 tokens."""

    cpu_s: float
    kilobytes: float


def measure() -> list[Row]:
    """Rows for echo, CPU and bytes, here and as if over SSH."""
    with serving() as server, scratch() as folder:
        with _program(server, folder, {}) as program:
            echoes = _echoes(program, server)
        with _program(server, folder, {}) as program:
            steady = _steady_cost(program, server)
            burst = _burst_cost(program, server)
        with _program(server, folder, OVER_SSH) as program:
            remote = _steady_cost(program, server)
    shown = " / ".join(f"{percentile(echoes, share):.1f}" for share in (0.5, 0.9, 0.99))
    return [
        Row(f"key echo at {TOKENS_PER_S} tokens/s p50 / p90 / p99", f"{shown} ms", "8 / 16 / 24 ms"),
        Row(f"CPU of 1,000 tokens at {TOKENS_PER_S} tokens/s", f"{steady.cpu_s:.2f} s", "0.5 s"),
        Row(f"bytes of 1,000 tokens at {TOKENS_PER_S} tokens/s", f"{steady.kilobytes:.0f} kB", "240 kB"),
        Row("the same over SSH", f"{remote.kilobytes:.0f} kB", "60 kB"),
        Row(f"CPU of 1,000 tokens, {BURST_TOKENS:,} at once", f"{burst.cpu_s:.2f} s", "0.2 s"),
    ]


@contextmanager
def _program(server: ModelProcess, folder: Path, env: Mapping[str, str]) -> Iterator[TerminalProgram]:
    flags = [
        "--provider",
        "local",
        "--model",
        "bench",
        "--base-url",
        f"{server.address}/v1",
        "--api-key",
        "k",
    ]
    flags += ["--set", "compaction.enabled=false"]  # its request would take the next answer
    with running([*MUSEPI, *flags], folder, env) as program:
        program.first_key_s()
        program.wait_until_quiet(1.0)
        program.type(BACKSPACE * 200)
        yield program


def _start_stream(program: TerminalProgram, server: ModelProcess, tokens: int) -> None:
    before = program.bytes_written()
    _ask(program, server, tokens, TOKENS_PER_S)
    program.wait_for(FIRST_WORD.encode(), start=before)


def _ask(program: TerminalProgram, server: ModelProcess, tokens: int, rate: int) -> None:
    server.order(tokens, rate)
    program.type("go")
    program.wait_until_quiet(0.2)  # text with a line end in one piece would be taken for a paste
    program.type("\r")


def _echoes(program: TerminalProgram, server: ModelProcess) -> list[float]:
    """Milliseconds from each key to its echo, keys coming at irregular moments as from a person."""
    chance = random.Random(1)
    pauses = [chance.uniform(0.03, 0.09) for _ in range(KEYS)]
    _start_stream(program, server, TOKENS_PER_S * 30)
    time.sleep(1)
    echoes: list[float] = []
    for number, pause_s in enumerate(pauses):
        if number % KEYS_PER_LINE == KEYS_PER_LINE - 1:
            program.type(BACKSPACE * KEYS_PER_LINE)
        time.sleep(pause_s)
        echoes.append(program.echo_ms())
    return echoes


def _steady_cost(program: TerminalProgram, server: ModelProcess) -> _Cost:
    before = program.bytes_written()
    _start_stream(program, server, int(TOKENS_PER_S * (WINDOW_S + 3)))
    time.sleep(1)
    cpu_s, written, started = program.cpu_s(), program.bytes_written(), time.monotonic()
    time.sleep(WINDOW_S)
    thousands = TOKENS_PER_S * (time.monotonic() - started) / 1000
    cost = _Cost(
        (program.cpu_s() - cpu_s) / thousands,
        (program.bytes_written() - written) / 1000 / thousands,
    )
    program.wait_for(LAST_WORD.encode(), start=before)
    program.wait_until_quiet(0.5)
    return cost


def _burst_cost(program: TerminalProgram, server: ModelProcess) -> _Cost:
    cpu_s, written = program.cpu_s(), program.bytes_written()
    _ask(program, server, BURST_TOKENS, 0)
    program.wait_for(LAST_WORD.encode(), start=written)
    program.wait_until_quiet(0.5)
    thousands = BURST_TOKENS / 1000
    return _Cost(
        (program.cpu_s() - cpu_s) / thousands, (program.bytes_written() - written) / 1000 / thousands
    )
