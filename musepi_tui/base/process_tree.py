"""Who belongs to a child: everything it started, also what left its group (SAF-31).

Three signs make a process a member: the session of the child, a parent that is a member, or the mark in its
environment. The mark finds daemons that were forked twice and have neither of the others.
"""

import contextlib
import os
import signal
from collections.abc import Collection, Iterable
from pathlib import Path

from musepi_tui.base.dataclass import dataclass

MARK = "MUSEPI_CALL"
"""Variable every child of ours inherits, with a value of its own for each call."""

PS_COMMAND = ("ps", "-axo", "pid=,ppid=,pgid=,lstart=,comm=")
"""What lists the processes where there is no ``/proc``; see ``parse_ps``."""

_PROC = Path("/proc")
_PS_LSTART_WORDS = 5


@dataclass(frozen=True, slots=True)
class Running:
    """A living process. ``started`` (any unit) tells it from a later one with the same pid."""

    pid: int
    parent_pid: int
    group: int
    started: str
    name: str
    marked: bool = False


def list_processes(marks: frozenset[str]) -> tuple[Running, ...] | None:
    """All living processes, or None where the system has no ``/proc``. Blocking, a few milliseconds."""
    try:
        pids = [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208 - names only, no stat
    except OSError:
        return None
    wanted = tuple(f"{MARK}={mark}".encode() for mark in marks)
    found = (_read_process(pid, wanted) for pid in pids)
    return tuple(process for process in found if process is not None)


def parse_ps(listing: str) -> tuple[Running, ...]:
    """The processes of a ``PS_COMMAND`` listing; lines of another shape are left out."""
    processes: list[Running] = []
    for line in listing.splitlines():
        words = line.split(None, 3 + _PS_LSTART_WORDS)
        if len(words) == 4 + _PS_LSTART_WORDS and all(word.isdigit() for word in words[:3]):
            pid, parent_pid, group = (int(word) for word in words[:3])
            started = " ".join(words[3:-1])
            processes.append(Running(pid, parent_pid, group, started, Path(words[-1]).name))
    return tuple(processes)


def find_members(processes: Iterable[Running], leader_pid: int | None) -> tuple[Running, ...]:
    """The members of the tree under ``leader_pid`` (None: only marked ones and what they started), by pid."""
    waiting = list(processes)
    members: dict[int, Running] = {}
    grown = True
    while grown:
        grown = False
        for process in waiting:
            if process.pid not in members and (
                process.marked or leader_pid in (process.pid, process.group) or process.parent_pid in members
            ):
                members[process.pid] = process
                grown = True
    return tuple(members[pid] for pid in sorted(members))


def send_signal(process: Running, number: signal.Signals) -> None:
    """Signals one process, unless its pid belongs to another one by now."""
    if is_alive(process):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


def send_group_signal(leader_pid: int, number: signal.Signals) -> None:
    """Signals the group of a child we have not reaped, or that still has members."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader_pid, number)


def signal_tree(members: Collection[Running], leader_pid: int | None, number: signal.Signals) -> None:
    """Signals the group of the leader while it has members, and every member outside of it."""
    if leader_pid is not None and any(process.group == leader_pid for process in members):
        send_group_signal(leader_pid, number)
    for process in members:
        if process.group != leader_pid:
            send_signal(process, number)


def is_alive(process: Running) -> bool:
    """Whether that very process still runs; a zombie does not."""
    if _PROC.joinpath("self").exists():
        now = _read_process(process.pid, ())
        return now is not None and now.started == process.started
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read_process(pid: int, wanted: tuple[bytes, ...]) -> Running | None:
    try:
        text = _PROC.joinpath(str(pid), "stat").read_bytes().decode("utf-8", "replace")
    except OSError:
        return None
    name_end = text.rfind(")")
    fields = text[name_end + 2 :].split()
    if len(fields) < 20 or fields[0] in "ZX":
        return None
    name = text[text.find("(") + 1 : name_end]
    return Running(pid, int(fields[1]), int(fields[2]), fields[19], name, _is_marked(pid, wanted))


def _is_marked(pid: int, wanted: tuple[bytes, ...]) -> bool:
    if not wanted:
        return False
    try:
        variables = _PROC.joinpath(str(pid), "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(variable in wanted for variable in variables)
