"""The tree of a large session in a terminal: opening it, moving, filters, searching, memory."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from musepi_tui.storage.loading import load_session
from musepi_tui.tui.tree.model import TreeModel
from tests.bench.programs import MUSEPI, percentile, running, scratch
from tests.bench.sessions import LAST_WORDS, write_branched_session
from tests.bench.table import Row
from tests.bench.terminal import TerminalProgram

ENTRIES = 50_000
BRANCHES = 300
RUNS = 3
TITLE = b"Session tree"
UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END = "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~", "\x1b[H", "\x1b[F"
BRANCH_UP, BRANCH_DOWN, TURN_UP = "\x1b[1;5D", "\x1b[1;5C", "\x1b[1;3A"
NEXT_FILTER, BACKSPACE = "\x0f", "\x7f"
WALK = (*[UP] * 6, PAGE_UP, PAGE_UP, BRANCH_UP, TURN_UP, HOME, *[DOWN] * 6, PAGE_DOWN, BRANCH_DOWN, END)
WALKS = 5
FILTERS = 5
QUERY = "reader 42"
LOAD_S = 60.0


@dataclass(slots=True)
class _Times:
    """Milliseconds of each kind of key, and memory in MiB."""

    opened: list[float] = field(default_factory=list[float])
    reading: list[float] = field(default_factory=list[float])
    moving: list[float] = field(default_factory=list[float])
    filtering: list[float] = field(default_factory=list[float])
    searching: list[float] = field(default_factory=list[float])
    found: list[float] = field(default_factory=list[float])
    memory_mib: list[float] = field(default_factory=list[float])


def measure() -> list[Row]:
    """All rows; the session is written to a temporary folder."""
    with scratch() as folder:
        file = folder / "branched.jsonl"
        write_branched_session(file, ENTRIES, BRANCHES, folder / "project")
        times = _Times()
        for _ in range(RUNS):
            with running([*MUSEPI, "--session", str(file)], folder) as program:
                _browse(program, times)
        made_ms, settled_ms, read_ms = _model_ms(file)
    size = f"{ENTRIES:,} entries, {BRANCHES} branches"
    return [
        Row(f"tree of {size}: first paint", f"{percentile(times.opened, 0.5):.0f} ms", "400 ms"),
        Row(
            "the same without a screen: rows / filters right / texts read",
            f"{made_ms:.0f} / {settled_ms:.0f} / {read_ms:.0f} ms",
            "– / 1,000 / – ms",
        ),
        Row("key in the tree p50 / p99", _shares(times.moving), "30 / 50 ms"),
        Row("key in the tree while it reads p50 / p99", _shares(times.reading), "30 / 80 ms"),
        Row("filter of the tree p50 / p99", _shares(times.filtering), "200 ms"),
        Row("search key in the tree p50 / p99", _shares(times.searching), "50 ms"),
        Row("all matches of a search key p50 / p99", _shares(times.found)),
        Row("memory of the tree", f"{max(times.memory_mib):.0f} MiB", "60 MiB"),
    ]


def _browse(program: TerminalProgram, times: _Times) -> None:
    program.wait_for(LAST_WORDS.encode())
    _wait_until_idle(program)
    before_mib = program.memory_mib()
    program.type("/tree")
    program.wait_until_quiet(0.3)
    start, sent = program.bytes_written(), time.monotonic()
    program.type("\r")
    times.opened.append((program.wait_for(TITLE, start=start) - sent) * 1000)
    times.reading += [program.paint_ms(key) for key in WALK]
    _wait_until_idle(program)
    times.memory_mib.append(program.memory_mib() - before_mib)
    times.moving += [program.paint_ms(key) for key in WALK * WALKS]
    times.filtering += [program.frame_ms(NEXT_FILTER) for _ in range(FILTERS)]
    for key in (*QUERY, *[BACKSPACE] * len(QUERY)):
        times.searching.append(program.paint_ms(key))
        times.found.append(program.last_frame_ms())


def _wait_until_idle(program: TerminalProgram) -> None:
    """Waits until the program has read what it reads behind the first frame."""
    deadline, before = time.monotonic() + LOAD_S, -1.0
    while time.monotonic() < deadline and program.cpu_s() - before > 0.05:
        before = program.cpu_s()
        time.sleep(1)


def _model_ms(file: Path) -> tuple[float, float, float]:
    """Milliseconds of work until there are rows, until filters are right, until every text was read."""
    loaded = load_session(file)
    started = time.process_time()
    model = TreeModel(
        loaded.tree,
        lambda entry_id: loaded.bodies.get(loaded.tree.head(entry_id)),
        read_start=loaded.bodies.line_start,
    )
    made = time.process_time()
    while model.settle(1000):
        pass
    settled = time.process_time()
    while model.work(1000):
        pass
    read = time.process_time()
    loaded.bodies.close()
    return (made - started) * 1000, (settled - started) * 1000, (read - started) * 1000


def _shares(values: list[float]) -> str:
    return f"{percentile(values, 0.5):.1f} / {percentile(values, 0.99):.1f} ms"
