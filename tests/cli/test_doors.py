"""The doors without a screen, as child processes against a scripted server."""

import json
import signal

import pytest

from tests.support.program import (
    RpcProgram,
    events_of,
    model_flags,
    run_in_shell,
    run_musepi,
    start_musepi,
    stored_messages,
)
from tests.support.server import ModelServer, anthropic_reply, openai_reply, status_reply

APIS = {"openai-completions": openai_reply, "anthropic-messages": anthropic_reply}
CHARS4 = ("--set", "tokens.estimator=chars4")
"""Where figures are of no account, so that no ranks are read for them."""


@pytest.mark.parametrize("api", APIS)
def test_print_mode_writes_the_answer_alone_to_stdout(api, tmp_path):
    with ModelServer(APIS[api](text="Forty-two.")) as server:
        run = run_musepi("-p", "what is it", *model_flags(server.base_url, api), cwd=tmp_path, fresh=True)
    assert (run.returncode, run.stdout) == (0, "Forty-two.\n")
    assert "what is it" in json.dumps(server.requests[0].body["messages"][-1])


def test_options_may_stand_behind_the_prompt(tmp_path):
    with ModelServer(openai_reply(text="ok")) as server:
        run = run_musepi("hello", "-p", *model_flags(server.base_url), cwd=tmp_path)
    assert (run.returncode, run.stdout) == (0, "ok\n")


def test_piped_text_stands_before_the_prompt(tmp_path):
    with ModelServer(openai_reply(text="ok")) as server:
        run_musepi("-p", "what is this", *model_flags(server.base_url), cwd=tmp_path, stdin="some data\n")
    sent = server.requests[0].body["messages"][-1]["content"]
    assert sent == "some data\n\nwhat is this"


def test_json_mode_begins_with_the_header_and_ends_settled(tmp_path):
    with ModelServer(openai_reply(text="hi", tools=[("ls", {})]), openai_reply(text="done")) as server:
        flags = model_flags(server.base_url)
        run = run_musepi("-p", "--mode", "json", "list it", *flags, cwd=tmp_path, fresh=True)
    events = events_of(run.stdout)
    kinds = [event["type"] for event in events]
    assert run.returncode == 0
    assert (events[0]["type"], events[0]["version"], events[0]["cwd"]) == ("session", 3, str(tmp_path))
    assert kinds[-1] == "agent_settled"
    assert kinds.count("agent_settled") == kinds.count("agent_end") == 1
    roles = [event["message"]["role"] for event in events if event["type"] == "message_end"]
    assert roles == ["user", "assistant", "toolResult", "assistant"]
    order = [kind for kind in kinds if kind in ("tool_execution_start", "tool_execution_end", "message_end")]
    assert order == ["message_end", "message_end", "tool_execution_start", "tool_execution_end"] + 2 * [
        "message_end"
    ]


def test_a_call_nobody_can_approve_is_withheld_and_the_exit_code_says_so(tmp_path):
    with ModelServer(
        openai_reply(tools=[("bash", {"command": "touch made"})]), openai_reply(text="I could not.")
    ) as server:
        run = run_musepi("-p", "make it", *model_flags(server.base_url), cwd=tmp_path)
    assert (run.returncode, run.stdout) == (4, "I could not.\n")
    assert "bash" in run.stderr
    assert "--approval-mode" in run.stderr
    assert not (tmp_path / "made").exists()
    assert "needs approval" in json.dumps(server.requests[1].body["messages"][-1])


def test_yolo_runs_it(tmp_path):
    with ModelServer(
        openai_reply(tools=[("bash", {"command": "touch made"})]), openai_reply(text="ok")
    ) as server:
        run = run_musepi("-p", "--yolo", "make it", *model_flags(server.base_url), cwd=tmp_path)
    assert run.returncode == 0
    assert (tmp_path / "made").exists()


