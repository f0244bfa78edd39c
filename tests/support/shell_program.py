"""The screen over a fake runtime as a program of its own: for tests in a real terminal.

``python -m tests.support.shell_program HOME [crash]``; exits with the code of ``run_app``.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, cast

from musepi_tui.tui.app import run_app
from tests.support.builders import a, path, u
from tests.support.fake_runtime import FakeRuntime


async def main(home: Path, *, crash: bool) -> int:
    """Runs the screen until it ends."""
    runtime = FakeRuntime(home, *path(u("first prompt"), a("first answer")))
    if crash:
        secret = "a-secret-local-value"
        runtime.list_sessions = lambda **_: 1 / len(secret[:0])  # type: ignore[method-assign,assignment]
        runtime.models = lambda: 1 / 0  # type: ignore[method-assign,assignment]
    return await run_app(cast("Any", runtime), os.environ)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), crash="crash" in sys.argv[2:])))
