"""The list of sessions over 5,000 stored files: its first rows, all of it, and a key of a search."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from musepi_tui.storage.paths import find_paths, session_folder
from tests.bench.programs import MUSEPI, median, percentile, running, scratch
from tests.bench.table import Row
from tests.bench.terminal import TerminalProgram
from tests.support.lines import answer_record, chain, header_line, write_lines

FILES = 5_000
RUNS = 5
KEYS = 40
OPEN_S = 0.15
TITLE = "Session number "
NEWEST = f"{TITLE}{FILES - 1} ".encode()


@dataclass(slots=True)
class _Times:
    """Milliseconds of each run."""

    first: list[float] = field(default_factory=list[float])
    whole: list[float] = field(default_factory=list[float])
    keys: list[float] = field(default_factory=list[float])


def measure() -> list[Row]:
    """Rows for the list made anew, and for one that is known."""
    floor, cold, warm = _Times(), _Times(), _Times()
    with scratch() as small, scratch() as folder:
        _write_sessions(small, 1)
        _write_sessions(folder, FILES)
        _open(folder, cold)
        for _ in range(RUNS):
            _open(small, floor)
            _open(folder, warm)
    rows = [
        _row("one session", floor, ""),
        _row(f"{FILES:,} sessions never listed", cold, ""),
        _row(f"{FILES:,} sessions listed before", warm, f"{OPEN_S * 1000:.0f} ms to first rows"),
    ]
    p50, p99 = percentile(warm.keys, 0.5), percentile(warm.keys, 0.99)
    return [*rows, Row("key of a search in them p50 / p99", f"{p50:.1f} / {p99:.1f} ms", "- / 50 ms")]


def _row(name: str, times: _Times, budget: str) -> Row:
    value = f"first rows after {median(times.first):.0f} ms, all at rest after {median(times.whole):.0f} ms"
    return Row(name, value, budget)


def _open(folder: Path, times: _Times) -> None:
    with running(MUSEPI, folder) as program:
        program.first_key_s()
        program.type("\x15")  # what was typed until now
        program.wait_until_quiet(1.0)
        program.type("/resume")
        program.wait_until_quiet(0.3)
        start, sent = program.bytes_written(), time.monotonic()
        program.type("\r")
        times.first.append((program.wait_for(NEWEST, start=start) - sent) * 1000)
        times.whole.append((_last_change(program) - sent) * 1000)
        times.keys += [program.frame_ms(key) for key in "number 4 12 " * (KEYS // 12)]


def _last_change(program: TerminalProgram) -> float:
    """The monotonic second of the last byte before a quiet second."""
    program.wait_until_quiet(1.0)
    return time.monotonic() - 1.0


def _write_sessions(folder: Path, count: int) -> None:
    """Sessions of the project, the one with number ``FILES - 1`` the newest."""
    home = folder / "home"
    paths = find_paths({"MUSEPI_HOME": str(home / "musepi"), "HOME": str(home)})
    sessions = session_folder(paths, folder / "project")
    sessions.mkdir(parents=True)
    now_s = time.time()
    for number in range(FILES - count, FILES):
        head = header_line(id=f"{number:08x}-0000-7000-8000-000000000000", cwd=str(folder / "project"))
        talk = chain(f"{TITLE}{number} of many", "and more", "x" * 2000)
        file = sessions / f"2026-01-01T00-00-00-000Z_{number:08x}.jsonl"
        write_lines(file, head, *talk, answer_record("a", "e3", "done"))
        os.utime(file, (now_s - FILES + number,) * 2)
