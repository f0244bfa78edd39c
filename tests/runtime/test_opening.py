import os
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from musepi_tui.base.errors import SessionError, SessionUnwritableError
from musepi_tui.runtime.intents import ForkSession, SubmitPrompt, WaitForSession
from musepi_tui.runtime.opening import open_quickly
from musepi_tui.runtime.options import SessionChoice
from musepi_tui.runtime.sessions import load_wholly
from tests.support.harness import reopened, running
from tests.support.lines import chain, header_line, write_lines


@pytest.fixture
def unlockable(tmp_path: Path, project: Path) -> Path:
    """A session whose lock file cannot be made, for root neither."""
    path = write_lines(tmp_path / "s.jsonl", header_line(cwd=str(project)), *chain("one", "two"))
    path.with_name("s.jsonl.lock").mkdir()
    return path


@pytest.fixture
def linked(tmp_path: Path, project: Path) -> Path:
    """A session of version 1 with two names: the first append would have to part them."""
    header = header_line(None, cwd=str(project))
    first = {"type": "message", "message": {"role": "user", "content": "old"}}
    path = write_lines(tmp_path / "old.jsonl", header, first)
    path.with_name("second-name.jsonl").hardlink_to(path)
    return path


async def test_a_session_that_cannot_be_locked_is_shown_with_the_reason(scripted, unlockable):
    _, options = scripted(("answer",))
    async with running(replace(reopened(options, unlockable), on_busy="read_only")) as harness:
        view = harness.runtime.view()
        assert (view.read_only, view.can_wait, len(view.tree)) == (True, False, 2)
        assert view.read_only_cause == f"could not lock {unlockable} with a file beside it: Is a directory"
        settled = await harness.settle(SubmitPrompt("hello"))
        assert settled.error == (
            f"{view.read_only_cause}; free some space or check the permissions of its folder, or use "
            f"--fork {unlockable}"
        )
        assert not (await harness.settle(WaitForSession())).ok
        assert (await harness.settle(ForkSession())).ok


async def test_an_old_session_with_two_names_is_not_opened_for_writing(scripted, linked):
    _, options = scripted(("answer",))
    before = linked.read_bytes()
    async with running(replace(reopened(options, linked), on_busy="read_only")) as harness:
        settled = await harness.settle(SubmitPrompt("hello"))
        assert settled.error is not None
        assert "2 names (hard links)" in settled.error
        assert settled.error.endswith(f"; copy it first, or use --fork {linked}")
    assert linked.read_bytes() == before
    with pytest.raises(SessionUnwritableError, match="hard links"):
        load_wholly(open_quickly(SessionChoice("open", linked), options), options)


@pytest.fixture
def read_only_disk(tmp_path: Path, project: Path) -> Iterator[Path]:
    """A session on a file system that takes no writes; skips where none may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system may be mounted here")
    path = write_lines(folder / "s.jsonl", header_line(cwd=str(project)), *chain("one", "two"))
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    yield path
    subprocess.run(["umount", "--lazy", folder], check=False)


async def test_a_session_that_may_only_be_read_takes_no_prompt(scripted, read_only_disk):
    _, options = scripted(("answer",))
    async with running(replace(reopened(options, read_only_disk), on_busy="read_only")) as harness:
        settled = await harness.settle(SubmitPrompt("hello"))
        assert settled.error is not None
        assert settled.error.endswith(f"or use --fork {read_only_disk}")
        assert len(harness.runtime.view().tree) == 2
    with pytest.raises(SessionUnwritableError, match="Read-only file system"):
        open_quickly(SessionChoice("open", read_only_disk), options)


def test_nobody_begins_a_session_in_a_pipe_or_a_folder(scripted, tmp_path):
    _, options = scripted()
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(SessionError, match=r"not a regular file|directory"):
            open_quickly(SessionChoice("new", path), options)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_links_in_a_circle_are_an_error_of_one_line(scripted, tmp_path):
    _, options = scripted()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(SessionError, match="circle|levels of symbolic links"):
        open_quickly(SessionChoice("open", tmp_path / "loop"), options)
