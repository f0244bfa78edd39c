"""The only place that starts children: their limits, their environment, their end (SAF-30 to 37).

``asyncio`` and ``subprocess`` are imported where they are used: everything may import this module, and most
runs of a headless command never start a child.
"""

import contextlib
import os
import secrets
import shutil
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from musepi_tui.base import process_tree
from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.process_tree import MARK, Running

if TYPE_CHECKING:
    import asyncio
    import asyncio.subprocess
    import subprocess

BLOCK_BYTES = 65_536
"""Most bytes handed on at once; the pipe is not read on before the receiver is done with them (SAF-41)."""

TERM_GRACE_S = 2.0
"""Between SIGTERM and SIGKILL (SAF-31)."""

PIPE_GRACE_S = 0.3
"""How long a pipe that somebody else still holds is read after the child ended (SAF-32)."""

MAX_OUTPUT_BYTES = 256 * 1024 * 1024
"""A child that writes more is ended (SAF-40)."""

_KILL_WAIT_S = 5.0
"""SIGKILL needs no longer, except for a process stuck in the kernel, which nothing can end."""

_KILL_ROUNDS = 20
"""A tree that forks while it is killed needs more than one round."""

_QUIET_VARIABLES = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
}
"""Nothing may wait for a person. ``false``, not ``true``: a rebase whose editor succeeds rewrites history."""

_SESSION_VARIABLES = frozenset(
    {
        "MUSEPI",
        "MUSEPI_SESSION_ID",
        "MUSEPI_SESSION_FILE",
        "MUSEPI_PROVIDER",
        "MUSEPI_MODEL",
        "MUSEPI_REASONING_LEVEL",
        MARK,
    }
)
"""Set anew for each child; inherited values belong to another musepi (TUI-7.43)."""

_KEY_VARIABLES = frozenset({"ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN", "HF_TOKEN"})
"""Provider keys whose names do not end in ``_API_KEY`` (providers, table of variables)."""

OutputSink: TypeAlias = Callable[[bytes], Awaitable[bool]]
"""Takes the next block of output; False means that no more is wanted and the child is ended."""


class Ended(StrEnum):
    """How a child came to its end."""

    EXIT = "exit"
    TIMEOUT = "timeout"
    OUTPUT_LIMIT = "output_limit"
    ENOUGH = "enough"


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What to start. ``env`` is the whole environment (``child_environment``), None for that of a helper.

    ``timeout_s`` counts from the start. With ``keep_background`` processes that outlive the child are left
    alone (until ``end_left_behind``), else they are ended with it.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] | None = None
    timeout_s: float | None = None
    max_output_bytes: int = MAX_OUTPUT_BYTES
    keep_background: bool = False


@dataclass(frozen=True, slots=True)
class ChildResult:
    """How it went. A negative ``exit_code`` is a signal number. ``still_running`` outlived the child."""

    exit_code: int
    ended: Ended
    output_bytes: int
    still_running: tuple[Running, ...] = ()


def child_environment(
    inherited: Mapping[str, str], extra: Mapping[str, str] | None = None, secret_values: Iterable[str] = ()
) -> dict[str, str]:
    """The environment of a child: no provider keys, no unsafe PATH entries, nothing that waits for a person.

    ``extra`` (variables of the session, then those of the call) wins over everything.
    """
    withheld = frozenset(secret_values)
    kept = {
        name: value
        for name, value in inherited.items()
        if not _names_provider_key(name) and name not in _SESSION_VARIABLES and value not in withheld
    }
    kept["PATH"] = os.pathsep.join(safe_path_entries(kept.get("PATH", os.defpath)))
    return {**kept, **_QUIET_VARIABLES, **(extra or {})}


def safe_path_entries(path: str, outside: Path | None = None) -> tuple[str, ...]:
    """The absolute entries of a PATH value, without those inside ``outside`` (SAF-36, 37)."""
    entries = [entry for entry in path.split(os.pathsep) if entry and Path(entry).is_absolute()]
    if outside is None:
        return tuple(entries)
    project = os.path.realpath(outside)
    return tuple(entry for entry in entries if not Path(os.path.realpath(entry)).is_relative_to(project))


def find_program(name: str, project: Path | None = None) -> str | None:
    """The absolute path of a helper program on PATH, never one inside ``project``."""
    entries = safe_path_entries(os.environ.get("PATH", os.defpath), project)
    return shutil.which(name, path=os.pathsep.join(entries)) if entries else None


