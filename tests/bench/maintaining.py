"""Context maintenance: what it adds to a turn, how a large compaction is prepared, and the keys meanwhile."""

import asyncio
import json
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from musepi_tui.base.collector import pause_collector, resume_collector
from musepi_tui.maintenance.triggers import PromptPending, Signal, ToolBoundary, TurnFinished
from musepi_tui.runtime.compaction import prepare
from musepi_tui.runtime.history import Loaded
from musepi_tui.session.codec import dump_json, dump_line, encode_header
from musepi_tui.session.entries import Entry, SessionHeader
from musepi_tui.session.messages import Message, Usage
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage.loading import load_session
from tests.bench.programs import MUSEPI, median, percentile, running, scratch
from tests.bench.serving import ModelProcess, serving
from tests.bench.sessions import LAST_WORDS, markdown
from tests.bench.table import Row
from tests.bench.terminal import TerminalProgram
from tests.support.builders import START_MS, Part, a, call, compaction, entry, t, u
from tests.support.fake_services import Bench, bench, model

COMPACTIONS = 300
BETWEEN = 24
"""Entries from one compaction to the next."""
KEPT = 8
LIVE = 200
"""Entries behind the last compaction, the same in both sessions: about 50,000 tokens."""
TURNS = 40

LARGE_TOKENS = 200_000
LARGE_WINDOW = 400_000
PREPARATIONS = 5
PROGRAMS = 8
ECHOES_S = 2.0
"""How long keys are struck from the moment on a compaction was asked for; its preparation is over by then."""

PAUSE_S = 0.7
"""Between two things typed, longer than the program takes for each."""

BACKSPACE = "\x7f"
_HEADER = SessionHeader("00000000-0000-7000-8000-000000000004", "2025-06-15T15:06:40.000Z", "/project")


def measure() -> list[Row]:
    """All rows."""
    with scratch() as folder:
        return [*_turns(folder), *_preparation(folder), *_echo_while_preparing(folder)]


def _turns(folder: Path) -> list[Row]:
    none, many = folder / "none.jsonl", folder / "many.jsonl"
    _write(none, _working("live", LIVE))
    _write(many, [*_compacted(), *_working("live", LIVE)])
    plain, compacted = asyncio.run(_turn_ms(none, many))
    return [
        Row("CPU of maintenance in a turn that needs none", f"{plain:.2f} ms", "5 ms"),
        Row(
            f"the same after {COMPACTIONS} compactions",
            f"{compacted:.2f} ms ({compacted / plain:.2f} x)",
            "1.2 x",
        ),
    ]


def _start_as_program() -> None:
    """As the program does once a session is loaded: the collector never looks at what exists by now."""
    pause_collector()
    resume_collector()


async def _turn_ms(none: Path, many: Path) -> tuple[float, float]:
    """CPU milliseconds of maintenance in a turn of one tool call, threads included, for each session: before
    the prompt, between the steps and at the end. The cheapest of many turns: the work is the same in each,
    and whatever else the machine does only adds to it."""
    desks = [_desk(none), _desk(many)]
    _start_as_program()
    times: list[list[float]] = [[], []]
    for number in range(TURNS):
        for desk, spent in zip(desks, times, strict=True):
            spent.append(await _one_turn_ms(desk, f"n{number}"))
    assert all(len(desk.saver.written) == 4 * TURNS for desk in desks), "something was pruned or compacted"
    return min(times[0]), min(times[1])


async def _one_turn_ms(desk: Bench, call_id: str) -> float:
    spent = await _consider_ms(desk, PromptPending(20))
    asking = a("I look.", [call("ls", call_id, path="src")], usage=_usage())
    desk.say(u("Go on."), asking, t("reader.py", call_id, "ls"))
    spent += await _consider_ms(desk, ToolBoundary(asking))
    final = a(markdown(60), usage=_usage())
    desk.say(final)
    return spent + await _consider_ms(desk, TurnFinished(final))


async def _consider_ms(desk: Bench, signal: Signal) -> float:
    started = time.process_time()
    await desk.maintainer.consider(signal)
    return (time.process_time() - started) * 1000


def _preparation(folder: Path) -> list[Row]:
    file = folder / "large.jsonl"
    _write_large(file)
    prepared_ms, pause_ms = asyncio.run(_prepared_ms(file))
    return [
        Row(
            f"preparing a compaction of {LARGE_TOKENS:,} tokens, counted before",
            f"{prepared_ms:.0f} ms",
            "150 ms",
        ),
        Row("longest pause of the event loop meanwhile", f"{pause_ms:.0f} ms", "20 ms"),
    ]


async def _prepared_ms(file: Path) -> tuple[float, float]:
    """Milliseconds from the live entries to the cut, and the longest time the event loop stood still."""
    desk = _desk(file)
    services = desk.services
    await services.tokens.ready()
    assert services.meter.measure().stored > LARGE_TOKENS
    _start_as_program()
    times: list[float] = []
    pauses: list[float] = []
    watch = asyncio.ensure_future(_watch_loop(pauses))
    for _ in range(PREPARATIONS):
        started = time.perf_counter()
        found = await prepare(services, await desk.history.load_live())
        times.append((time.perf_counter() - started) * 1000)
        assert found is not None
    watch.cancel()
    return median(times), max(pauses) * 1000


async def _watch_loop(pauses: list[float]) -> None:
    """Notes by how much each sleep of a millisecond was late."""
    while True:
        started = time.perf_counter()
        await asyncio.sleep(0.001)
        pauses.append(time.perf_counter() - started - 0.001)


