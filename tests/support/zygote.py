"""musepi processes that start in milliseconds: children of one process that has imported everything.

Starting the interpreter and importing the program costs half a second; a test that starts hundreds and kills
each cannot pay that. ``Zygote`` runs one process without threads that forks a real child a request,
which then lives like any other: own pid, own descriptors, own folder, own limits, killed by real signals::

    child = shared_zygote().start("--mode", "rpc", cwd=folder)
    child.kill()
    assert child.wait() == -signal.SIGKILL

A child runs what ``python -m musepi_tui`` runs and has the members of ``subprocess.Popen`` that tests use.
It cannot show what belongs to the start of an interpreter: what is imported when, the encoding of the
streams, streams that are closed. Tests of those start one.
"""

import atexit
import contextlib
import dataclasses
import functools
import gc
import importlib
import importlib.util
import json
import os
import pkgutil
import random
import resource
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

IS_POSSIBLE = sys.platform == "linux"
"""Whether the system has the calls this needs."""

_ROOT = Path(__file__).parents[2]
_MESSAGE_BYTES = 1024 * 1024
_STARTED_WITHIN_S = 60.0
_RUNS_WHEN_IMPORTED = "musepi_tui.__main__"
_OF_THE_SCREEN = ("musepi_tui.tui", "musepi_tui.cli.screen_mode")
"""Half of all that is imported, and most tests start nothing that needs it."""

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
    """A running program. Started with pipes, ``stdin``, ``stdout`` and ``stderr`` are binary files."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]

    def __init__(self, pid: int, zygote: "Zygote", pipes: Sequence[IO[bytes]] = ()) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._zygote = zygote
        self._pipes = pipes
        if pipes:
            self.stdin, self.stdout, self.stderr = pipes

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        if self.returncode is None:
            self.returncode = self._zygote.ask({"ended": self.pid})["code"]
        return self.returncode

    def wait(self, timeout: float = 30.0) -> int:
        """Waits for the end; the exit code, negative for a signal."""
        if self.poll() is None:
            descriptor = os.pidfd_open(self.pid)
            try:
                select.select([descriptor], [], [], timeout)
            finally:
                os.close(descriptor)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(f"pid {self.pid}", timeout)
        return code

    def communicate(self, data: bytes = b"", timeout: float = 30.0) -> tuple[bytes, bytes]:
        """Gives it all of its input and waits for its end; what it wrote to stdout and to stderr."""
        deadline = time.monotonic() + timeout
        written = {self.stdout: bytearray(), self.stderr: bytearray()}
        with selectors.DefaultSelector() as selector:
            selector.register(self.stdin, selectors.EVENT_WRITE)
            for pipe in written:
                selector.register(pipe, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise subprocess.TimeoutExpired(f"pid {self.pid}", timeout)
                for key, _ in ready:
                    if key.fileobj is self.stdin:
                        data, is_over = self._feed(data)
                    else:
                        block = os.read(key.fd, 65536)
                        written[key.fileobj] += block  # type: ignore[index]  # one of the two
                        is_over = not block
                    if is_over:
                        selector.unregister(key.fileobj)
        self.wait(max(0.0, deadline - time.monotonic()))
        return bytes(written[self.stdout]), bytes(written[self.stderr])

    def _feed(self, data: bytes) -> tuple[bytes, bool]:
        """Writes what a pipe takes without waiting; the rest, and whether the input is closed now."""
        with contextlib.suppress(BrokenPipeError):
            rest = data[os.write(self.stdin.fileno(), data[: select.PIPE_BUF]) :] if data else b""
            if rest:
                return rest, False
        self.stdin.close()
        return b"", True

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
        for pipe in self._pipes:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Zygote:
    """The process that forks; a context manager. With ``screen`` it has imported that too."""

    def __init__(self, *, screen: bool = False) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._one_at_a_time = threading.Lock()
        words = [str(theirs.fileno()), *(["screen"] if screen else [])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.zygote", *words],
            cwd=_ROOT,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()

    def __enter__(self) -> "Zygote":
        self._socket.settimeout(_STARTED_WITHIN_S)
        if not self._socket.recv(_MESSAGE_BYTES):
            self.__exit__()
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
        module: str = "musepi_tui",
    ) -> Child:
        """Starts ``python -m module`` with these arguments, in the environment of the test plus ``env``.

        With ``file_limit_bytes`` no file it writes may become longer, until ``resource.prlimit`` allows more.
        """
        request = {
            "module": module,
            "arguments": arguments,
            "cwd": str(cwd),
            "env": {**os.environ, **(env or {})},
            "limit": file_limit_bytes,
        }
        ours, theirs = zip(*(_pipe(is_input=number == 0) for number in range(3)), strict=True)
        try:
            pid = self.ask(request, theirs)["pid"]
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        pipes = [os.fdopen(end, "rb" if number else "wb") for number, end in enumerate(ours)]
        return Child(pid, self, pipes)

    def start_in_terminal(self, terminal: int, module: str, *arguments: str, env: Mapping[str, str]) -> Child:
        """Starts ``python -m module`` in a terminal, given by the descriptor of its inner end."""
        request = {"module": module, "arguments": arguments, "cwd": str(Path.cwd()), "env": dict(env)}
        return Child(self.ask(request, (terminal,))["pid"], self)

    def ask(self, request: Mapping[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        """Sends one request, waits for its answer."""
        with self._one_at_a_time:
            socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
            return json.loads(self._socket.recv(_MESSAGE_BYTES))


@functools.cache
def shared_zygote(*, screen: bool = False) -> Zygote:
    """The one of this process; it ends with it."""
    zygote = Zygote(screen=screen).__enter__()
    atexit.register(zygote.__exit__)
    return zygote


def _pipe(*, is_input: bool) -> tuple[int, int]:
    """Our end and the child's end."""
    reading, writing = os.pipe()
    return (writing, reading) if is_input else (reading, writing)


