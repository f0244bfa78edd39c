"""System calls that fail, or end the process, at a chosen call: every place a program can be hit at.

``failing(n)`` makes the n-th call that changes a file raise ``EIO``; ``dies_at(n, operation)`` runs the
operation in a forked child that is gone at its n-th such call, as after a kill or a power cut of the program.
"""

import errno
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

CHANGING_CALLS = (
    "open",
    "write",
    "pwrite",
    "ftruncate",
    "copy_file_range",
    "fsync",
    "fdatasync",
    "rename",
    "replace",
    "link",
    "unlink",
)
_DIED = 9


class _Counter:
    """Counts changing calls; at the chosen one it does something else in place of the call."""

    def __init__(self, at: int, instead: Callable[..., Any]) -> None:
        self.seen = 0
        self._at = at
        self._instead = instead
        self._real = {name: getattr(os, name) for name in CHANGING_CALLS if hasattr(os, name)}

    def install(self) -> None:
        for name, real in self._real.items():
            setattr(os, name, self._counting(name, real))

    def remove(self) -> None:
        for name, real in self._real.items():
            setattr(os, name, real)

    def _counting(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.seen += 1
            if self.seen == self._at:
                return self._instead(name, real, args)
            return real(*args, **options)

        return call


@contextmanager
def failing(at: int) -> Iterator[Callable[[], bool]]:
    """Within the block the call with that number (from 1) raises ``EIO``; gives whether it was reached."""
    counter = _Counter(at, _fail)
    counter.install()
    try:
        yield lambda: counter.seen >= at
    finally:
        counter.remove()


def dies_at(at: int, operation: Callable[[], object], *, halfway: bool = False) -> bool:
    """Whether a child that carries out the operation died at its call with that number (from 1).

    With ``halfway`` a write gets the first half of its bytes out first. Raises when the operation does.
    """
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _Counter(at, _die_halfway if halfway else _die).install()
            operation()
            code = 0
        except BaseException:
            os.write(2, traceback.format_exc().encode())
            raise
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, _DIED):
        raise AssertionError(f"the operation ended with {code} at call {at}")
    return code == _DIED


def _fail(name: str, _: Callable[..., Any], args: tuple[Any, ...]) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO), args[0] if name == "open" else None)


def _die(*_: object) -> None:
    os._exit(_DIED)


def _die_halfway(name: str, real: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if name == "write":
        real(args[0], args[1][: len(args[1]) // 2])
    os._exit(_DIED)
