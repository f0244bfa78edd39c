"""Start to the first accepted key, memory and silence at rest."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.programs import FLOOR, MUSEPI, median, percentile, running, scratch
from tests.bench.table import Row

RUNS = 9
REST_S = 5.0


@dataclass(slots=True)
class _Starts:
    """One value for each run. CPU time tells more than the clock while the machine is busy."""

    seconds: list[float] = field(default_factory=list[float])
    cpu_s: list[float] = field(default_factory=list[float])


def measure() -> list[Row]:
    """Rows for start, idle echo, memory and bytes at rest."""
    floor, own = _Starts(), _Starts()
    with scratch() as folder:
        for _ in range(RUNS):
            _start(FLOOR, folder, floor)
            _start(MUSEPI, folder, own)
    return [
        Row("start to first key, bare Textual app", f"{median(floor.seconds) * 1000:.0f} ms"),
        Row("start to first key, musepi", _beside(own.seconds, floor.seconds), "1.5 x"),
        Row("CPU until then", _beside(own.cpu_s, floor.cpu_s)),
        *_at_rest(),
    ]


def _start(argv: Sequence[str], folder: Path, starts: _Starts) -> None:
    with running(argv, folder) as program:
        starts.seconds.append(program.first_key_s())
        starts.cpu_s.append(program.cpu_s())


def _beside(own: Sequence[float], floor: Sequence[float]) -> str:
    return f"{median(own) * 1000:.0f} ms ({median(own) / median(floor):.2f} x)"


def _at_rest() -> list[Row]:
    with scratch() as folder, running(FLOOR, folder) as program:
        program.first_key_s()
        time.sleep(1)
        floor_memory = program.memory_mib()
    with scratch() as folder, running(MUSEPI, folder) as program:
        program.first_key_s()
        time.sleep(4)
        echoes = [program.echo_ms() for _ in range(60) if not time.sleep(0.05)]
        time.sleep(2)
        written, cpu = program.bytes_written(), program.cpu_s()
        time.sleep(REST_S)
        written, cpu = program.bytes_written() - written, program.cpu_s() - cpu
        memory = program.memory_mib()
    p50, p99 = percentile(echoes, 0.5), percentile(echoes, 0.99)
    return [
        Row("key echo at rest p50 / p99", f"{p50:.1f} / {p99:.1f} ms", "6 / 16 ms"),
        Row(f"bytes to the terminal in {REST_S:.0f} s at rest", f"{written}", "0"),
        Row("CPU at rest", f"{100 * cpu / REST_S:.2f} %", "0.5 %"),
        Row("memory at rest", f"{memory:.0f} MiB ({memory / floor_memory:.2f} x)", "2 x"),
    ]
