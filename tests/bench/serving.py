"""A model server in a process of its own, so that it shares no interpreter lock with what is measured.

``python -m tests.bench.serving`` prints its address, then takes orders on stdin, one a line: ``5000 500``
answers the next request with 5,000 tokens of Markdown at 500 a second; at 0 they come all at once.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench.programs import ROOT
from tests.bench.sessions import markdown
from tests.support.server import ModelServer, openai_reply

FIRST_WORD = "the-stream-begins"
LAST_WORD = "the-stream-ends"


class ModelProcess:
    """A running server. ``address`` is the root of its URLs."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.serving"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self.address = self._line()

    def order(self, tokens: int, rate: int) -> None:
        """Decides the answer to the next request."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{tokens} {rate}\n")
        self._process.stdin.flush()
        self._line()

    def close(self) -> None:
        """Ends the server."""
        self._process.communicate(timeout=10)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def serving() -> Iterator[ModelProcess]:
    """A server until the block ends."""
    server = ModelProcess()
    try:
        yield server
    finally:
        server.close()


def main() -> None:
    """Serves until stdin ends."""
    with ModelServer() as server:
        _tell(server.base_url)
        for line in sys.stdin:
            tokens, rate = map(int, line.split())
            text = f"{FIRST_WORD}\n\n{markdown(tokens)}\n\n{LAST_WORD}"
            server.script(openai_reply(text, rate=rate))
            _tell("taken")


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
