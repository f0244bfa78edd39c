"""Sessions through the doors without a screen, as child processes: held elsewhere, copied, named, moved."""

import json
import os
import stat
from pathlib import Path

import pytest

from musepi_tui.storage.loading import load_session
from musepi_tui.storage.lock import WriterLock
from tests.support.lines import chain, header_line, write_lines
from tests.support.program import RpcProgram, model_flags, run_in_shell, run_musepi, stored_messages
from tests.support.server import ModelServer, openai_reply

DEMO = ("--provider", "demo", "--model", "demo")


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "s.jsonl", header_line(cwd=str(tmp_path)), *chain("one", "two"))


@pytest.fixture
def held(stored: Path):
    lock = WriterLock(stored)
    lock.acquire()
    yield stored
    lock.release()


@pytest.mark.parametrize("mode", [(), ("--mode", "json")], ids=["print", "json"])
def test_a_session_held_elsewhere_ends_the_run_at_once(mode, held, tmp_path):
    before = held.read_bytes()
    run = run_musepi("-p", *mode, "hi", "--session", str(held), *DEMO, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == (
        f"session is open in another musepi (pid {os.getpid()}); close it, or use --fork {held}\n"
    )
    assert held.read_bytes() == before


def test_rpc_starts_read_only_and_refuses_every_change_with_that_text(held, tmp_path):
    before = held.read_bytes()
    with RpcProgram("--session", str(held), *DEMO, cwd=tmp_path) as rpc:
        state = rpc.ask("get_state")["data"]
        assert (state["readOnly"], state["messageCount"], state["unsaved"]) == (True, 2, 0)
        changes = {
            "prompt": {"message": "hi"},
            "compact": {},
            "set_session_name": {"name": "x"},
            "set_label": {"entryId": "e1", "label": "x"},
            "set_model": {"provider": "demo", "modelId": "demo"},
            "set_thinking_level": {"level": "high"},
            "move_session": {"cwd": "/"},
        }
        for command, arguments in changes.items():
            response = rpc.ask(command, **arguments)
            assert not response["success"], command
            assert response["error"].startswith("session is open in another musepi (pid "), command
            assert f"; close it, or use --fork {held}" in response["error"], command
        assert [each["text"] for each in rpc.ask("get_messages")["data"]["messages"]] == ["one", "two"]
        assert rpc.ask("fork")["success"]
        assert not rpc.ask("get_state")["data"]["readOnly"]
        assert rpc.close_input() == 0
    assert held.read_bytes() == before


def test_takeover_of_a_session_that_is_held_fails(held, tmp_path):
    run = run_musepi("--mode", "rpc", "--takeover", "--session", str(held), *DEMO, cwd=tmp_path)
    assert run.returncode == 1
    assert "session is open in another musepi" in run.stderr


def test_fork_of_a_session_that_is_held_answers_in_the_copy(held, tmp_path, musepi_home):
    before = held.read_bytes()
    with ModelServer(openai_reply(text="ok")) as server:
        run = run_musepi("-p", "three", "--fork", str(held), *model_flags(server.base_url), cwd=tmp_path)
    assert (run.returncode, run.stdout) == (0, "ok\n")
    assert held.read_bytes() == before
    [copy] = musepi_home.rglob("*.jsonl")
    assert [role for _, role in stored_messages(copy)] == ["user", "user", "user", "assistant"]
    assert load_session(copy).header.parent_session == str(held)


@pytest.mark.parametrize("mode", [("-p", "hi"), ("-p", "--mode", "json", "hi"), ("--mode", "rpc")])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "loop"])
def test_what_is_no_file_is_refused_at_once_in_one_line(kind, mode, tmp_path):
    path = tmp_path / "odd"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            try:
                os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            except PermissionError:
                pytest.skip("no device may be made here")
        case "loop":
            path.symlink_to(path)
        case _:
            path.mkdir()
    before = path.lstat()
    run = run_musepi(*mode, "--session", str(path), *DEMO, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith(f"{path}: ")
    assert run.stderr.count("\n") == 1
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert [found.name for found in tmp_path.iterdir() if found.name.startswith("odd")] == ["odd"]


def test_session_without_a_name_is_a_usage_error(tmp_path):
    run = run_musepi("-p", "hi", "--session", "", *DEMO, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert "argument --session: it names no file" in run.stderr


def test_a_working_folder_that_is_gone_is_named(tmp_path):
    gone = tmp_path / "gone"
    for arguments in (("-p", "hi", *DEMO), ("sessions", "list")):
        gone.mkdir()
        run = run_in_shell(
            *arguments, before=f"cd {gone}; rmdir {gone};", redirect="</dev/null", cwd=tmp_path
        )
        assert (run.returncode, run.stdout) == (1, "")
        assert run.stderr == (
            f"musepi: the folder it runs in, {gone}, does not exist any more; go to another one first\n"
        )


def test_rpc_names_a_path_that_no_file_can_have(stored, tmp_path):
    with RpcProgram("--session", str(stored), *DEMO, cwd=tmp_path) as rpc:
        for command, name in (
            ("switch_session", "sessionPath"),
            ("delete_session", "sessionPath"),
            ("move_session", "cwd"),
            ("export", "path"),
        ):
            refused = rpc.ask(command, **{name: "a\0b"})
            assert refused["error"] == f'{name} must name a file or folder, got "a\\u0000b"'
        unknown = rpc.ask("move_session", cwd="~nobody-of-that-name")
        assert "nobody knows whose home folder that is" in unknown["error"]
        assert rpc.close_input() == 0


def test_no_session_leaves_no_file(tmp_path, musepi_home):
    with ModelServer(openai_reply(text="ok")) as server:
        run = run_musepi("-p", "hi", "--no-session", *model_flags(server.base_url), cwd=tmp_path)
    assert (run.returncode, run.stdout) == (0, "ok\n")
    assert not list(musepi_home.rglob("*.jsonl"))


def test_a_name_is_stored(tmp_path, musepi_home):
    with ModelServer(openai_reply(text="ok")) as server:
        run_musepi("-p", "hi", "-n", "Parser work", *model_flags(server.base_url), cwd=tmp_path)
    [path] = musepi_home.rglob("*.jsonl")
    assert load_session(path).name == "Parser work"


@pytest.mark.parametrize("force", [True, False])
def test_a_newer_file_is_written_only_when_forced(force, tmp_path):
    path = write_lines(tmp_path / "s.jsonl", header_line(4), *chain("one"))
    before = path.read_bytes()
    with ModelServer(openai_reply(text="ok")) as server:
        flags = (*model_flags(server.base_url), *(["--force"] if force else []))
        run = run_musepi("-p", "hi", "--session", str(path), *flags, cwd=tmp_path)
    if force:
        assert run.returncode == 0
        assert path.read_bytes().startswith(before)
        assert len(path.read_bytes()) > len(before)
    else:
        assert run.returncode == 1
        assert "session file version 4 is newer than this musepi understands (3)" in run.stderr
        assert path.read_bytes() == before


def test_resume_of_another_folder_names_the_remedy(tmp_path, musepi_home):
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    with ModelServer(openai_reply(text="ok")) as server:
        run_musepi("-p", "hi", *model_flags(server.base_url), cwd=there)
    [path] = musepi_home.rglob("*.jsonl")
    session_id = load_session(path).header.id
    run = run_musepi("-p", "hi", "--resume", session_id, *DEMO, cwd=here)
    assert run.returncode == 1
    assert f"Session {session_id} belongs to {there}" in run.stderr
    assert f"--fork {session_id}" in run.stderr


def test_rpc_copies_names_labels_moves_exports_and_deletes(stored, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    with RpcProgram("--session", str(stored), *DEMO, cwd=tmp_path) as rpc:
        assert rpc.ask("get_fork_messages")["data"]["messages"][1] == {"entryId": "e2", "text": "two"}
        assert rpc.ask("set_session_name", name="Parser")["success"]
        assert rpc.ask("set_label", entryId="e1", label="start")["success"]
        assert rpc.ask("flush")["data"] == {"unsaved": 0}
        exported = rpc.ask("export", path=str(tmp_path / "out"), format="md")
        assert exported["data"]["path"] == str(tmp_path / "out.md")
        forked = rpc.ask("fork", entryId="e2")
        assert forked["data"]["text"] == "two"
        state = rpc.ask("get_state")["data"]
        assert (state["sessionName"], state["messageCount"]) == ("Parser", 1)
        assert rpc.ask("clone")["success"]
        moved = rpc.ask("move_session", cwd=str(there))
        assert moved["success"]
        refused = rpc.ask("delete_session", sessionPath=moved["data"]["sessionFile"])
        assert not refused["success"]
        assert rpc.ask("delete_session", sessionPath=str(stored), permanently=True)["success"]
        assert rpc.close_input() == 0
    reasons = [line["reason"] for line in rpc.lines if line["type"] == "session_changed"]
    assert reasons == ["branch", "clone", "move"]
    assert not stored.exists()
    assert json.loads(Path(moved["data"]["sessionFile"]).read_bytes().split(b"\n")[0])["cwd"] == str(there)
