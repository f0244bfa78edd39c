"""musepi processes that start in milliseconds: children of one process that has imported everything.

Starting the interpreter and importing the program costs half a second; a test that starts hundreds and kills
each cannot pay that. ``Zygote`` runs one process without threads that forks a real child a request,
which then lives like any other: own pid, own descriptors, own folder, own limits, killed by real signals::

    with Zygote() as zygote:
        child = zygote.start("--mode", "rpc", cwd=folder)
        child.kill()
        assert child.wait() == -signal.SIGKILL

A child has the members of ``subprocess.Popen`` that tests use.
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

_ROOT = Path(__file__).parents[2]
_MESSAGE_BYTES = 1024 * 1024
_STARTED_WITHIN_S = 60.0
_NOT_IMPORTED = ("musepi_tui.tui", "musepi_tui.__main__", "musepi_tui.cli.screen_mode")
"""What needs a terminal, or runs when it is imported."""

_ALSO_IMPORTED = (
    "httpx",
    "httpcore",
    "h11",
    "truststore",
    "certifi",
    "anyio._backends._asyncio",
    "pydantic.type_adapter",
    "mmap",
)
"""What the program imports only when it needs it, and a turn over HTTP does."""


class Child:
    """A running musepi. ``stdin``, ``stdout`` and ``stderr`` are binary files."""

    def __init__(self, pid: int, zygote: "Zygote", pipes: tuple[IO[bytes], IO[bytes], IO[bytes]]) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = pipes
        self.returncode: int | None = None
        self._zygote = zygote

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        if self.returncode is None:
            self.returncode = self._zygote.ask({"ended": self.pid})["code"]
        return self.returncode

    def wait(self, timeout: float = 30.0) -> int:
        """Waits for the end; the exit code, negative for a signal."""
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"musepi (pid {self.pid})", timeout)
            time.sleep(0.001)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Sends a signal; nothing happens when it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends it without a chance to do anything."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Kills it if it still runs and closes its pipes."""
        self.kill()
        self.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Zygote:
    """The process that forks; a context manager. One thread at a time may use it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.zygote", str(theirs.fileno())],
            cwd=_ROOT,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()

    def __enter__(self) -> "Zygote":
        self._socket.settimeout(_STARTED_WITHIN_S)
        if not self._socket.recv(_MESSAGE_BYTES):
            raise RuntimeError("not everything of musepi_tui can be imported; see stderr")
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._process.wait(30)

    def start(
        self,
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        file_limit_bytes: int | None = None,
    ) -> Child:
        """Starts ``musepi`` with these arguments, in the environment of the test plus ``env``.

        With ``file_limit_bytes`` no file it writes may become longer, until ``resource.prlimit`` allows more.
        """
        ours, theirs = zip(*(_pipe(is_input=number == 0) for number in range(3)), strict=True)
        request = {
            "arguments": arguments,
            "cwd": str(cwd),
            "env": {**os.environ, **(env or {})},
            "limit": file_limit_bytes,
        }
        try:
            pid = self.ask(request, theirs)["pid"]
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        stdin, stdout, stderr = ours
        return Child(pid, self, (os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb"), os.fdopen(stderr, "rb")))

    def ask(self, request: Mapping[str, Any], descriptors: tuple[int, ...] = ()) -> dict[str, Any]:
        """Sends one request, waits for its answer."""
        socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
        return json.loads(self._socket.recv(_MESSAGE_BYTES))


def _pipe(*, is_input: bool) -> tuple[int, int]:
    """Our end and the child's end."""
    reading, writing = os.pipe()
    return (writing, reading) if is_input else (reading, writing)


def _serve(connection: socket.socket) -> None:
    """Forks a child a request until the other side is gone."""
    for module in pkgutil.walk_packages(importlib.import_module("musepi_tui").__path__, "musepi_tui."):
        if not module.name.startswith(_NOT_IMPORTED):
            importlib.import_module(module.name)
    for name in _ALSO_IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    connection.send(b'{"ready":true}')
    while True:
        data, descriptors, *_ = socket.recv_fds(connection, _MESSAGE_BYTES, 3)
        if not data:
            return
        request = json.loads(data)
        if "ended" in request:
            pid, status = os.waitpid(request["ended"], os.WNOHANG)
            answer: dict[str, Any] = {"code": os.waitstatus_to_exitcode(status) if pid else None}
        else:
            pid = os.fork()
            if pid == 0:
                connection.close()
                _become(request, descriptors)
            answer = {"pid": pid}
            for descriptor in descriptors:
                os.close(descriptor)
        connection.send(json.dumps(answer).encode())


def _become(request: Mapping[str, Any], descriptors: list[int]) -> None:
    """Turns a forked child into the program; does not come back."""
    code = 70
    try:
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        random.seed()
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        if request["limit"] is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (request["limit"], resource.RLIM_INFINITY))
        sys.stdin = os.fdopen(0, encoding="utf-8")  # the old one remembers an end of input
        main = importlib.import_module("musepi_tui.cli.main").main
        code = main(request["arguments"])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        raise
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
