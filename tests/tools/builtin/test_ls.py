import pytest

from musepi_tui.base.errors import ToolError
from musepi_tui.tools.builtin.ls import TOOL


async def test_names_are_sorted_without_case_and_marked(ctx, project):
    for name in ("b", ".a", "C"):
        (project / name).write_text("")
    (project / "dir").mkdir()
    (project / "link").symlink_to("dir")
    outcome = await ctx.call(TOOL)
    assert outcome.text == ".a\nb\nC\ndir/\nlink -> dir"
    assert (outcome.view.kind, outcome.view.title, outcome.view.note) == ("list", "ls .", "5 entries")


async def test_empty_folder_is_useless(ctx):
    outcome = await ctx.call(TOOL)
    assert (outcome.text, outcome.useless) == ("The folder is empty.", True)


async def test_limit_is_said(ctx, project):
    for number in range(5):
        (project / str(number)).write_text("")
    assert (await ctx.call(TOOL, limit=2)).text == "0\n1\n[2 of 5 entries shown; raise limit]"


async def test_file_or_missing_folder_is_an_error(ctx, project):
    (project / "a").write_text("")
    for path, message in (("a", "is no folder"), ("b", "does not exist")):
        with pytest.raises(ToolError, match=message):
            await ctx.call(TOOL, path=path)