async def run_child(spec: ChildSpec, on_output: OutputSink) -> ChildResult:
    """Runs a child to its end; standard output and error come merged, in order, through ``on_output``.

    Whatever ends the call (exit, time-out, limit, cancellation) leaves no process behind except those
    ``keep_background`` names, and no zombie. Raises ``OSError`` when it cannot be started, ``ValueError`` for
    a NUL in an argument.
    """
    child = await _Child.start(spec)
    try:
        return await child.follow(on_output)
    finally:
        await child.close()


async def end_left_behind() -> None:
    """Ends every process that outlived its command: called once, when the program quits (SAF-32)."""
    marks = frozenset(_left_behind)
    _left_behind.clear()
    if marks:
        await _end_members(None, marks, lambda: True)


def run_quick(argv: tuple[str, ...], cwd: Path | None = None, timeout_s: float = 2.0) -> str | None:
    """The output of a short helper, or None when it failed, could not start or took too long. Blocking."""
    import subprocess  # deferred: most of the program never starts a child

    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=child_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError):
        return None
    with process:
        output = _output_within(process, timeout_s)
    return None if output is None or process.returncode else output.decode("utf-8", "replace")


def run_shell_command(command: str) -> str | None:
    """The trimmed output of a ``!command`` key (SAF-107), None when it failed or took 10 s. Blocking.

    A shell is used only when the text has more than plain words in it.
    """
    import shlex  # deferred, as above

    try:
        words = tuple(shlex.split(command))
    except ValueError:
        words = ()
    needs_shell = not words or any(character in command for character in "|&;<>()$`*?[]~#{}\n")
    argv = ("/bin/sh", "-c", command) if needs_shell else words
    output = run_quick(argv, timeout_s=10.0)
    return output.strip() if output is not None else None


_left_behind: set[str] = set()
"""Marks of calls whose background processes were let go. Of the process, like the process table itself."""


def _names_provider_key(name: str) -> bool:
    return name.upper().endswith("_API_KEY") or name in _KEY_VARIABLES


def _output_within(process: "subprocess.Popen[bytes]", timeout_s: float) -> bytes | None:
    import subprocess  # deferred, as above

    try:
        return process.communicate(timeout=timeout_s)[0]
    except subprocess.TimeoutExpired:
        process_tree.send_group_signal(process.pid, signal.SIGKILL)
        if process.stdout is not None:
            process.stdout.close()
        return None


