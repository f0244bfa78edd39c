"""Two programs on one session file: the second musepi is told, nothing interleaves, foreign lines stay."""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import write_models
from tests.support.lines import dump, header_line, user_record
from tests.support.minimal_reader import read_session, shape_of
from tests.support.program import RpcProgram, run_musepi, stored_ids
from tests.support.server import ModelServer, anthropic_reply
from tests.support.stored import keeps_the_rules
from tests.support.zygote import Child, Zygote

FLAGS = ("--yolo", "--model", "local/m1", "--set", "tokens.estimator=chars4")
RACERS = 6


@pytest.fixture
def model(musepi_home: Path) -> Iterator[ModelServer]:
    """A model that always answers the same."""
    with ModelServer() as server:
        server.fallback = anthropic_reply(text="an answer")
        write_models(musepi_home, "anthropic-messages", server.base_url)
        yield server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The session of these tests."""
    return tmp_path / "s.jsonl"


@pytest.fixture
def start(zygote: Zygote, model: ModelServer, tmp_path: Path) -> Iterator[Callable[..., RpcProgram]]:
    """Starts RPC on a session file."""
    with ExitStack() as running:

        def begin(path: Path, *arguments: str) -> RpcProgram:
            process = zygote.start("--mode", "rpc", *FLAGS, "--session", str(path), *arguments, cwd=tmp_path)
            return running.enter_context(RpcProgram(cwd=tmp_path, process=process))

        yield begin


@pytest.fixture
def owner(start: Callable[..., RpcProgram], path: Path) -> RpcProgram:
    """A musepi that has written one turn to the session and has it open."""
    program = start(path)
    prompt(program, "first")
    return program


def prompt(program: RpcProgram, text: str) -> None:
    program.send("prompt", message=text)
    program.wait_for("agent_settled")


def busy_text(owner: RpcProgram, path: Path) -> str:
    return f"session is open in another musepi (pid {owner.process.pid}); close it, or use --fork {path}"


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"


def finish(child: Child) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a child that ends by itself."""
    child.stdin.close()
    output, errors = child.stdout.read().decode(), child.stderr.read().decode()
    return child.wait(), output, errors


def said(program: RpcProgram) -> list[str]:
    return [line["message"] for line in program.lines if line["type"] == "notice"]


def context_texts(program: RpcProgram) -> list[str]:
    return [message["text"] for message in program.ask("get_messages")["data"]["messages"]]


@pytest.mark.parametrize("mode", [(), ("--mode", "json")], ids=["print", "json"])
def test_a_second_print_run_ends_at_once_and_names_the_owner(mode, owner, zygote, path, tmp_path):
    before = path.read_bytes()
    with zygote.start("-p", "second", *mode, *FLAGS, "--session", str(path), cwd=tmp_path) as child:
        code, output, errors = finish(child)
    assert code == 1
    assert busy_text(owner, path) in errors
    assert "second" not in output
    assert path.read_bytes() == before
    prompt(owner, "still mine")
    assert keeps_the_rules(path)


def test_a_second_rpc_reads_and_is_refused_with_the_same_text(owner, start, path):
    second = start(path)
    state = second.ask("get_state")["data"]
    assert (state["readOnly"], state["messageCount"]) == (True, 2)
    before = path.read_bytes()
    for command, arguments in (
        ("prompt", {"message": "second"}),
        ("compact", {}),
        ("set_session_name", {"name": "mine"}),
        ("set_thinking_level", {"level": "high"}),
    ):
        answer = second.ask(command, **arguments)
        assert (answer["success"], answer["error"]) == (False, busy_text(owner, path)), command
    assert context_texts(second) == ["first", "an answer"]
    assert path.read_bytes() == before
    assert second.close_input() == 0
    assert owner.ask("get_state")["data"]["readOnly"] is False
    prompt(owner, "still mine")


def test_nothing_interleaves_when_two_start_to_write_at_once(zygote, model, path, tmp_path):
    path.write_bytes(dump(header_line(cwd=str(tmp_path))) + dump(user_record("e1", None, "old")))
    for turn in range(3):
        racers = [
            zygote.start("-p", f"racer {turn}-{number}", *FLAGS, "--session", str(path), cwd=tmp_path)
            for number in range(RACERS)
        ]
        for racer in racers:
            racer.stdin.close()
        ends = [finish(racer) for racer in racers]
        winners = [code for code, _, _ in ends if code == 0]
        assert winners
        assert all("session is open in another musepi" in errors for code, _, errors in ends if code)
        assert keeps_the_rules(path)
        for racer in racers:
            racer.close()
    reading = read_session(path)
    assert [entry["id"] for entry in reading.path(reading.leaf)] == reading.order


def test_a_stopped_owner_still_owns(owner, zygote, path, tmp_path):
    owner.process.send_signal(signal.SIGSTOP)
    try:
        while not is_stopped(owner.process.pid):
            time.sleep(0.005)
        with zygote.start(
            "-p", "second", *FLAGS, "--session", str(path), "--takeover", cwd=tmp_path
        ) as child:
            code, _, errors = finish(child)
    finally:
        owner.process.send_signal(signal.SIGCONT)
    assert (code, busy_text(owner, path) in errors) == (1, True)
    prompt(owner, "awake again")
    assert keeps_the_rules(path)


