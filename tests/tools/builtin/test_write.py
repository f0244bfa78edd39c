import stat

import pytest

from musepi_tui.base.errors import ToolError
from musepi_tui.tools.builtin.read import TOOL as READ
from musepi_tui.tools.builtin.write import TOOL


async def test_new_file_is_written_with_its_parents(ctx, project):
    outcome = await ctx.call(TOOL, path="a/b/c.py", content="x = 1\n")
    assert (project / "a/b/c.py").read_text() == "x = 1\n"
    assert outcome.text == "Wrote 6 bytes to a/b/c.py"
    view = outcome.view
    assert (view.kind, view.title, view.body, view.language) == ("code", "write a/b/c.py", "x = 1", "python")


async def test_existing_file_that_was_not_read_is_refused(ctx, project):
    (project / "a").write_text("precious")
    with pytest.raises(ToolError, match="you have not read it"):
        await ctx.call(TOOL, path="a", content="new")
    assert (project / "a").read_text() == "precious"


async def test_file_changed_since_it_was_read_is_refused(ctx, project):
    (project / "a").write_text("old")
    await ctx.call(READ, path="a")
    (project / "a").write_text("by the user")
    with pytest.raises(ToolError, match="changed on disk"):
        await ctx.call(TOOL, path="a", content="new")
    assert (project / "a").read_text() == "by the user"


async def test_file_that_was_read_is_replaced_and_may_be_written_again(ctx, project):
    (project / "a").write_text("old\n")
    await ctx.call(READ, path="a")
    outcome = await ctx.call(TOOL, path="a", content="new\n")
    await ctx.call(TOOL, path="a", content="newer\n")
    assert (project / "a").read_text() == "newer\n"
    assert outcome.details["diff"] == "@@ -1,1 +1,1 @@\n-old\n+new"


async def test_mode_line_ending_and_byte_order_mark_are_kept(ctx, project):
    file = project / "run.bat"
    file.write_bytes(b"\xef\xbb\xbfold\r\n")
    file.chmod(0o750)
    await ctx.call(READ, path="run.bat")
    await ctx.call(TOOL, path="run.bat", content="one\ntwo\n")
    assert file.read_bytes() == b"\xef\xbb\xbfone\r\ntwo\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o750


async def test_link_stays_and_its_target_is_replaced(ctx, project):
    (project / "real").write_text("old")
    (project / "link").symlink_to("real")
    await ctx.call(READ, path="link")
    await ctx.call(TOOL, path="link", content="new")
    assert (project / "link").is_symlink()
    assert (project / "real").read_text() == "new"


async def test_parents_are_not_made_outside(ctx, tmp_path):
    with pytest.raises(ToolError, match="only made inside"):
        await ctx.call(TOOL, path=str(tmp_path / "elsewhere" / "a"), content="x")
    assert not (tmp_path / "elsewhere").exists()


async def test_folder_is_refused(ctx, project):
    (project / "a").mkdir()
    with pytest.raises(ToolError, match="is a folder"):
        await ctx.call(TOOL, path="a", content="x")


async def test_lone_surrogate_is_refused_before_anything_is_written(ctx, project):
    with pytest.raises(ToolError, match="no valid Unicode"):
        await ctx.call(TOOL, path="a", content="\ud800")
    assert list(project.iterdir()) == []


async def test_failing_write_names_the_reason_and_leaves_nothing(ctx, project):
    (project / "file").write_text("")
    with pytest.raises(ToolError, match="Nothing was written"):
        await ctx.call(TOOL, path="file/a", content="x")