class _Child:
    """One running child and the reading end of its pipe."""

    def __init__(self, spec: ChildSpec, mark: str, process: "asyncio.subprocess.Process") -> None:
        self._spec = spec
        self._mark = mark
        self._process = process
        self._ended = Ended.EXIT
        self._output_bytes = 0
        self._reader: asyncio.StreamReader
        self._transport: asyncio.ReadTransport | None = None

    @classmethod
    async def start(cls, spec: ChildSpec) -> "_Child":
        """Starts it. The pipe is ours, not asyncio's: the exit ends a child, whoever holds the pipe."""
        import asyncio  # deferred: see the module's docstring

        mark = secrets.token_hex(8)
        env = {**(child_environment(os.environ) if spec.env is None else spec.env), MARK: mark}
        reading, writing = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *spec.argv,
                cwd=spec.cwd,
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                start_new_session=True,
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        child = cls(spec, mark, process)
        try:
            await child._connect(reading)
        except BaseException:
            await child.close()
            raise
        return child

    async def follow(self, on_output: OutputSink) -> ChildResult:
        """Hands the output on until the child is over and its pipe closed or given up."""
        import asyncio  # deferred: see the module's docstring

        async with asyncio.TaskGroup() as group:
            pump = group.create_task(self._pump(on_output))
            try:
                async with asyncio.timeout(self._spec.timeout_s):
                    await self._process.wait()
            except TimeoutError:
                self._ended = Ended.TIMEOUT
                await self._end()
            await asyncio.wait({pump}, timeout=PIPE_GRACE_S)
            survivors = await _members(self._process.pid, frozenset({self._mark}))
            if not survivors:  # then only a slow receiver keeps the output from being read to its end
                await asyncio.wait({pump}, timeout=_KILL_WAIT_S)
            self._hang_up()
        exit_code = self._process.returncode
        return ChildResult(
            -signal.SIGKILL if exit_code is None else exit_code,
            self._ended,
            self._output_bytes,
            self._settle_survivors(survivors),
        )

    async def close(self) -> None:
        """Ends what still runs and reaps it. A second cancellation skips the grace, not the end."""
        import asyncio  # deferred: see the module's docstring

        try:
            if self._process.returncode is None:
                await asyncio.shield(self._end())
        except asyncio.CancelledError:
            process_tree.send_group_signal(self._process.pid, signal.SIGKILL)
            raise
        finally:
            self._hang_up()

    async def _connect(self, reading: int) -> None:
        import asyncio  # deferred: see the module's docstring

        loop = asyncio.get_running_loop()
        self._reader = asyncio.StreamReader(limit=BLOCK_BYTES, loop=loop)
        protocol = asyncio.StreamReaderProtocol(self._reader, loop=loop)
        file = os.fdopen(reading, "rb", buffering=0)
        try:
            self._transport, _ = await loop.connect_read_pipe(lambda: protocol, file)
        except BaseException:
            file.close()
            raise

    def _hang_up(self) -> None:
        if self._transport is not None:
            self._transport.close()

    async def _pump(self, on_output: OutputSink) -> None:
        """Reads until the pipe ends; after a limit it only drops, so that no write blocks the end."""
        import asyncio  # deferred: see the module's docstring

        while block := await self._reader.read(BLOCK_BYTES):
            if self._ended in (Ended.OUTPUT_LIMIT, Ended.ENOUGH):
                await asyncio.sleep(0)
                continue
            self._output_bytes += len(block)
            if not await on_output(block):
                self._stop(Ended.ENOUGH)
            elif self._output_bytes > self._spec.max_output_bytes:
                self._stop(Ended.OUTPUT_LIMIT)
            await asyncio.sleep(0)  # a full pipe never makes read() wait: let the others run

    def _stop(self, why: Ended) -> None:
        """Ends the child because of its output. At once: what it would still write is not wanted."""
        if self._ended is Ended.EXIT:
            self._ended = why
        if self._process.returncode is None:
            process_tree.send_group_signal(self._process.pid, signal.SIGKILL)

    async def _end(self) -> None:
        import asyncio  # deferred: see the module's docstring

        await _end_members(
            self._process.pid, frozenset({self._mark}), lambda: self._process.returncode is not None
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_KILL_WAIT_S):
                await self._process.wait()

    def _settle_survivors(self, survivors: tuple[Running, ...]) -> tuple[Running, ...]:
        """What outlived the child: kept in mind, or ended at once."""
        if survivors and self._spec.keep_background and self._ended is Ended.EXIT:
            _left_behind.add(self._mark)
            return survivors
        for process in survivors:
            process_tree.send_signal(process, signal.SIGKILL)
        return ()


async def _members(leader_pid: int | None, marks: frozenset[str]) -> tuple[Running, ...]:
    import asyncio  # deferred: see the module's docstring

    processes = await asyncio.to_thread(_list_processes, marks)
    return process_tree.find_members(processes, leader_pid)


def _list_processes(marks: frozenset[str]) -> tuple[Running, ...]:
    processes = process_tree.list_processes(marks)
    if processes is None:
        processes = process_tree.parse_ps(run_quick(process_tree.PS_COMMAND) or "")
    return processes


async def _end_members(
    leader_pid: int | None, marks: frozenset[str], leader_is_over: Callable[[], bool]
) -> None:
    """SIGTERM to the whole tree, ``TERM_GRACE_S``, then SIGKILL to whatever is left of it.

    The tree is taken before the first signal: afterwards an orphan's parent is no longer known. Without a
    ``leader_pid`` only the marks count.
    """
    import asyncio  # deferred: see the module's docstring

    members = await _members(leader_pid, marks)
    for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped process takes no SIGTERM
        process_tree.signal_tree(members, leader_pid, number)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + TERM_GRACE_S
    while loop.time() < deadline:
        if leader_is_over() and not any(process_tree.is_alive(process) for process in members):
            break
        await asyncio.sleep(0.02)
    for _ in range(_KILL_ROUNDS):
        late = await _members(leader_pid, marks)
        left = {*late, *(process for process in members if process_tree.is_alive(process))}
        if not left:
            return
        process_tree.signal_tree(left, leader_pid, signal.SIGKILL)
        await asyncio.sleep(0.01)


async def run_foreground(argv: tuple[str, ...]) -> int:
    """Runs a program that has the terminal to itself, such as the person's editor; its exit code.

    It inherits everything; nobody but the person ends it. Raises ``OSError`` when it cannot be started.
    """
    import asyncio  # deferred: see above

    process = await asyncio.create_subprocess_exec(*argv)
    return await process.wait()
