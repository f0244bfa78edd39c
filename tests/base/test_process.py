import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from musepi_tui.base import process, process_tree
from musepi_tui.base.process import (
    ChildResult,
    ChildSpec,
    Ended,
    child_environment,
    end_left_behind,
    find_program,
    run_child,
    run_quick,
    run_shell_command,
    safe_path_entries,
)
from tests.support.tools import until


class FakeSink:
    def __init__(self, wanted_bytes: int | None = None):
        self.data = bytearray()
        self.largest = 0
        self.wanted_bytes = wanted_bytes

    async def __call__(self, block: bytes) -> bool:
        self.data += block
        self.largest = max(self.largest, len(block))
        return self.wanted_bytes is None or len(self.data) < self.wanted_bytes


def shell(command: str, cwd: Path = Path("/"), **options) -> ChildSpec:
    return ChildSpec(("/bin/sh", "-c", command), cwd, **options)


async def run(command: str, **options) -> tuple[ChildResult, str]:
    sink = FakeSink()
    result = await run_child(shell(command, **options), sink)
    return result, sink.data.decode()


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def real(path: Path) -> Path:
    return path.resolve()


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def zombies() -> list[str]:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [pid for pid in children if not is_running(int(pid))]


def wait_until_over(pid: int, limit_s: float = 3.0) -> bool:
    deadline = time.monotonic() + limit_s
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(pid)


@pytest.fixture
def short_grace(monkeypatch):
    monkeypatch.setattr(process, "TERM_GRACE_S", 0.3)


async def test_child_merges_both_streams_in_order_and_keeps_exit_code():
    result, text = await run("echo one; echo two >&2; echo three; exit 7")
    assert text == "one\ntwo\nthree\n"
    assert (result.exit_code, result.ended, result.still_running) == (7, Ended.EXIT, ())


async def test_child_reads_end_of_file_from_standard_input():
    _, text = await run("cat; echo done")
    assert text == "done\n"


async def test_child_has_no_terminal():
    result, _ = await run("exec 2>/dev/null; : </dev/tty")
    assert result.exit_code != 0


async def test_child_gets_the_given_folder(tmp_path):
    _, text = await run("pwd -P", cwd=tmp_path)
    assert Path(text.strip()) == real(tmp_path)


async def test_output_comes_in_bounded_blocks():
    sink = FakeSink()
    await run_child(shell("head -c 1000000 /dev/zero"), sink)
    assert len(sink.data) == 1_000_000
    assert sink.largest <= process.BLOCK_BYTES


async def test_timeout_ends_a_silent_child_and_keeps_what_it_wrote():
    started = time.monotonic()
    result, text = await run("echo begun; sleep 60", timeout_s=0.3)
    assert (text, result.ended) == ("begun\n", Ended.TIMEOUT)
    assert time.monotonic() - started < 2


async def test_timeout_ends_a_child_that_floods():
    sink = FakeSink()
    result = await run_child(shell("while :; do echo yyyyyyyy; done", timeout_s=0.3), sink)
    assert result.ended is Ended.TIMEOUT


async def test_timeout_ends_a_stopped_child():
    result, _ = await run("kill -STOP $$", timeout_s=0.2)
    assert result.ended is Ended.TIMEOUT


async def test_child_that_ignores_sigterm_is_killed(short_grace):
    result, _ = await run("trap '' TERM; while :; do sleep 0.05; done", timeout_s=0.2)
    assert result.exit_code == -9


async def test_child_may_clean_up_on_sigterm():
    result, text = await run("trap 'echo cleaned; exit 3' TERM; sleep 60 & wait", timeout_s=0.2)
    assert (text, result.exit_code) == ("cleaned\n", 3)


async def test_descendant_in_another_session_is_ended_with_a_timeout():
    result, text = await run("setsid sleep 60 & echo $!; sleep 60", timeout_s=0.3)
    assert result.ended is Ended.TIMEOUT
    assert wait_until_over(int(text))


async def test_daemon_forked_twice_is_ended_on_cancel(tmp_path):
    pid_file = tmp_path / "pid"
    command = f"(setsid sh -c 'echo $$ > {pid_file}; exec sleep 60' &); sleep 60"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await run(command)
    assert wait_until_over(int(pid_file.read_text()))


