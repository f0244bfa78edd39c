import sys
import time

import pytest

from musepi_tui.base.errors import ToolError
from musepi_tui.base.process import find_program
from musepi_tui.tools import search
from musepi_tui.tools.builtin import grep
from musepi_tui.tools.builtin.grep import TOOL


@pytest.fixture(params=["python", "ripgrep"], autouse=True)
def engine(request, monkeypatch):
    """Every rule holds for both engines."""
    if request.param == "python":
        monkeypatch.setattr(search, "find_program", lambda name, project=None: None)
    elif find_program("rg") is None:
        pytest.skip("ripgrep is not installed")
    return request.param


@pytest.fixture(autouse=True)
def files(project):
    (project / "src").mkdir()
    (project / "src" / "a.py").write_bytes(b"import os\r\ndef find(x):\r\n    return x\r\n")
    (project / "b.md").write_text("find it\nFIND it\n(a+b\n")
    (project / ".hidden").write_text("find me\n")
    (project / "skip.log").write_text("find not\n")
    (project / ".gitignore").write_text("*.log\n")
    (project / ".git").mkdir()
    (project / ".git" / "x").write_text("find not\n")
    (project / "bin").write_bytes(b"find\0not\n")


async def test_matches_come_with_path_and_line_by_file(ctx):
    outcome = await ctx.call(TOOL, pattern=r"find\b")
    assert outcome.text == ".hidden:1: find me\nb.md:1: find it\nsrc/a.py:2: def find(x):"
    assert (outcome.view.kind, outcome.view.title, outcome.view.note) == ("list", r"grep /find\b/", "3 found")


async def test_case_glob_and_path_narrow_the_search(ctx):
    assert (
        await ctx.call(TOOL, pattern="find it", ignoreCase=True, glob="*.md")
    ).text == "b.md:1: find it\nb.md:2: FIND it"
    assert (await ctx.call(TOOL, pattern="find", path="src")).text == "src/a.py:2: def find(x):"
    assert (await ctx.call(TOOL, pattern="find", path="src/a.py")).text == "src/a.py:2: def find(x):"
    assert (await ctx.call(TOOL, pattern="find", glob="src/**/*.py")).text == "src/a.py:2: def find(x):"


async def test_context_lines_have_another_sign_and_gaps_are_marked(ctx, project):
    (project / "c.txt").write_text("a\nhit\nb\nc\nd\nhit\n")
    outcome = await ctx.call(TOOL, pattern="hit", context=1, path="c.txt")
    assert outcome.text == "c.txt-1- a\nc.txt:2: hit\nc.txt-3- b\n--\nc.txt-5- d\nc.txt:6: hit"


async def test_no_match_is_useless(ctx):
    outcome = await ctx.call(TOOL, pattern="nothing like this")
    assert (outcome.text, outcome.useless, outcome.is_error) == ("No matches.", True, False)


async def test_limit_stops_the_search_and_says_so(ctx, project):
    (project / "many.txt").write_text("row\n" * 50)
    outcome = await ctx.call(TOOL, pattern="row", limit=3)
    assert outcome.text.count("many.txt:") == 3
    assert "[stopped at 3 matches" in outcome.text


async def test_bad_expression_is_an_error_that_offers_literal(ctx):
    with pytest.raises(ToolError, match="set literal"):
        await ctx.call(TOOL, pattern="(a+b")
    assert (await ctx.call(TOOL, pattern="(a+b", literal=True)).text == "b.md:3: (a+b"


async def test_pattern_that_looks_like_an_option_is_a_pattern(ctx, project):
    (project / "o.txt").write_text("--files\n")
    assert (await ctx.call(TOOL, pattern="--files")).text == "o.txt:1: --files"


async def test_long_line_is_cut_around_the_hit(ctx, project):
    (project / "long.txt").write_text("x" * 5000 + "needle" + "y" * 5000)
    line = (await ctx.call(TOOL, pattern="needle")).text
    assert "needle" in line
    assert len(line) < 530


async def test_lines_of_secret_files_are_not_shown_unless_named(ctx, project):
    (project / ".env").write_text("TOKEN=find-me-not\n")
    outcome = await ctx.call(TOOL, pattern="TOKEN=")
    assert "find-me-not" not in outcome.text
    assert "may hold secrets are not shown: .env" in outcome.text
    assert not outcome.useless
    assert "find-me-not" in (await ctx.call(TOOL, pattern="TOKEN=", path=".env")).text


async def test_missing_path_is_an_error(ctx):
    with pytest.raises(ToolError, match="does not exist"):
        await ctx.call(TOOL, pattern="x", path="nope")


async def test_pattern_with_a_line_break_is_refused(ctx):
    with pytest.raises(ToolError, match="line break"):
        await ctx.call(TOOL, pattern="a\nb")


async def test_result_over_the_limit_is_kept_in_an_artifact(ctx, project):
    (project / "big.txt").write_text(("row " + "z" * 400 + "\n") * 300)
    outcome = await ctx.call(TOOL, pattern="row", limit=300)
    assert len(outcome.text.encode()) < 52_000
    assert "full output: artifact://0" in outcome.text
    assert ctx.artifacts.text("0").count("big.txt:") == 300


async def test_endless_expression_is_stopped_at_the_time_limit(ctx, project, engine, monkeypatch):
    if engine == "ripgrep":
        pytest.skip("ripgrep takes linear time")
    monkeypatch.setattr(grep, "TIME_LIMIT_S", 1.0)
    (project / "evil.txt").write_text("a" * 60 + "b\n")
    started = time.monotonic()
    outcome = await ctx.call(TOOL, pattern="(a|a)+$", path="evil.txt")
    assert time.monotonic() - started < 5
    assert "stopped after 1 s" in outcome.text
    assert not outcome.useless


def test_worker_runs_isolated_from_the_project(project, engine):
    if engine == "ripgrep":
        pytest.skip("about the Python engine")
    job = search.SearchJob("x", str(project), str(project))
    argv, _ = search.search_command(job)
    assert argv[:2] == (sys.executable, "-I")


async def test_module_of_the_project_does_not_shadow_the_workers(ctx, project):
    (project / "json.py").write_text("raise SystemExit('find this and die')\n")
    assert "json.py:1:" in (await ctx.call(TOOL, pattern="find this")).text
