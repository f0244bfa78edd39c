import os

import pytest

from musepi_tui.base.errors import ToolError
from musepi_tui.tools.builtin import find
from musepi_tui.tools.builtin.find import TOOL


@pytest.fixture(autouse=True)
def files(project):
    for name in ("src/b.py", "src/a.py", "src/deep/c.py", "top.py", "skip.log", ".hidden.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("")
    (project / ".gitignore").write_text("*.log\n")


async def test_files_at_any_depth_come_in_order(ctx):
    outcome = await ctx.call(TOOL, pattern="*.py")
    assert outcome.text.split("\n") == [".hidden.py", "src/a.py", "src/b.py", "src/deep/c.py", "top.py"]
    assert (outcome.view.kind, outcome.view.title, outcome.view.note) == ("list", "find *.py", "5 found")


async def test_folders_have_a_slash(ctx):
    assert (await ctx.call(TOOL, pattern="deep")).text == "src/deep/"


async def test_pattern_is_relative_to_the_path(ctx):
    assert (await ctx.call(TOOL, pattern="deep/*.py", path="src")).text == "src/deep/c.py"


async def test_newest_first_when_asked(ctx, project):
    for age, name in enumerate(("top.py", "src/b.py", "src/a.py")):
        os.utime(project / name, (1_000_000_000 - age, 1_000_000_000 - age))
    outcome = await ctx.call(TOOL, pattern="[abt]*.py", sort="mtime")
    assert outcome.text.split("\n") == ["top.py", "src/b.py", "src/a.py"]


async def test_nothing_found_is_useless(ctx):
    outcome = await ctx.call(TOOL, pattern="*.rs")
    assert (outcome.text, outcome.useless) == ("No file matches.", True)


async def test_ignored_file_is_not_found(ctx):
    assert (await ctx.call(TOOL, pattern="*.log")).useless


async def test_limit_is_said(ctx):
    outcome = await ctx.call(TOOL, pattern="*.py", limit=2)
    assert "[stopped at 2 paths" in outcome.text
    assert not outcome.useless


async def test_time_limit_gives_what_there_is_with_a_note(ctx, monkeypatch):
    monkeypatch.setattr(find, "TIME_LIMIT_S", -1.0)
    outcome = await ctx.call(TOOL, pattern="*.py")
    assert "not all matches" in outcome.text
    assert not outcome.useless


@pytest.mark.parametrize("path", ["/", "nope", "top.py"])
async def test_unusable_start_is_an_error(ctx, path):
    with pytest.raises(ToolError):
        await ctx.call(TOOL, pattern="*", path=path)
