"""No room on the disk: nothing told as stored is lost, a notice says so, and writing goes on later."""

import re
import resource
import shlex
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import write_models
from tests.support.lines import chain, dump, header_line, record
from tests.support.minimal_reader import read_session
from tests.support.program import RpcProgram, run_in_shell, stored_ids
from tests.support.server import ModelServer, anthropic_reply
from tests.support.stored import keeps_the_rules
from tests.support.tmux import Terminal
from tests.support.zygote import Zygote

WORDS = "some words of an answer " * 10
LIMIT_BYTES = 3000
"""How long a file may become: room for a turn or two."""

NO_BYTECODE = "export PYTHONDONTWRITEBYTECODE=1"
"""Python installs compiled modules that a limit has cut short, and cannot read them the next time."""

ROOM_BYTES = 64 * 1024
"""Size of the file system that is filled up: the smallest that holds a lock file, a session and a filler."""


@pytest.fixture
def model(musepi_home: Path) -> Iterator[ModelServer]:
    """A model that always answers the same."""
    with ModelServer() as server:
        server.fallback = anthropic_reply(text=WORDS)
        write_models(musepi_home, "anthropic-messages", server.base_url)
        yield server


@pytest.fixture
def start(zygote: Zygote, model: ModelServer, tmp_path: Path) -> Iterator[Callable[..., RpcProgram]]:
    """Starts RPC on a session file."""
    running: list[RpcProgram] = []

    def begin(path: Path, **options: Any) -> RpcProgram:
        arguments = ("--mode", "rpc", "--yolo", "--model", "local/m1", "--session", str(path))
        process = zygote.start(*arguments, cwd=tmp_path, **options)
        running.append(RpcProgram(cwd=tmp_path, process=process))
        return running[-1]

    yield begin
    for program in running:
        program.__exit__()


def prompt(program: RpcProgram, text: str) -> None:
    program.send("prompt", message=text)
    program.wait_for("agent_settled")


def state(program: RpcProgram) -> dict[str, Any]:
    return program.ask("get_state")["data"]


def fill_up(program: RpcProgram) -> int:
    """Prompts until something could not be written; how many entries are unsaved then."""
    for number in range(40):
        prompt(program, f"prompt {number} " + "please " * 20)
        unsaved = state(program)["unsaved"]
        if unsaved:
            return unsaved
    raise AssertionError("the disk was never full")


def told_ids(program: RpcProgram) -> list[str]:
    return [line["entryId"] for line in program.lines if line["type"] == "message_end"]


def entry_ids(program: RpcProgram) -> list[str]:
    return [entry["id"] for entry in program.ask("get_entries")["data"]["entries"]]


def errors(program: RpcProgram) -> list[str]:
    return [
        line["message"] for line in program.lines if line["type"] == "notice" and line["level"] == "error"
    ]


def assert_whole(path: Path, ids: list[str]) -> None:
    """The file holds these entries, each once, and keeps the rules."""
    assert stored_ids(path) == ids
    assert keeps_the_rules(path)
    assert [entry["id"] for entry in read_session(path).path(ids[-1])] == ids


def test_what_does_not_fit_waits_and_is_written_once_there_is_room(start, tmp_path):
    path = tmp_path / "s.jsonl"
    program = start(path, file_limit_bytes=LIMIT_BYTES)
    unsaved = fill_up(program)
    (said, *_) = errors(program)
    assert said == (
        f"session: could not write {path}: File too large; the conversation is kept in memory and will be "
        "written at the next attempt"
    )
    assert set(told_ids(program)) <= set(stored_ids(path))
    assert program.ask("flush")["data"] == {"unsaved": unsaved}
    prompt(program, "and more")
    assert state(program)["unsaved"] > unsaved
    assert set(told_ids(program)) <= set(stored_ids(path))

    resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert program.ask("flush")["data"] == {"unsaved": 0}
    assert_whole(path, entry_ids(program))
    before = len(told_ids(program))
    prompt(program, "again")
    assert len(told_ids(program)) == before + 2
    assert program.close_input() == 0
    assert_whole(path, stored_ids(path))


def test_the_next_prompt_writes_what_waits_too(start, tmp_path):
    path = tmp_path / "s.jsonl"
    program = start(path, file_limit_bytes=LIMIT_BYTES)
    fill_up(program)
    resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    prompt(program, "go on")
    assert state(program)["unsaved"] == 0
    assert_whole(path, entry_ids(program))