def _echo_while_preparing(folder: Path) -> list[Row]:
    file = folder / "large.jsonl"
    echoes: list[float] = []
    with serving() as server:
        _write_models(folder, server)
        for number in range(PROGRAMS):
            with _compacting(server, folder, file) as program:
                echoes += _echoes(program, random.Random(number))
    shown = " / ".join(f"{percentile(echoes, share):.1f}" for share in (0.5, 0.9, 0.99))
    name = f"key echo while {LARGE_TOKENS:,} tokens are compacted p50 / p90 / p99"
    return [Row(name, f"{shown} ms", "- / - / 50 ms")]


@contextmanager
def _compacting(server: ModelProcess, folder: Path, file: Path) -> Iterator[TerminalProgram]:
    """The program with a compaction just asked for, whose summary takes longer than anybody looks."""
    flags = ["--session", str(file), "--model", "local/bench", "--no-auto-compact"]
    with running([*MUSEPI, *flags], folder) as program:
        program.wait_for(LAST_WORDS.encode())
        program.first_key_s()
        program.wait_until_quiet(1.0)
        program.type(BACKSPACE * 200)
        time.sleep(PAUSE_S)
        # The turns before a compaction have counted the context; loading the ranks for that stops every
        # thread for 0.2 s, once in a program.
        _command(program, "/context", b"esc close")
        program.type("\x1b")
        time.sleep(PAUSE_S)
        server.order(200, 10)
        _command(program, "/compact", b"ompacting")
        yield program


def _command(program: TerminalProgram, text: str, answer: bytes) -> None:
    """Types a command and waits for what it shows."""
    program.type(text)
    time.sleep(PAUSE_S)  # text with a line end in one piece would be taken for a paste
    before = program.bytes_written()
    program.type("\r")
    program.wait_for(answer, start=before)


def _echoes(program: TerminalProgram, chance: random.Random) -> list[float]:
    """Milliseconds from each key to its echo, keys coming at irregular moments."""
    ends = time.monotonic() + ECHOES_S
    echoes: list[float] = []
    while time.monotonic() < ends:
        time.sleep(chance.uniform(0.02, 0.06))
        echoes.append(program.echo_ms())
    return echoes


def _desk(file: Path) -> Bench:
    """A stored session that was just resumed."""
    stored = load_session(file)
    context = build_session_context(stored.read_path())
    loaded = Loaded(stored.header, stored.tree, stored.bodies, context, stored.name)
    return bench(loaded=loaded, models=(model(context_window=LARGE_WINDOW),), estimator="o200k")


def _usage() -> Usage:
    return Usage(input=50_000, output=100)


def _compacted() -> list[Part]:
    """Many rounds of work, each summarised. Every summary adds to the file lists of the one before."""
    parts: list[Part] = []
    base: dict[str, str] = {}
    for number in range(COMPACTIONS):
        parts += _working(f"round{number}", BETWEEN)
        details = {**base, "readFilesAdded": [f"src/r{number}.py"], "modifiedFilesAdded": []}
        first = _id(len(parts) - KEPT)
        base = {"base": _id(len(parts))}
        parts.append(compaction(markdown(300), first, tokens_before=180_000, details=details))
    return parts


def _working(name: str, entries: int) -> list[Message]:
    """Prompts, calls with results of 2 kB, and answers. No file is read twice."""
    made: list[Message] = []
    for index in range(entries // 4):
        found = call("read", f"{name}-{index}", path=f"src/{name}_{index}.py")
        lines = "\n".join(f"{line:4} | value_{line} = read(source, {index})" for line in range(50))
        made += [u(f"Prompt {index}: why does the blank line matter?"), a("I look.", [found])]
        made += [t(lines, f"{name}-{index}"), a(markdown(100), usage=_usage())]
    return made


def _write_large(file: Path) -> None:
    """A session of more than 200,000 live tokens that was never compacted."""
    parts: list[Message] = []
    for index in range(330):
        found = call("read", f"c{index}", path=f"src/reader_{index}.py")
        lines = "\n".join(f"{line:4} | value_{line} = read(source, {index})" for line in range(40))
        parts += [u(f"Prompt {index}: look again."), a("I look.", [found]), t(lines, f"c{index}")]
        parts.append(a(markdown(90), usage=_usage()))
    parts.append(a(f"Done: {LAST_WORDS}", usage=Usage(input=LARGE_TOKENS, output=100)))
    _write(file, parts)


def _write(file: Path, parts: Sequence[Part]) -> None:
    with file.open("wb") as out:
        out.write(dump_json(encode_header(_HEADER)) + b"\n")
        for index, part in enumerate(parts):
            made: Entry = entry(part, _id(index), _id(index - 1) if index else None, START_MS + 1000 * index)
            out.write(dump_line(made) + b"\n")


def _id(index: int) -> str:
    return f"{index:08x}"


def _write_models(folder: Path, server: ModelProcess) -> None:
    """A model whose window holds the whole session."""
    row = {"id": "bench", "contextWindow": LARGE_WINDOW, "maxTokens": 16_000, "input": ["text"]}
    provider = {
        "baseUrl": f"{server.address}/v1",
        "api": "openai-completions",
        "apiKey": "k",
        "models": [row],
    }
    home = folder / "home" / "musepi"
    home.mkdir(parents=True, exist_ok=True)
    (home / "models.json").write_text(json.dumps({"providers": {"local": provider}}), encoding="utf-8")
