"""Passes as scripts meet them: events on stdout, answers of RPC, exit codes, over real processes."""

import json

import pytest

from tests.support.harness import write_models
from tests.support.passes import (
    DOCUMENT,
    PASS,
    SUMMARY,
    TURN,
    FakeModel,
    check_request,
    summary_of,
)
from tests.support.program import RpcProgram
from tests.support.server import status_reply

SETTINGS = (
    "tokens.estimator=chars4",
    "compaction.keepRecentTokens=2000",
    "compaction.autoContinue=false",
    "retry.maxRetries=0",
    "retry.requestRetries=0",
)
FLAGS = ("--yolo", "--model", "local/m1", *(part for setting in SETTINGS for part in ("--set", setting)))
TURNING_POINTS = ("agent_start", "agent_end", "agent_settled")


@pytest.fixture
def model(server, api, musepi_home):
    base_url = server.base_url if api == "anthropic-messages" else f"{server.base_url}/v1"
    write_models(musepi_home, api, base_url, contextWindow=20_000)
    return FakeModel(server, api)


def run(zygote, project, *arguments):
    """Exit code, stdout and stderr of a whole run."""
    with zygote.start(*FLAGS, *arguments, cwd=project) as child:
        child.stdin.close()
        out, err = child.stdout.read(), child.stderr.read()
        return child.wait(), out.decode(), err.decode()


def course_of(lines):
    names = [line["type"] for line in lines]
    return [
        name
        for name in names
        if name in TURNING_POINTS or name.endswith(("compaction_start", "compaction_end"))
    ]


def test_run_that_recovers_from_an_overflow_succeeds(zygote, model, project):
    model.turns += [model.says(6_000)]
    code, _, _ = run(zygote, project, "-p", "first")
    assert code == 0
    model.turns += [model.overflows(), model.says("all is well")]
    code, out, err = run(zygote, project, "--continue", "--mode", "json", "second")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert course_of(lines) == [*TURN, *PASS, *TURN, "agent_settled"]
    end = next(line for line in lines if line["type"] == "auto_compaction_end")
    assert (end["willRetry"], end["aborted"]) == (True, False)
    assert SUMMARY in summary_of(model.asked[-1])
    check_request(model.asked[-1])


def test_answer_of_a_recovered_run_is_printed_alone(zygote, model, project):
    model.turns += [model.says(6_000), model.overflows(), model.says("all is well")]
    run(zygote, project, "-p", "first")
    code, out, _ = run(zygote, project, "--continue", "-p", "second")
    assert (code, out) == (0, "all is well\n")


def test_run_whose_recovery_fails_exits_with_one(zygote, model, project):
    model.turns += [model.says(6_000), model.overflows()]
    model.summary = status_reply(500, {"error": {"message": "no summary today"}})
    run(zygote, project, "-p", "first")
    code, out, err = run(zygote, project, "--continue", "-p", "second")
    assert (code, out) == (1, "")
    assert "/compact, or a model with a larger context window" in err
    assert "Traceback" not in err


def test_commands_of_rpc_during_and_after_passes(zygote, model, project):
    model.turns += [model.says(12_000), model.says(4_000), model.says("three")]
    process = zygote.start(*FLAGS, "--mode", "rpc", cwd=project)
    with process, RpcProgram(cwd=project, process=process) as rpc:
        rpc.send("prompt", message="one")
        rpc.wait_for("agent_settled")
        rpc.send("prompt", message="two")
        started = rpc.wait_for("auto_compaction_start")
        ended = rpc.wait_for("auto_compaction_end")
        rpc.wait_for("agent_settled")
        assert (started["reason"], started["midTurn"], ended["willRetry"]) == ("threshold", False, False)
        refused = rpc.ask("compact")
        rpc.send("prompt", message="three")
        rpc.wait_for("agent_settled")
        assert (refused["success"], refused["error"]) == (False, "Already compacted")
    assert SUMMARY in summary_of(model.asked[-1])


HANDOFF = ("--set", "compaction.strategy=handoff", "--set", "compaction.threshold=10000")


def test_run_that_is_handed_off_goes_on_to_its_end_and_names_the_new_session(zygote, model, project):
    long = model.says(11_000, used=(200, 11_000))
    model.turns += [long, model.says("nothing left")]
    on = ("--set", "compaction.autoContinue=true")
    code, out, err = run(zygote, project, *HANDOFF, *on, "--mode", "json", "write a lot")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert course_of(lines) == [*TURN, *PASS, *TURN, "agent_settled"]
    names = [line["type"] for line in lines]
    changed = names.index("session_changed")
    assert names.index("auto_compaction_start") < changed < names.index("auto_compaction_end")
    assert lines[changed]["id"] != lines[0]["id"]
    assert DOCUMENT in check_request(model.asked[-1])[0].text


def test_answer_of_a_run_that_was_handed_off_is_printed(zygote, model, project):
    long = model.says(11_000, used=(200, 11_000))
    model.turns += [long, model.says("nothing left")]
    code, out, _ = run(
        zygote, project, *HANDOFF, "--set", "compaction.autoContinue=true", "-p", "write a lot"
    )
    assert (code, out) == (0, "nothing left\n")
