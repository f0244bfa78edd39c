"""The programs that are compared, and where they run."""

import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bench.terminal import TerminalProgram

FLOOR = [sys.executable, "-m", "tests.bench.floor_app"]
MUSEPI = [sys.executable, "-m", "musepi_tui"]
ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder with an empty home and an empty project, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="musepi-bench-") as name:
        folder = Path(name)
        (folder / "home").mkdir()
        (folder / "project").mkdir()
        yield folder


@contextmanager
def running(
    argv: Sequence[str], folder: Path, extra_env: Mapping[str, str] | None = None
) -> Iterator[TerminalProgram]:
    """The program in a terminal, ended at the end. Neither keys nor settings of the caller reach it."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    env = {
        **kept,
        "HOME": str(folder / "home"),
        "MUSEPI_HOME": str(folder / "home" / "musepi"),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        **(extra_env or {}),
    }
    program = TerminalProgram(argv, env, folder / "project")
    try:
        yield program
    finally:
        program.close()


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0 to 1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return statistics.median(values)
