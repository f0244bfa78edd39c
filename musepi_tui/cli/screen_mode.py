"""The screen: the runtime around the app, and what is said after it."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from musepi_tui.base.errors import SessionError
from musepi_tui.base.streams import drop_unwritable
from musepi_tui.cli.headless import tell_rescue
from musepi_tui.runtime.events import SessionView
from musepi_tui.runtime.options import RuntimeOptions
from musepi_tui.runtime.session import SessionRuntime
from musepi_tui.tui.app import run_app


def run_screen(
    options: RuntimeOptions, environ: Mapping[str, str], prompts: tuple[str, ...], *, pick: bool
) -> int:
    """Shows the session until the person leaves; the exit code. ``pick`` opens the session list first."""
    return asyncio.run(_run(options, environ, prompts, pick=pick))


async def _run(
    options: RuntimeOptions, environ: Mapping[str, str], prompts: tuple[str, ...], *, pick: bool
) -> int:
    # The runtime is closed around the app, so that everything is stored whatever ended the screen.
    async with SessionRuntime.open(options) as runtime:
        code = await run_app(runtime, environ, prompts=prompts, pick=pick)
        view = runtime.view()
    unsaved = tell_rescue(runtime)
    _tell_resume(view)
    return 1 if unsaved else code


def _is_stored(path: Path, session_id: str) -> bool:
    """Whether the file is there and still that of the session."""
    from musepi_tui.storage.glance import glance_at  # deferred: after the screen

    try:
        return glance_at(path).id == session_id
    except SessionError:
        return False


def _tell_resume(view: SessionView) -> None:
    """Names the command that brings this session back; nothing for a session without messages."""
    if view.file is None or not _is_stored(view.file, view.header.id):
        return
    try:
        sys.stdout.write(f"To go on with this session: musepi --resume {view.header.id}\n")
        sys.stdout.flush()
    except OSError:
        drop_unwritable()  # the terminal is gone; nobody is left to tell