async def test_cancel_is_passed_on_and_leaves_no_process(tmp_path):
    pid_file = tmp_path / "pid"
    task = asyncio.get_running_loop().create_task(run(f"echo $$ > {pid_file}; exec sleep 60"))
    await until(lambda: pid_file.exists() and pid_file.read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_running(int(pid_file.read_text()))


async def test_second_cancel_skips_the_grace(tmp_path):
    pid_file = tmp_path / "pid"
    command = f"trap '' TERM; echo $$ > {pid_file}; while :; do sleep 0.05; done"
    task = asyncio.get_running_loop().create_task(run(command))
    await until(lambda: pid_file.exists() and pid_file.read_text())
    task.cancel()
    await asyncio.sleep(0.1)
    task.cancel()
    started = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 1
    assert wait_until_over(int(pid_file.read_text()))


async def test_background_process_does_not_hang_the_call_and_is_reported():
    started = time.monotonic()
    result, text = await run("sleep 60 & echo $!", keep_background=True)
    assert time.monotonic() - started < 2
    assert [running.name for running in result.still_running] == ["sleep"]
    assert is_running(int(text))
    await end_left_behind()
    assert wait_until_over(int(text))


async def test_background_process_that_keeps_writing_does_not_hang_the_call():
    result, text = await run("(while :; do echo more; sleep 0.02; done) & echo $!", keep_background=True)
    assert result.exit_code == 0
    await end_left_behind()
    assert wait_until_over(int(text.split()[0] if text.split()[0].isdigit() else text.split()[1]))


async def test_background_process_of_a_helper_is_ended():
    result, text = await run("sleep 60 & echo $!")
    assert result.still_running == ()
    assert wait_until_over(int(text))


async def test_output_limit_ends_the_child():
    sink = FakeSink()
    result = await run_child(shell("while :; do echo yyyyyyyy; done", max_output_bytes=300_000), sink)
    assert result.ended is Ended.OUTPUT_LIMIT
    assert len(sink.data) <= 300_000 + process.BLOCK_BYTES


async def test_sink_that_has_enough_ends_the_child():
    sink = FakeSink(wanted_bytes=10)
    result = await run_child(shell("while :; do echo yyyyyyyy; done"), sink)
    assert result.ended is Ended.ENOUGH
    assert sink.largest == len(sink.data)


async def test_slow_sink_gets_everything():
    received = bytearray()

    async def slow(block: bytes) -> bool:
        await asyncio.sleep(0.06)
        received.extend(block)
        return True

    await run_child(shell("head -c 600000 /dev/zero"), slow)
    assert len(received) == 600_000


async def test_program_that_does_not_exist_is_an_os_error():
    with pytest.raises(OSError, match="no-such-program"):
        await run_child(ChildSpec(("/no-such-program",), Path("/")), FakeSink())


async def test_many_calls_leave_no_descriptor_thread_or_zombie():
    await run("true")
    before = open_descriptors()
    for _ in range(10):
        await run("echo x")
    await asyncio.sleep(0.1)
    assert open_descriptors() <= before
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("waitpid")]
    assert zombies() == []


def test_environment_withholds_provider_keys_and_keeps_the_rest():
    env = child_environment(
        {"OPENAI_API_KEY": "k", "HF_TOKEN": "t", "GITHUB_TOKEN": "g", "MINE": "value in use", "PATH": "/bin"},
        secret_values=["value in use"],
    )
    assert env["GITHUB_TOKEN"] == "g"
    assert not {"OPENAI_API_KEY", "HF_TOKEN", "MINE"} & env.keys()


def test_environment_replaces_stale_session_variables():
    env = child_environment({"MUSEPI_SESSION_ID": "old", "MUSEPI_MODEL": "old"}, {"MUSEPI_SESSION_ID": "new"})
    assert env["MUSEPI_SESSION_ID"] == "new"
    assert "MUSEPI_MODEL" not in env


def test_environment_lets_nothing_wait_for_a_person():
    env = child_environment({"PAGER": "less", "GIT_EDITOR": "vi", "PATH": "/bin"})
    assert (env["TERM"], env["PAGER"], env["GIT_SEQUENCE_EDITOR"]) == ("dumb", "cat", "false")


def test_path_loses_relative_empty_and_project_entries(tmp_path):
    inside = tmp_path / "bin"
    inside.mkdir()
    path = os.pathsep.join(["/usr/bin", "", ".", "node_modules/.bin", str(inside)])
    assert safe_path_entries(path) == ("/usr/bin", str(inside))
    assert safe_path_entries(path, tmp_path) == ("/usr/bin",)


def test_program_inside_the_project_is_not_found(tmp_path, monkeypatch):
    fake = tmp_path / "sometool"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin")
    assert find_program("sometool") == str(fake)
    assert find_program("sometool", tmp_path) is None


def test_quick_helper_returns_output_or_none():
    assert run_quick(("/bin/echo", "hi")) == "hi\n"
    assert run_quick(("/bin/sh", "-c", "exit 1")) is None
    assert run_quick(("/no-such-program",)) is None


def test_quick_helper_is_ended_at_its_limit():
    started = time.monotonic()
    assert run_quick(("/bin/sh", "-c", "sleep 30 & sleep 30"), timeout_s=0.2) is None
    assert time.monotonic() - started < 2


def test_key_command_uses_a_shell_only_when_it_must():
    assert run_shell_command("echo  key-1 ") == "key-1"
    assert run_shell_command("printf 'a b' | tr ' ' -") == "a-b"
    assert run_shell_command("false") is None


def test_ps_listing_gives_members_of_a_tree():
    listing = """\
    1     0     1 Mon Nov 30 10:00:00 2026 /sbin/init
   50     1    50 Mon Nov 30 10:00:01 2026 sh
   51    50    50 Mon Nov 30 10:00:02 2026 /usr/bin/make
   60    51    60 Mon Nov 30 10:00:03 2026 daemon
   70     1    70 Mon Nov 30 10:00:04 2026 other
    garbage
"""
    members = process_tree.find_members(process_tree.parse_ps(listing), 50)
    assert [member.pid for member in members] == [50, 51, 60]
    assert [member.name for member in members] == ["sh", "make", "daemon"]


def test_reused_pid_is_not_signalled():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        stale = process_tree.Running(child.pid, os.getpid(), child.pid, "some other time", "x")
        process_tree.send_signal(stale, process_tree.signal.SIGKILL)
        assert child.poll() is None
        child.communicate(b"\n")
    assert child.returncode == 0


def test_module_is_cheap_to_import():
    code = "import sys, musepi_tui.base.process; print({'asyncio', 'subprocess'} & set(sys.modules))"
    assert run_quick((sys.executable, "-c", code), timeout_s=20) == "set()\n"
