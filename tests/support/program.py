"""The program as its user runs it: a child process, and an RPC client that talks to one.

``run_musepi`` and ``RpcProgram`` fork the child from a process that has imported everything, see
``tests.support.zygote``; with ``fresh`` it is an interpreter of its own, from its first import on. Each door
has a test that does so.
"""

import contextlib
import json
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.zygote import IS_POSSIBLE, Child, shared_zygote

COMMAND = (sys.executable, "-m", "musepi_tui")
LIMIT_S = 30.0


def run_musepi(
    *arguments: str,
    cwd: Path,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    fresh: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Runs the program to its end. ``stdin`` None is an empty input."""
    with _start(arguments, cwd, env, fresh=fresh) as process:
        output, errors = process.communicate((stdin or "").encode(), LIMIT_S)
    assert process.returncode is not None
    return subprocess.CompletedProcess(arguments, process.returncode, output.decode(), errors.decode())


def _start(
    arguments: Sequence[str], cwd: Path, env: Mapping[str, str] | None, *, fresh: bool
) -> "subprocess.Popen[bytes] | Child":
    """Starts the program with three pipes."""
    if IS_POSSIBLE and not fresh:
        return shared_zygote().start(*arguments, cwd=cwd, env=env)
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run_in_shell(
    *arguments: str, redirect: str, cwd: Path, before: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs the program behind a redirection of the shell such as ``>&-``, and after a command of it."""
    command = f"{before} exec {shlex.join([*COMMAND, *arguments])} {redirect}"
    return subprocess.run(
        command, shell=True, cwd=cwd, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


def start_musepi(*arguments: str, cwd: Path) -> subprocess.Popen[bytes]:
    """Starts an interpreter with the program and an empty input; the caller reads its stdout and waits."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def events_of(output: str) -> list[dict[str, Any]]:
    """The JSON lines of an output."""
    return [json.loads(line) for line in output.splitlines()]


def model_flags(server_url: str, api: str = "openai-completions") -> list[str]:
    """Flags that point the program at a scripted server."""
    if api == "anthropic-messages":
        return [
            "--provider",
            "anthropic",
            "--model",
            "claude-sonnet-4-5",
            "--base-url",
            server_url,
            "--api-key",
            "k",
        ]
    return ["--provider", "local", "--model", "m1", "--base-url", f"{server_url}/v1", "--api-key", "k"]


class RpcProgram:
    """``musepi --mode rpc`` as a child: send commands, wait for lines.

    ``process`` is one that was started already, with three pipes.
    """

    def __init__(self, *arguments: str, cwd: Path, process: Child | None = None, fresh: bool = False) -> None:
        self.process = process or _start(("--mode", "rpc", *arguments), cwd, None, fresh=fresh)
        self.lines: list[dict[str, Any]] = []
        self._arrived: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> "RpcProgram":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def send(self, command: str, **arguments: Any) -> None:
        self.send_raw(json.dumps({"type": command, **arguments}).encode() + b"\n")

    def send_raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Sends a command and waits for its response."""
        self.send(command, **arguments)
        return self.wait(lambda line: line["type"] == "response" and line["command"] == command)

    def wait_for(self, event_type: str) -> dict[str, Any]:
        """The next line of that type."""
        return self.wait(lambda line: line["type"] == event_type)

    def wait(self, matches: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next line that matches; lines before it are taken."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            line = self._arrived.get(timeout=max(0.01, deadline - time.monotonic()))
            if line is None:
                raise AssertionError(f"the program ended; it wrote {self.lines[-5:]}")
            if matches(line):
                return line

    def close_input(self) -> int:
        """Closes stdin and waits for the end; the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(LIMIT_S)

    def kill(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(LIMIT_S)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                parsed = json.loads(line)
            except ValueError:
                break  # a line torn by a kill
            self.lines.append(parsed)
            self._arrived.put(parsed)
        self._arrived.put(None)


def stored_ids(path: Path) -> list[str]:
    """Ids of every readable entry in a session file, in file order."""
    records = [_object(line) for line in path.read_bytes().split(b"\n")]
    return [record["id"] for record in records if record.get("type") != "session" and "id" in record]


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def stored_messages(path: Path) -> list[Sequence[Any]]:
    """Id and role of every message line in a session file; a torn last line is left out."""
    found = []
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry.get("type") == "message":
            found.append((entry["id"], entry["message"]["role"]))
    return found
