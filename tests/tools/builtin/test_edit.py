import asyncio

import pytest

from musepi_tui.base.errors import ToolError
from musepi_tui.tools.builtin.edit import TOOL
from musepi_tui.tools.builtin.read import TOOL as READ


async def test_edit_changes_the_file_and_shows_the_diff(ctx, project):
    (project / "a.py").write_text("a = 1\nb = 2\n")
    outcome = await ctx.call(TOOL, path="a.py", edits=[{"oldText": "b = 2", "newText": "b = 3\nc = 4"}])
    assert (project / "a.py").read_text() == "a = 1\nb = 3\nc = 4\n"
    assert (outcome.view.kind, outcome.view.title) == ("diff", "edit a.py (+2 −1)")
    assert outcome.view.body == "@@ -1,2 +1,3 @@\n a = 1\n-b = 2\n+b = 3\n+c = 4"
    assert outcome.details["firstChangedLine"] == 2
    assert (outcome.details["added"], outcome.details["removed"]) == (2, 1)


async def test_failed_edit_leaves_the_file_alone(ctx, project):
    (project / "a.py").write_text("a\nb\n")
    edits = [{"oldText": "a", "newText": "x"}, {"oldText": "nope", "newText": "y"}]
    with pytest.raises(ToolError, match=r"edits\[1\]"):
        await ctx.call(TOOL, path="a.py", edits=edits)
    assert (project / "a.py").read_text() == "a\nb\n"


async def test_bytes_that_are_no_utf8_survive(ctx, project):
    (project / "a").write_bytes(b"caf\xe9\nb\n")
    await ctx.call(TOOL, path="a", edits=[{"oldText": "b", "newText": "c"}])
    assert (project / "a").read_bytes() == b"caf\xe9\nc\n"


async def test_change_by_somebody_else_is_kept_and_said(ctx, project):
    (project / "a").write_text("a\nb\n")
    await ctx.call(READ, path="a")
    (project / "a").write_text("a\nb\nby the user\n")
    outcome = await ctx.call(TOOL, path="a", edits=[{"oldText": "b\n", "newText": "B\n"}])
    assert (project / "a").read_text() == "a\nB\nby the user\n"
    assert "changed on disk" in outcome.text


async def test_match_by_look_alikes_is_said(ctx, project):
    (project / "a").write_text("it\u2019s\n")
    outcome = await ctx.call(TOOL, path="a", edits=[{"oldText": "it's", "newText": "is"}])
    assert "look-alike" in outcome.text


async def test_parallel_edits_of_one_file_both_take_effect(ctx, project):
    (project / "a").write_text("".join(f"<{number}>\n" for number in range(10)))
    calls = [
        ctx.call(TOOL, path="a", edits=[{"oldText": f"<{number}>", "newText": f"done {number}"}])
        for number in range(10)
    ]
    await asyncio.gather(*calls)
    assert (project / "a").read_text() == "".join(f"done {number}\n" for number in range(10))


@pytest.mark.parametrize(("content", "path"), [(b"a\0b", "a"), (None, "none")])
async def test_binary_or_missing_file_is_an_error(ctx, project, content, path):
    if content is not None:
        (project / path).write_bytes(content)
    with pytest.raises(ToolError):
        await ctx.call(TOOL, path=path, edits=[{"oldText": "a", "newText": "b"}])


def test_preview_shows_the_texts_before_the_edit_runs():
    view = TOOL.preview({"path": "a.py", "edits": [{"oldText": "a\nb", "newText": "a\nc"}]})
    assert (view.kind, view.title, view.body) == ("diff", "edit a.py", " a\n-b\n+c")