def test_what_never_fitted_is_in_the_rescue_file_at_the_end(start, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    path = tmp_path / "s.jsonl"
    program = start(path, file_limit_bytes=LIMIT_BYTES)
    fill_up(program)
    ids = entry_ids(program)
    program.process.stdin.close()
    assert program.process.wait() == 1
    said = program.process.stderr.read().decode()
    named = re.search(r"\S+/musepi-rescue-\S+\.jsonl", said)
    assert named is not None, said
    rescue = Path(named[0])
    assert rescue.parent == tmp_path / "tmp"
    assert stat.S_IMODE(rescue.stat().st_mode) == 0o600
    assert [*stored_ids(path), *stored_ids(rescue)] == ids
    assert read_session(rescue).header["id"] == read_session(path).header["id"]
    assert not path.with_name("s.jsonl.lock").exists()
    rest = rescue.read_bytes().split(b"\n", 1)[1]
    path.write_bytes(path.read_bytes() + b"\n" + rest)  # what the page on sessions tells people to do
    assert_whole(path, ids)


@pytest.mark.parametrize("has_room", [True, False], ids=["a rescue file", "none"])
def test_a_signal_hides_nothing_of_what_could_not_be_written(has_room, start, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    path = tmp_path / "s.jsonl"
    program = start(path, file_limit_bytes=LIMIT_BYTES)
    unsaved = fill_up(program)
    if not has_room:
        resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (0, LIMIT_BYTES))
    program.process.send_signal(signal.SIGTERM)
    assert program.process.wait() == 143
    said = program.process.stderr.read().decode()
    if has_room:
        (rescue,) = (tmp_path / "tmp").glob("musepi-rescue-*")
        assert str(rescue) in said
        assert len(stored_ids(rescue)) >= unsaved
    else:
        assert re.search(r"session: (1 entry|\d+ entries) of this .* written nowhere", said), said


def test_print_mode_answers_and_says_where_the_rest_is(model, tmp_path):
    path = tmp_path / "s.jsonl"
    before = b"".join(map(dump, [header_line(cwd=str(tmp_path)), *chain("old " * 700)]))
    path.write_bytes(before)
    run = run_in_shell(
        *("-p", "please", "--model", "local/m1", "--session", str(path)),
        before=f"{NO_BYTECODE}; ulimit -f 6;",  # x 512 bytes: the session is as long, the rescue file is not
        redirect="</dev/null",
        cwd=tmp_path,
    )
    assert (run.returncode, run.stdout.strip()) == (1, WORDS.strip())
    assert f"session: could not write {path}: File too large" in run.stderr
    named = re.search(r"\S+/musepi-rescue-\S+\.jsonl", run.stderr)
    assert named is not None, run.stderr
    rescue = Path(named[0])
    roles = [entry["message"]["role"] for entry in read_session(rescue).entries if entry["type"] == "message"]
    rescue.unlink()
    assert roles == ["user", "assistant"]
    assert path.read_bytes().startswith(before)
    assert len(read_session(path).entries) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of ``ROOM_BYTES``; skips where none may be mounted."""
    folder = tmp_path / "small"
    folder.mkdir()
    size = f"size={ROOM_BYTES}"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "none", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=False)


def test_a_disk_that_is_full_for_a_while_costs_nothing(start, small_disk):
    path, filler = small_disk / "s.jsonl", small_disk / "filler"
    program = start(path)
    prompt(program, "first")
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        for _ in range(ROOM_BYTES):
            file.write(b"x" * 512)
    fill_up(program)
    assert f"could not write {path}: No space left on device" in errors(program)[0]
    assert set(told_ids(program)) <= set(stored_ids(path))
    filler.unlink()
    assert program.ask("flush")["data"] == {"unsaved": 0}
    assert_whole(path, entry_ids(program))
    assert program.close_input() == 0


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_the_screen_says_what_is_not_saved_and_where_it_went(tmp_path):
    path = tmp_path / "s.jsonl"
    padding = record("custom", "c1", None, customType="padding", data="x" * 60 * 1024)
    path.write_bytes(dump(header_line(cwd=str(tmp_path))) + dump(padding))
    with Terminal(200, 30, tmp_path) as terminal:  # wide enough for a path on one line
        terminal.type(f"{NO_BYTECODE} TMPDIR={shlex.quote(str(tmp_path))}; ulimit -S -f 60")
        terminal.press("Enter")
        terminal.start("--yolo", "--session", str(path))
        terminal.submit("make a table")
        screen = terminal.wait("unsaved(", limit_s=60)
        assert "could not write" in screen
        terminal.wait("esc to cancel", gone=True, limit_s=90)
        terminal.submit("/quit")
        terminal.wait("musepi-rescue-", limit_s=20)
    (rescue,) = tmp_path.glob("musepi-rescue-*.jsonl")
    assert len(read_session(rescue).entries) > 0