def test_print_mode_never_chooses_the_demo_and_names_the_variable(tmp_path):
    run = run_musepi("-p", "hello", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    assert "ANTHROPIC_API_KEY" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "--api-key"), (404, "models list"), (400, "nope")],
)
def test_a_refused_request_is_one_line_with_its_remedy(status, words, tmp_path):
    body = {"error": {"message": "nope"}}
    with ModelServer(*[status_reply(status, body)] * 3) as server:
        run = run_musepi("-p", "hi", *model_flags(server.base_url), cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    assert words in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1


def test_a_broken_settings_file_stops_print_mode_with_line_and_column(tmp_path, musepi_home):
    (musepi_home / "settings.json").write_text('{\n  "theme": }\n')
    run = run_musepi("-p", "hi", cwd=tmp_path)
    assert run.returncode == 1
    assert "settings.json:2:12" in run.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mode", "xml"], "xml"),
        (["--nonsense"], "--nonsense"),
        (["-p"], "no prompt"),
        (["-c", "--session", "x"], "exclude each other"),
        (["--cwd", "/nowhere", "-p", "x"], "/nowhere"),
        (["--set", "theme", "-p", "x"], "theme"),
        (["--compact-at", "lots", "-p", "x"], "lots"),
        (["-e", "gone.py", "-p", "x"], "gone.py"),
    ],
)
def test_an_unusable_argument_is_one_line_and_exit_two(arguments, words, tmp_path):
    run = run_musepi(*arguments, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert words in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_a_file_that_is_no_session_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text("hello\n")
    run = run_musepi(
        "-p", "hi", "--session", str(path), "--provider", "demo", "--model", "demo", cwd=tmp_path
    )
    assert run.returncode == 1
    assert "first record is not a session header" in run.stderr
    assert path.read_text() == "hello\n"


def test_continue_goes_on_in_the_same_file(tmp_path, musepi_home):
    with ModelServer(openai_reply(text="one"), openai_reply(text="two")) as server:
        flags = model_flags(server.base_url)
        run_musepi("-p", "first", *flags, cwd=tmp_path)
        run_musepi("-p", "-c", "second", *flags, cwd=tmp_path)
    [path] = musepi_home.rglob("*.jsonl")
    assert [role for _, role in stored_messages(path)] == ["user", "assistant"] * 2
    assert "first" in json.dumps(server.requests[1].body["messages"])


def test_rpc_prompt_state_and_messages(tmp_path):
    with (
        ModelServer(openai_reply(text="hello there")) as server,
        RpcProgram(*model_flags(server.base_url), cwd=tmp_path, fresh=True) as rpc,
    ):
        assert rpc.ask("prompt", message="hi", id=1)["success"]
        rpc.wait_for("agent_settled")
        state = rpc.ask("get_state")["data"]
        messages = rpc.ask("get_messages")["data"]["messages"]
        entries = rpc.ask("get_entries")["data"]
        tree = rpc.ask("get_tree")["data"]
        last = rpc.ask("get_last_assistant_text")["data"]
        assert rpc.close_input() == 0
    assert state["model"] == {"provider": "local", "id": "m1"}
    assert (state["isStreaming"], state["isCompacting"], state["messageCount"]) == (False, False, 2)
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert entries["leafId"] == state["leafId"] == entries["entries"][-1]["id"]
    assert last == {"text": "hello there"}
    assert [node["id"] for node in tree["nodes"]] == [entry["id"] for entry in entries["entries"]]


def test_rpc_answers_bad_input_and_goes_on(tmp_path):
    with RpcProgram("--provider", "demo", "--model", "demo", cwd=tmp_path) as rpc:
        rpc.send_raw(b"{broken\n[1]\n")
        assert "JSON" in rpc.wait_for("response")["error"]
        assert "object" in rpc.wait_for("response")["error"]
        unknown = rpc.ask("prompts")
        assert (unknown["success"], "prompt" in unknown["error"]) == (False, True)
        missing = rpc.ask("prompt", id="x")
        assert (missing["id"], missing["success"]) == ("x", False)
        assert rpc.ask("get_state")["success"]
        assert rpc.close_input() == 0


def test_rpc_approval_is_asked_and_answered(tmp_path):
    with (
        ModelServer(
            openai_reply(tools=[("bash", {"command": "touch made"})]), openai_reply(text="ok")
        ) as server,
        RpcProgram(*model_flags(server.base_url), cwd=tmp_path) as rpc,
    ):
        rpc.send("prompt", message="make it")
        asked = rpc.wait_for("approval_request")
        assert not rpc.ask("approve", requestId="other", decision="allow")["success"]
        assert not rpc.ask("approve", requestId=asked["requestId"], decision="yes")["success"]
        assert rpc.ask("approve", requestId=asked["requestId"], decision="allow")["success"]
        rpc.wait_for("agent_settled")
    assert asked["toolName"] == "bash"
    assert (tmp_path / "made").exists()


def test_rpc_denies_open_questions_when_the_host_closes_its_input(tmp_path):
    with (
        ModelServer(
            openai_reply(tools=[("bash", {"command": "touch made"})]), openai_reply(text="ok")
        ) as server,
        RpcProgram(*model_flags(server.base_url), cwd=tmp_path) as rpc,
    ):
        rpc.send("prompt", message="make it")
        rpc.wait_for("approval_request")
        assert rpc.close_input() == 0
        kinds = [line["type"] for line in rpc.lines]
    assert kinds.count("approval_result") == kinds.count("agent_settled") == 1
    assert not (tmp_path / "made").exists()


def test_rpc_abort_keeps_what_came(tmp_path):
    with (
        ModelServer(openai_reply(text="word " * 400, rate=50)) as server,
        RpcProgram(*model_flags(server.base_url), cwd=tmp_path) as rpc,
    ):
        rpc.send("prompt", message="talk")
        rpc.wait(lambda line: line.get("assistantMessageEvent", {}).get("type") == "text_delta")
        assert rpc.ask("abort")["success"]
        rpc.wait_for("agent_settled")
        ends = [line["message"] for line in rpc.lines if line["type"] == "message_end"]
    assert [message["role"] for message in ends] == ["user", "assistant"]
    assert ends[-1]["stopReason"] == "aborted"
    assert ends[-1]["content"][0]["text"].startswith("word")


def test_rpc_compaction_of_nothing_is_refused_with_its_text(tmp_path):
    with RpcProgram("--provider", "demo", "--model", "demo", cwd=tmp_path) as rpc:
        answer = rpc.ask("compact")
    assert (answer["success"], answer["error"]) == (False, "Nothing to compact (session too small)")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_signal_stores_the_partial_answer_and_sets_the_exit_code(number, code, tmp_path, musepi_home):
    with (
        ModelServer(openai_reply(text="word " * 400, rate=50)) as server,
        RpcProgram(*model_flags(server.base_url), cwd=tmp_path) as rpc,
    ):
        rpc.send("prompt", message="talk")
        rpc.wait(lambda line: line.get("assistantMessageEvent", {}).get("type") == "text_delta")
        assert rpc.kill(number) == code
    [path] = musepi_home.rglob("*.jsonl")
    assert [role for _, role in stored_messages(path)] == ["user", "assistant"]
    assert '"stopReason":"aborted"' in path.read_text()


def test_every_acknowledged_message_survives_kill_nine(tmp_path, musepi_home):
    replies = [openai_reply(text=f"answer {n} " + "word " * 200, rate=400) for n in range(4)]
    with ModelServer(*replies) as server, RpcProgram(*model_flags(server.base_url), cwd=tmp_path) as rpc:
        for number in range(3):
            rpc.send("prompt", message=f"question {number}")
            rpc.wait_for("agent_settled")
        rpc.send("prompt", message="question 3")
        rpc.wait(lambda line: line.get("assistantMessageEvent", {}).get("type") == "text_delta")
        rpc.kill(signal.SIGKILL)
        seen = [line["entryId"] for line in rpc.lines if line["type"] == "message_end"]
        [path] = musepi_home.rglob("*.jsonl")
        assert len(seen) == 7
        assert [entry_id for entry_id, _ in stored_messages(path)] == seen
        server.script(openai_reply(text="back"))
        run = run_musepi("-p", "-c", "still there?", *model_flags(server.base_url), cwd=tmp_path)
    assert run.stdout == "back\n"
    sent = json.dumps(server.requests[-1].body["messages"])
    assert all(f"question {number}" in sent for number in range(4))


def test_print_mode_compacts_a_session_on_request(tmp_path):
    session = tmp_path / "s.jsonl"
    answers = [openai_reply(text="A long sentence about files and tests. " * 200)] * 2
    settings = [*CHARS4, "--set", "compaction.keepRecentTokens=500", "--set", "compaction.enabled=false"]
    with ModelServer(*answers, *[openai_reply(text="## Goal\nShip it.")] * 2) as server:
        flags = [*model_flags(server.base_url), "--session", str(session), *settings]
        run_musepi("-p", "one", "two", *flags, cwd=tmp_path)
        run = run_musepi("-p", "/compact the tests", *flags, cwd=tmp_path)
    assert (run.returncode, run.stdout.startswith("Compacted ")) == (0, True)
    assert '"type":"compaction"' in session.read_text()
    assert "the tests" in json.dumps([request.body for request in server.requests[2:]])


def test_a_full_home_of_bad_files_never_shows_a_traceback(tmp_path, musepi_home):
    (musepi_home / "settings.json").write_bytes(b"\xff\xfe[")
    (musepi_home / "models.json").write_text("{ not json")
    (musepi_home / "auth.json").write_text("[]")
    for arguments in (["-p", "x"], ["models", "list"], ["doctor"], ["config", "list"], ["sessions", "list"]):
        run = run_musepi(*arguments, cwd=tmp_path)
        assert "Traceback" not in run.stderr
        assert "something went wrong" not in run.stderr


def test_an_address_where_nobody_listens_is_told_soon(tmp_path):
    flags = ["--base-url", "http://127.0.0.1:9/v1", "--model", "x", "--set", "retry.baseDelayMs=10"]
    run = run_musepi("-p", "hi", *flags, cwd=tmp_path)
    assert run.returncode == 1
    assert "Is the server running?" in run.stderr.splitlines()[-1]
    assert run.stderr.count("retrying") == 2


@pytest.mark.parametrize(
    "address", ["http://[::1", "http://127.0.0.1:99999/v1", "ftp://x", "http://", "localhost:8080"]
)
def test_an_address_that_is_none_is_a_wrong_argument(address, tmp_path):
    run = run_musepi("-p", "hi", "--base-url", address, "--model", "x", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert f"--base-url {address}: an address starts with http:// or https:// and a host" in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_a_warning_about_settings_is_told_once(tmp_path, musepi_home):
    (musepi_home / "settings.json").write_text('{"theme": 5}')
    with ModelServer(openai_reply(text="ok")) as server:
        run = run_musepi("-p", "hi", *model_flags(server.base_url), cwd=tmp_path)
    assert run.stdout == "ok\n"
    assert run.stderr.count("theme") == 1
    assert "settings.json" in run.stderr


def test_json_mode_tells_the_aborted_answer_and_settles_when_a_signal_ends_it(tmp_path):
    with ModelServer(openai_reply(text="word " * 500, rate=50)) as server:
        child = start_musepi("--mode", "json", "go", *model_flags(server.base_url), cwd=tmp_path)
        lines = []
        for line in child.stdout:
            lines.append(json.loads(line))
            if lines[-1]["type"] == "message_update":
                break
        child.send_signal(signal.SIGTERM)
        lines += [json.loads(line) for line in child.stdout]
        assert child.wait(10) == 143
    kinds = [line["type"] for line in lines]
    last = [line["message"] for line in lines if line["type"] == "message_end"][-1]
    assert last["stopReason"] == "aborted"
    assert kinds[-1] == "agent_settled"
    assert kinds.count("agent_start") == kinds.count("agent_end") == kinds.count("agent_settled") == 1


def test_rpc_tells_the_aborted_answer_and_settles_when_a_signal_ends_it(tmp_path):
    with (
        ModelServer(openai_reply(text="word " * 500, rate=50)) as server,
        RpcProgram(*model_flags(server.base_url), cwd=tmp_path) as rpc,
    ):
        rpc.ask("prompt", message="hi")
        rpc.wait_for("message_update")
        assert rpc.kill(signal.SIGTERM) == 143
        rpc.wait_for("agent_settled")
    assert [line["type"] for line in rpc.lines].count("agent_settled") == 1


@pytest.mark.parametrize("mode", [("-p",), ("--mode", "json")])
def test_a_closed_stdout_ends_quietly(mode, tmp_path):
    with ModelServer(openai_reply(text="hi")) as server:
        run = run_in_shell(*mode, "go", *model_flags(server.base_url), redirect=">&-", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (1, "")


def test_a_full_disk_behind_stdout_is_one_line(tmp_path):
    with ModelServer(openai_reply(text="hi")) as server:
        flags = model_flags(server.base_url)
        run = run_in_shell("-p", "go", *flags, redirect="> /dev/full", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (1, "musepi: No space left on device\n")
    run = run_in_shell("doctor", redirect="> /dev/full", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (1, "musepi: No space left on device\n")


def test_rpc_without_a_stdin_ends(tmp_path):
    run = run_in_shell("--mode", "rpc", redirect="<&-", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("blocks", [0, 1])
def test_entries_that_could_be_written_nowhere_are_told_and_fail_the_run(blocks, tmp_path):
    with ModelServer(openai_reply(text="word " * 500)) as server:
        flags = model_flags(server.base_url)
        # byte code that does not fit would be left behind broken
        limit = f"export PYTHONDONTWRITEBYTECODE=1; ulimit -f {blocks};"
        run = run_in_shell("-p", "go", *flags, redirect="", before=limit, cwd=tmp_path)
    assert run.returncode == 1
    assert run.stdout.startswith("word word")
    assert "could be written nowhere" in run.stderr.splitlines()[-1]


def test_a_model_nobody_knows_is_one_line(tmp_path):
    run = run_musepi("-p", "hi", "--provider", "nope", "--model", "m1", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    assert "musepi models list" in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_a_summary_larger_than_the_window_changes_nothing(tmp_path):
    session = tmp_path / "s.jsonl"
    answers = [openai_reply(text="A long sentence about files and tests. " * 200)] * 2
    settings = [*CHARS4, "--set", "compaction.keepRecentTokens=500", "--set", "compaction.enabled=false"]
    endless = openai_reply(text=" ".join(f"word{number}" for number in range(6000))).packed(100)
    with ModelServer(*answers, *[endless] * 2) as server:
        flags = [*model_flags(server.base_url), "--session", str(session), *settings]
        run_musepi("-p", "one", "two", *flags, cwd=tmp_path)
        run = run_musepi("-p", "/compact", *flags, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    assert "compaction.model" in run.stderr
    assert '"type":"compaction"' not in session.read_text()


def test_print_mode_tells_a_pass_that_failed_by_itself_on_stderr(tmp_path):
    long = openai_reply(text="A long sentence about files and tests. " * 400)
    with ModelServer(long, *[openai_reply(text=" ")] * 12) as server:
        flags = [*model_flags(server.base_url), *CHARS4, "--set", "compaction.keepRecentTokens=200"]
        run = run_musepi("-p", "go", "--compact-at", "2000", *flags, cwd=tmp_path)
    assert run.returncode == 0
    assert run.stdout.startswith("A long sentence")
    assert "Auto-compaction failed: " in run.stderr


BROKEN = "def activate(api):\n    raise RuntimeError('no disk')\n"


def test_print_mode_tells_a_failed_extension_on_stderr_and_goes_on(tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN)
    with ModelServer(openai_reply(text="ok")) as server:
        run = run_musepi("-p", "go", "-e", "broken.py", *model_flags(server.base_url), cwd=tmp_path)
    assert (run.returncode, run.stdout) == (0, "ok\n")
    assert "extension broken failed at activate" in run.stderr
    assert "no disk" in run.stderr


def test_json_mode_has_an_event_for_a_failed_extension(tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN)
    with ModelServer(openai_reply(text="ok")) as server:
        flags = model_flags(server.base_url)
        run = run_musepi("--mode", "json", "go", "-e", "broken.py", *flags, cwd=tmp_path)
    [failed] = [event for event in events_of(run.stdout) if event["type"] == "extension_error"]
    assert (failed["extension"], failed["event"]) == ("broken", "activate")
    assert "no disk" in failed["error"]


def test_no_extensions_leaves_those_of_the_folder_alone(tmp_path, musepi_home):
    (musepi_home / "extensions").mkdir()
    (musepi_home / "extensions" / "broken.py").write_text(BROKEN)
    with ModelServer(openai_reply(text="ok"), openai_reply(text="ok")) as server:
        flags = model_flags(server.base_url)
        loud = run_musepi("-p", "go", *flags, cwd=tmp_path)
        quiet = run_musepi("-p", "go", "--no-extensions", *flags, cwd=tmp_path)
    assert "extension broken" in loud.stderr
    assert (quiet.returncode, quiet.stderr) == (0, "")


def test_compact_at_and_the_model_for_summaries_reach_the_session(tmp_path):
    long = openai_reply(text="A long sentence about files and tests. " * 400)
    with ModelServer(long, *[openai_reply(text="## Goal\nShip it.")] * 4) as server:
        flags = [*model_flags(server.base_url), *CHARS4, "--set", "compaction.keepRecentTokens=200"]
        at = ["--compact-at", "2000", "--compaction-model", "nobody/nothing"]
        run = run_musepi("--mode", "json", "go", *at, *flags, cwd=tmp_path)
        server.script(long)
        off = run_musepi("--mode", "json", "go", *at, "--no-auto-compact", *flags, cwd=tmp_path)
    events = events_of(run.stdout)
    kinds = [event["type"] for event in events]
    start = events[kinds.index("auto_compaction_start")]
    assert (start["reason"], start["midTurn"]) == ("threshold", False)
    assert {event["threshold"] for event in events if event["type"] == "context_usage"} == {2000}
    assert any("nobody/nothing" in event.get("message", "") for event in events if event["type"] == "notice")
    assert "context_usage" in kinds[kinds.index("auto_compaction_end") :]
    assert not any("compaction" in event["type"] for event in events_of(off.stdout))