def test_a_dead_owner_does_not_block(owner, zygote, path, tmp_path):
    owner.process.kill()
    owner.process.wait()
    assert path.with_name("s.jsonl.lock").exists()
    before = path.read_bytes()
    with zygote.start("-p", "second", *FLAGS, "--session", str(path), cwd=tmp_path) as child:
        assert finish(child) == (0, "an answer\n", "")
    assert path.read_bytes().startswith(before)
    assert keeps_the_rules(path)
    assert not path.with_name("s.jsonl.lock").exists()


def test_the_session_can_be_opened_once_the_owner_has_closed_it(owner, start, path):
    assert owner.close_input() == 0
    second = start(path)
    assert second.ask("get_state")["data"]["readOnly"] is False
    prompt(second, "second")
    assert context_texts(second) == ["first", "an answer", "second", "an answer"]


def test_readers_take_no_lock_and_see_whole_lines_while_another_writes(owner, path, tmp_path):
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            prompt(owner, "more")

    writer = threading.Thread(target=work)
    writer.start()
    try:
        for command in ("check", "inspect", "transcript"):
            run = run_musepi("sessions", command, str(path), cwd=tmp_path)
            assert (run.returncode, run.stderr) == (0, "")
    finally:
        stop.set()
        writer.join()


def foreign_line(path: Path, entry_id: str = "f0000001") -> bytes:
    """What another program would append: a message under the last entry it read."""
    return dump(user_record(entry_id, read_session(path).leaf, "from elsewhere"))


def test_lines_another_program_appends_are_taken_in_and_the_leaf_stays(owner, path):
    leaf = read_session(path).leaf
    line = foreign_line(path)
    with path.open("ab") as other:
        other.write(line)
    prompt(owner, "second")
    prompt(owner, "third")
    reading = read_session(path)
    assert line in path.read_bytes()
    assert keeps_the_rules(path)
    assert "f0000001" in [entry["id"] for entry in owner.ask("get_entries")["data"]["entries"]]
    assert context_texts(owner) == ["first", "an answer", "second", "an answer", "third", "an answer"]
    assert [shape_of(pair)[2] for pair in reading.context(reading.leaf)][2] == ["second"]
    assert reading.by_id["f0000001"]["parentId"] == leaf
    warnings = [text for text in said(owner) if "another program" in text]
    assert len(warnings) == 1, said(owner)


def test_a_torn_foreign_line_does_not_swallow_ours(owner, path):
    with path.open("ab") as other:
        other.write(foreign_line(path)[:-20])
    prompt(owner, "second")
    reading = read_session(path)
    assert [shape_of(pair)[2] for pair in reading.context(reading.leaf)] == [
        [text] for text in ("first", "an answer", "second", "an answer")
    ]
    assert keeps_the_rules(path)


def test_a_file_that_was_deleted_is_written_again_whole(owner, path):
    before = path.read_bytes()
    path.unlink()
    prompt(owner, "second")
    assert path.read_bytes().startswith(before)
    assert keeps_the_rules(path)
    assert context_texts(owner) == ["first", "an answer", "second", "an answer"]
    assert any("deleted" in text or "removed" in text for text in said(owner)), said(owner)


def test_a_file_that_another_program_replaced_keeps_what_both_wrote(owner, path, tmp_path):
    line = foreign_line(path)
    lines = path.read_bytes().splitlines(keepends=True)
    ours = stored_ids(path)
    other = tmp_path / "other"
    other.write_bytes(b"".join([*lines[:-1], line]))  # it lacks our last entry
    other.replace(path)
    prompt(owner, "second")
    ids = stored_ids(path)
    assert set(ours) | {"f0000001"} <= set(ids)
    assert len(ids) == len(set(ids))
    assert lines[-1] in path.read_bytes()
    assert context_texts(owner) == ["first", "an answer", "second", "an answer"]
    state = owner.ask("get_state")["data"]
    assert state["unsaved"] == 0
    assert stored_ids(path)[-1] == state["leafId"]


def test_another_session_in_place_of_ours_is_never_written(owner, path, tmp_path):
    stranger = dump(header_line(id="stranger", cwd=str(tmp_path))) + dump(user_record("x1", None, "not ours"))
    other = tmp_path / "other"
    other.write_bytes(stranger)
    other.replace(path)
    prompt(owner, "second")
    assert path.read_bytes() == stranger
    assert owner.ask("get_state")["data"]["unsaved"] == 2
    assert context_texts(owner) == ["first", "an answer", "second", "an answer"]
    (rescue, code) = rescue_of(owner)
    assert code == 1
    assert path.read_bytes() == stranger
    texts = [entry["message"]["content"] for entry in rescue if entry["type"] == "message"]
    assert "second" in json.dumps(texts)


def rescue_of(program: RpcProgram) -> tuple[list[dict[str, Any]], int]:
    """What the rescue file holds that is named at the end, and the exit code."""
    assert program.process.stdin is not None
    assert program.process.stderr is not None
    program.process.stdin.close()
    code = program.process.wait(30)
    words = program.process.stderr.read().decode().split()
    (name,) = [word for word in words if "musepi-rescue-" in word]
    rescue = Path(name)
    entries = read_session(rescue).entries
    rescue.unlink()
    return entries, code
