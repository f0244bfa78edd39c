"""Session files as the product writes them, and the questions every reader of one can be asked."""

import argparse
import importlib.util
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from musepi_tui.cli.sessions.check import check
from musepi_tui.session.entries import Entry, SessionHeader
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.session_file import SessionFile
from tests.support.shared import shared_path


def write_session(path: Path, header: SessionHeader, entries: Sequence[Entry]) -> Path:
    """A session file made by the product, one append an entry."""
    path.unlink(missing_ok=True)
    session = SessionFile.create(path, header)
    for entry in entries:
        session.append([entry])
    session.close()
    return path


def write_anew(path: Path, data: bytes) -> None:
    """Puts the bytes into a new file. One that is written over reaches the disk at once, which takes longer
    than most of what a test does with it."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def append_to(path: Path, *entries: Entry) -> None:
    """Opens a stored session as a person would, adds entries and closes it."""
    session = SessionFile.open(path, load_session(path))
    session.append(entries)
    session.close()


def keeps_the_rules(path: Path) -> bool:
    """What ``musepi sessions check`` says of a file; the breaches are printed."""
    return check(argparse.Namespace(file=path, strict=False), {}) == 0


@cache
def format_checker() -> Callable[[str], dict[str, Any]]:
    """The checker of the format that the pages come with: facts and ``problems`` of a version 3 file."""
    script = shared_path("tools", "make_session.py")
    spec = importlib.util.spec_from_file_location("format_checker", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.check
