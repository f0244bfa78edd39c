"""Opening stored sessions: last screen and first accepted key, beside the program's own empty start."""

from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.programs import MUSEPI, median, percentile, running, scratch
from tests.bench.sessions import LAST_WORDS, write_session
from tests.bench.table import Row
from tests.bench.terminal import TerminalProgram

BUDGETS_S = {1_000: 0.1, 10_000: 0.15, 50_000: 0.3}
RUNS = 5
PAGES = 40
PAGE_UP = "\x1b[5~"


@dataclass(slots=True)
class _Times:
    """Seconds of each run, and the memory of one of them after it had loaded everything."""

    screen: list[float] = field(default_factory=list[float])
    key: list[float] = field(default_factory=list[float])
    memory_mib: float = 0.0


def measure() -> list[Row]:
    """Rows for each size, for paging in the largest session and for its memory."""
    empty = _Times()
    found = {entries: _Times() for entries in BUDGETS_S}
    with scratch() as folder:
        files = {entries: folder / f"{entries}.jsonl" for entries in BUDGETS_S}
        for entries, path in files.items():
            write_session(path, entries, folder / "project")
        for _ in range(RUNS):
            with running(MUSEPI, folder) as program:
                empty.key.append(program.first_key_s())
            for entries, path in files.items():
                _open(folder, path, found[entries])
        rows = [Row("empty start to first key", f"{median(empty.key) * 1000:.0f} ms")]
        rows += [_row(entries, times, median(empty.key)) for entries, times in found.items()]
        return [*rows, *_at_size(folder, files)]


def _open(folder: Path, path: Path, times: _Times) -> None:
    with running([*MUSEPI, "--session", str(path)], folder) as program:
        times.key.append(program.first_key_s())
        times.screen.append(program.wait_for(LAST_WORDS.encode()) - program.started)


def _row(entries: int, times: _Times, empty_s: float) -> Row:
    key_s, screen_s = median(times.key), median(times.screen)
    value = f"{(key_s - empty_s) * 1000:+.0f} ms to first key, last screen at {screen_s * 1000:.0f} ms"
    return Row(f"open {entries:,} entries, beside empty", value, f"+{BUDGETS_S[entries] * 1000:.0f} ms")


def _at_size(folder: Path, files: dict[int, Path]) -> list[Row]:
    memory: list[float] = []
    pages: list[float] = []
    small, large = min(files), max(files)
    for entries in (small, large):
        with running([*MUSEPI, "--session", str(files[entries])], folder) as program:
            program.first_key_s()
            program.wait_until_quiet(1.5)
            memory.append(program.memory_mib())
            if entries == large:
                pages = [_page_ms(program) for _ in range(PAGES)]
    shown = f"{memory[1]:.0f} MiB ({memory[1] / memory[0]:.2f} x that of {small:,})"
    return [
        Row(
            f"page up in {large:,} entries p50 / worst",
            f"{percentile(pages, 0.5):.1f} / {max(pages):.1f} ms",
            "16 / 60 ms",
        ),
        Row(f"memory with {large:,} entries", shown, "1.5 x"),
    ]


def _page_ms(program: TerminalProgram) -> float:
    """Milliseconds from the key to the end of the frame it causes."""
    program.wait_until_quiet(0.05)
    return program.frame_ms(PAGE_UP)
