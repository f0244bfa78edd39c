import asyncio

import pytest

from musepi_tui.base.errors import ToolError
from musepi_tui.base.process import end_left_behind
from musepi_tui.tools.builtin.bash import TOOL
from tests.support.tools import until


async def test_output_of_both_streams_comes_merged(ctx):
    outcome = await ctx.call(TOOL, command="echo out; echo err >&2")
    assert (outcome.text, outcome.is_error, outcome.useless) == ("out\nerr", False, False)
    assert (outcome.view.kind, outcome.view.title, outcome.view.body) == (
        "tail",
        "$ echo out; echo err >&2",
        None,
    )


async def test_no_output_is_said(ctx):
    assert (await ctx.call(TOOL, command="true")).text == "(no output)"


async def test_exit_code_other_than_zero_is_an_error(ctx):
    outcome = await ctx.call(TOOL, command="echo x; exit 3")
    assert (outcome.text, outcome.is_error) == ("x\nexit code 3", True)


async def test_signal_is_named(ctx):
    assert "ended by SIGKILL" in (await ctx.call(TOOL, command="kill -9 $$")).text


async def test_timeout_keeps_the_partial_output(ctx):
    outcome = await ctx.call(TOOL, command="echo begun; sleep 30", timeout=1)
    assert (outcome.text, outcome.is_error) == ("begun\ntimed out after 1 s", True)


async def test_long_output_is_cut_at_the_front_and_kept_in_an_artifact(ctx):
    outcome = await ctx.call(TOOL, command="seq 1 5000")
    artifact_id = outcome.details["artifactId"]
    assert outcome.text.startswith("3001\n")
    assert outcome.text.endswith(f"[lines 3,001-5,000 of 5,000 shown; full output: artifact://{artifact_id}]")
    assert ctx.artifacts.text(artifact_id) == "".join(f"{number}\n" for number in range(1, 5001))


async def test_long_lines_are_shortened_and_kept_in_an_artifact(ctx):
    outcome = await ctx.call(TOOL, command="head -c 5000 /dev/zero | tr '\\0' x; echo; echo end")
    shown = outcome.text.split("\n")
    assert (len(shown[0]), shown[1]) == (769, "end")
    assert "[1 line shortened; full output: artifact://" in outcome.text
    assert len(ctx.artifacts.text(outcome.details["artifactId"])) == 5005


async def test_flood_costs_little_and_is_kept_whole(ctx):
    outcome = await ctx.call(TOOL, command="yes 0123456789 | head -c 3000000")
    assert len(outcome.text.encode()) < 52_000
    assert ctx.artifacts.find(outcome.details["artifactId"]).stat().st_size == 3_000_000


async def test_progress_shows_the_output_so_far(ctx):
    await ctx.call(TOOL, command="echo one; sleep 0.3; echo two; sleep 0.3")
    assert ctx.shown == ["one\n", "one\ntwo\n"]


async def test_colours_reach_the_screen_and_not_the_model(ctx):
    outcome = await ctx.call(TOOL, command=r"printf '\033[31mred\033[0m\n\033]0;title\007x'")
    assert outcome.text == "red\nx"
    assert outcome.view.body == "\x1b[31mred\x1b[0m\nx"


async def test_rewritten_line_is_shown_in_its_last_form(ctx):
    assert (await ctx.call(TOOL, command=r"printf '1%%\r50%%\r99%%\r\ndone\r\n'")).text == "99%\ndone"


async def test_variables_of_the_session_and_of_the_call_are_set(ctx):
    outcome = await ctx.call(TOOL, command="echo $MUSEPI $MINE $TERM", env={"MINE": "yes"})
    assert outcome.text == "1 yes dumb"


async def test_provider_key_is_not_in_the_environment(ctx, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    assert "canary" not in (await ctx.call(TOOL, command="env")).text


async def test_cwd_of_the_call_is_used(ctx, project):
    (project / "sub").mkdir()
    outcome = await ctx.call(TOOL, command="pwd -P", cwd="sub")
    assert outcome.text == str(ctx.workspace.resolve("sub").path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"command": "ls", "cwd": "none"}, "cwd: none is no folder"),
        ({"command": "ls", "env": {"A-B": "x"}}, "env: 'A-B'"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "  "}, "empty"),
    ],
)
async def test_unusable_arguments_are_errors(ctx, arguments, message):
    with pytest.raises(ToolError, match=message):
        await ctx.call(TOOL, **arguments)


async def test_background_process_is_reported(ctx):
    outcome = await ctx.call(TOOL, command="sleep 60 & echo started")
    assert outcome.text.startswith("started\nstill running: ")
    assert outcome.text.endswith(" sleep")
    assert not outcome.is_error
    await end_left_behind()


async def test_cancelled_command_is_over_and_keeps_its_artifact(ctx, project):
    task = asyncio.get_running_loop().create_task(
        ctx.call(TOOL, command="echo $$ > pid; seq 1 4000; sleep 60; echo never > late")
    )
    await until(lambda: any(text.rstrip().endswith("4000") for text in ctx.shown))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not (project / "late").exists()
    assert ctx.artifacts.text("0").endswith("4000\n")


def test_title_is_the_first_line_and_counts_the_others():
    view = TOOL.preview({"command": "set -e\nmake\nmake test\n"})
    assert (view.title, view.note) == ("$ set -e", "+2 lines")