def _serve(connection: socket.socket, *, screen: bool) -> None:
    """Forks a child a request until the other side is gone."""
    _import_all(screen=screen)
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


def _import_all(*, screen: bool) -> None:
    left_out = (_RUNS_WHEN_IMPORTED, *(() if screen else _OF_THE_SCREEN))
    for module in pkgutil.walk_packages(importlib.import_module("musepi_tui").__path__, "musepi_tui."):
        if not module.name.startswith(left_out):
            importlib.import_module(module.name)
    for name in _ALSO_IMPORTED:
        importlib.import_module(name)
    if importlib.util.find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # type: ignore[assignment]  # see tests/conftest.py
    _make_dataclasses()
    _make_schemas()
    gc.collect()
    gc.freeze()


def _make_dataclasses() -> None:
    """Compiles each ``__init__`` that would be compiled with its first object, see ``base/dataclass.py``."""
    named = [vars(module) for name, module in sys.modules.items() if name.startswith("musepi_tui.")]
    for found in {value for values in named for value in values.values() if isinstance(value, type)}:
        if dataclasses.is_dataclass(found) and found.__init__.__module__ == "musepi_tui.base.dataclass":
            with contextlib.suppress(TypeError, AttributeError):
                found.__init__(None)  # type: ignore[arg-type]  # makes it, and then has no object to fill


def _make_schemas() -> None:
    """Builds the schemas of the tools, which each program would build for its first request."""
    from musepi_tui.tools.registry import ToolRegistry  # deferred: only the process that forks needs it

    ToolRegistry.discover().specs()


def _become(request: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    """Turns a forked child into the program; does not come back."""
    code: object = 1
    try:
        _take_place(request, descriptors)
        sys.argv[1:] = request["arguments"]
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        raise
    finally:
        _end(code)


def _take_place(request: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    """Streams, folder, environment and limits of the program."""
    if len(descriptors) == 1:
        os.login_tty(descriptors[0])
    for number, descriptor in enumerate(descriptors[1:] and descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed()
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    if request.get("limit") is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["limit"], resource.RLIM_INFINITY))
    sys.stdin = os.fdopen(0, encoding="utf-8")  # the old one remembers an end of input


def _end(code: object) -> None:
    """Ends the process as an interpreter does, without taking down every module first."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as every end does
        atexit._run_exitfuncs()
        if isinstance(code, str):
            sys.stderr.write(f"{code}\n")
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])), screen="screen" in sys.argv[2:])
