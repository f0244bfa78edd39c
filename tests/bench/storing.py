"""Session files: index, first screen and memory of large ones, appends, a prune, the list of many."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from musepi_tui.base.clock import iso_time
from musepi_tui.runtime.edits import Edit
from musepi_tui.session.codec import dump_json, dump_line, encode_header
from musepi_tui.session.columns import HeadColumns, HeadList
from musepi_tui.session.entries import EntryHead, SessionHeader
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.listing import list_sessions
from musepi_tui.storage.loading import LoadedSession, load_session
from musepi_tui.storage.paths import find_paths, session_folder, session_path
from musepi_tui.storage.session_file import SessionFile
from tests.bench.programs import MUSEPI, median, running, scratch
from tests.bench.sessions import LAST_WORDS, write_large_session
from tests.bench.table import Row
from tests.support.builders import START_MS, a, path, u
from tests.support.history_desk import desk_at

MB = 1_000_000
RUNS = 5
LARGE = 200_000
APPENDS = 20_000
BATCH = 2_000
"""Appends timed together; the best batch counts, because other programs take their share of the processor."""
FILES = 5_000
LOAD_S = 60.0


def measure() -> list[Row]:
    """All rows. Files of a gigabyte are written to a temporary folder and removed again."""
    with scratch() as folder:
        rows = [*_index(folder), *_large(folder), *_appends(folder), *_prunes(folder)]
        return [*rows, *_listing(folder)]


def _index(folder: Path) -> list[Row]:
    file = folder / "index.jsonl"
    write_large_session(file, 15_000, 100 * MB, folder / "project")
    parsed_s, indexed_s = [], []
    for _ in range(RUNS):
        parsed_s.append(_cpu_s(lambda: _parse_lines(file)))
        indexed_s.append(_cpu_s(lambda: load_session(file).bodies.close()))
    head_bytes = _bytes_of_heads(load_session(file))
    file.unlink()
    return [
        Row("index of 100 MB, beside json.loads", f"{min(indexed_s) / min(parsed_s):.2f} x", "0.35 x"),
        Row("memory of a head in the index", f"{head_bytes:.0f} bytes"),
    ]


def _parse_lines(file: Path) -> None:
    with file.open("rb") as lines:
        for line in lines:
            json.loads(line)


def _bytes_of_heads(loaded: LoadedSession) -> float:
    heads = loaded.heads
    assert isinstance(heads, HeadList)
    loaded.bodies.close()
    columns: HeadColumns = heads.columns
    return columns.memory_bytes / len(heads)


@dataclass(slots=True)
class _Opened:
    """Seconds to the last screen in each run, and memory when everything is loaded."""

    screen_s: list[float] = field(default_factory=list[float])
    memory_mib: float = 0.0


def _large(folder: Path) -> list[Row]:
    sizes = {1_000: 2 * MB, 50_000: 100 * MB, LARGE: 1000 * MB}
    files = {entries: folder / f"{entries}.jsonl" for entries in sizes}
    for entries, file in files.items():
        write_large_session(file, entries, sizes[entries], folder / "project")
    empty_s: list[float] = []
    found = {entries: _Opened() for entries in sizes}
    for _ in range(RUNS):
        with running(MUSEPI, folder) as program:
            empty_s.append(program.first_key_s())
        found[LARGE].screen_s.append(_screen_s(folder, files[LARGE]))
    for entries, file in files.items():
        found[entries].memory_mib = _loaded_mib(folder, file)
        file.unlink()
    screen_s = median(found[LARGE].screen_s)
    small, middle, large = (found[entries].memory_mib for entries in sizes)
    return [
        Row(
            f"last screen of 1 GB, {LARGE:,} entries, beside an empty start",
            f"{screen_s * 1000:.0f} ms ({screen_s / median(empty_s):.2f} x)",
            "1.5 x",
        ),
        Row(
            "memory with 50,000 entries", f"{middle:.0f} MiB ({middle / small:.2f} x that of 1,000)", "1.5 x"
        ),
        Row(f"memory with {LARGE:,} entries", f"{large:.0f} MiB", "200 MiB"),
    ]


def _screen_s(folder: Path, file: Path) -> float:
    with running([*MUSEPI, "--session", str(file)], folder) as program:
        return program.wait_for(LAST_WORDS.encode()) - program.started


def _loaded_mib(folder: Path, file: Path) -> float:
    """Memory when the index was built and the totals were counted, which shows in the process being idle."""
    with running([*MUSEPI, "--session", str(file)], folder) as program:
        program.wait_for(LAST_WORDS.encode())
        deadline = time.monotonic() + LOAD_S
        before = -1.0
        while time.monotonic() < deadline and program.cpu_s() - before > 0.05:
            before = program.cpu_s()
            time.sleep(2)
        return program.memory_mib()


def _appends(folder: Path) -> list[Row]:
    file = folder / "append.jsonl"
    header = SessionHeader("00000000-0000-7000-8000-000000000003", "2025-06-15T15:06:40.000Z", "/project")
    entries = path(*(a(f"An answer of usual length, number {number}. " * 8) for number in range(APPENDS)))
    session = SessionFile.create(file, header, Bodies(file))
    rates: list[float] = []
    for start in range(0, APPENDS, BATCH):
        started = time.perf_counter()
        for entry in entries[start : start + BATCH]:
            session.append([entry])
        rates.append(BATCH / (time.perf_counter() - started))
    session.sync()
    session.close()
    file.unlink()
    return [Row("appends, session.fsync=turn", f"{max(rates):,.0f} entries/s", "20,000 entries/s")]


def _prunes(folder: Path) -> list[Row]:
    small, large = folder / "small.jsonl", folder / "large.jsonl"
    write_large_session(small, 1_000, MB, folder / "project")
    write_large_session(large, LARGE, 1000 * MB, folder / "project")
    times_ms = {file: asyncio.run(_prune_ms(file)) for file in (small, large)}
    for file in (small, large):
        file.unlink()
    shown = f"{times_ms[large]:.2f} ms ({times_ms[large] / times_ms[small]:.2f} x that in 1 MB)"
    return [Row("one prune in 1 GB", shown, "1 x, give or take noise")]


async def _prune_ms(file: Path) -> float:
    """Milliseconds for the edit of one result near the end, stored by appending."""
    async with desk_at(file) as desk:
        await desk.history.commit_edits([])
        heads: list[EntryHead] = [
            head for head in desk.history.tree.path()[-30:] if head.role == "toolResult"
        ]
        times: list[float] = []
        for head in heads[-RUNS:]:
            started = time.perf_counter()
            await desk.history.commit_edits([Edit(head.id, "pruned", "superseded")])
            times.append((time.perf_counter() - started) * 1000)
        return median(times)


def _listing(folder: Path) -> list[Row]:
    paths = find_paths({"MUSEPI_HOME": str(folder / "listed")})
    cwd = folder / "project"
    made = path(u("Why does the blank line matter?"), a("Because the reader stops there. " * 40))
    lines = b"".join(dump_line(entry) + b"\n" for entry in made)
    for number in range(FILES):
        header = SessionHeader(
            f"00000000-0000-7000-8000-{number:012d}", iso_time(START_MS + number), str(cwd)
        )
        file = session_path(session_folder(paths, cwd), header)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(dump_json(encode_header(header)) + b"\n" + lines)
    cold_s = _wall_s(lambda: list_sessions(paths, cwd, foreign=False))
    warm_s = min([_wall_s(lambda: list_sessions(paths, cwd, foreign=False)) for _ in range(RUNS)])
    return [
        Row(f"list of {FILES:,} sessions, first time", f"{cold_s:.2f} s"),
        Row(f"list of {FILES:,} sessions, later", f"{warm_s:.2f} s", "1 s"),
    ]


def _cpu_s(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _wall_s(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
