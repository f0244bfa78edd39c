import base64
import os
import struct
import zlib

import pytest

from musepi_tui.base.errors import ToolError
from musepi_tui.tools import images
from musepi_tui.tools.builtin.read import TOOL


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\xff\0\0" * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


async def test_whole_file_comes_as_it_is_without_footer(ctx, project):
    (project / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    outcome = await ctx.call(TOOL, path="a.txt")
    assert outcome.text == "one\ntwo"
    assert (outcome.view.kind, outcome.view.title, outcome.view.note) == ("none", "read a.txt", "2 lines")


async def test_long_file_ends_with_the_way_to_go_on(ctx, project):
    (project / "a.txt").write_text("".join(f"{number}\n" for number in range(1, 5001)))
    outcome = await ctx.call(TOOL, path="a.txt")
    assert outcome.text.endswith("2000\n\n[lines 1-2000 of 5000 shown; continue with :2001]")
    rest = await ctx.call(TOOL, path="a.txt:2001")
    assert rest.text.startswith("2001\n")


async def test_byte_limit_stops_at_a_whole_line(ctx, project):
    (project / "a.txt").write_text(("x" * 999 + "\n") * 100)
    outcome = await ctx.call(TOOL, path="a.txt")
    assert outcome.text.endswith("[lines 1-51 of 100 shown; continue with :52]")


async def test_ranges_come_in_order_with_their_numbers(ctx, project):
    (project / "a.txt").write_text("".join(f"{number}\n" for number in range(1, 21)))
    outcome = await ctx.call(TOOL, path="a.txt:15-16,2-3")
    assert (
        outcome.text
        == "[lines 2-3]\n2\n3\n\n[lines 15-16]\n15\n16\n\n[lines 2-16 of 20 shown; continue with :17]"
    )
    assert outcome.view.title == "read a.txt:15-16,2-3"


async def test_offset_and_limit_are_a_range(ctx, project):
    (project / "a.txt").write_text("1\n2\n3\n4\n")
    outcome = await ctx.call(TOOL, path="a.txt", offset=2, limit=2)
    assert outcome.text == "2\n3\n\n[lines 2-3 of 4 shown; continue with :4]"


async def test_line_beyond_the_end_is_an_error_with_the_count(ctx, project):
    (project / "a.txt").write_text("1\n2\n")
    with pytest.raises(ToolError, match=r"a\.txt has 2 lines, so there is no line 9"):
        await ctx.call(TOOL, path="a.txt:9")


async def test_single_line_over_the_limit_is_an_error_that_helps(ctx, project):
    (project / "a.txt").write_text("x" * 60_000)
    with pytest.raises(ToolError, match=r"Line 1 of a\.txt has 60,000 bytes.*grep"):
        await ctx.call(TOOL, path="a.txt")


async def test_empty_file_is_said_and_not_useless(ctx, project):
    (project / "a.txt").write_text("")
    outcome = await ctx.call(TOOL, path="a.txt")
    assert (outcome.text, outcome.useless) == ("a.txt is empty.", False)


async def test_raw_has_no_footer(ctx, project):
    (project / "a.txt").write_text("1\n2\n3\n")
    assert (await ctx.call(TOOL, path="a.txt:2-2:raw")).text == "2"


async def test_binary_file_is_described(ctx, project):
    (project / "a.bin").write_bytes(b"\x7fELF\0\0rest")
    outcome = await ctx.call(TOOL, path="a.bin")
    assert outcome.text == "a.bin is a binary file of 10 bytes (program); not shown."


async def test_text_that_is_no_utf8_is_read_with_marks(ctx, project):
    (project / "a.txt").write_bytes(b"caf\xe9\n")
    assert (await ctx.call(TOOL, path="a.txt")).text == "caf\ufffd"


async def test_folder_is_listed_two_levels_deep_and_twelve_each(ctx, project):
    (project / "src").mkdir()
    for number in range(15):
        (project / "src" / f"f{number:02}.py").write_text("")
    (project / "README").write_text("")
    outcome = await ctx.call(TOOL, path=".")
    lines = outcome.text.split("\n")
    assert lines[:3] == ["README", "src/", "  f00.py"]
    assert lines[-1] == "  … 3 more"


async def test_missing_file_is_an_error(ctx):
    with pytest.raises(ToolError, match="nope.py does not exist"):
        await ctx.call(TOOL, path="nope.py")


async def test_file_found_by_its_ending_is_read_and_said(ctx, project):
    (project / "src").mkdir()
    (project / "src" / "only.py").write_text("x\n")
    outcome = await ctx.call(TOOL, path="only.py:1-1")
    assert outcome.text == "[only.py does not exist; this is src/only.py.]\nx"


async def test_unreadable_file_is_an_error(ctx, project):
    (project / "a.txt").write_text("x")
    (project / "a.txt").chmod(0)
    if os.access(project / "a.txt", os.R_OK):
        pytest.skip("runs as root")
    with pytest.raises(ToolError, match="permission denied"):
        await ctx.call(TOOL, path="a.txt")


async def test_pipe_is_an_error_at_once(ctx, project):
    os.mkfifo(project / "pipe")
    with pytest.raises(ToolError, match="no regular file"):
        await ctx.call(TOOL, path="pipe")


async def test_artifact_is_read_by_its_id(ctx):
    artifact_id = ctx.artifacts.save("bash", "one\ntwo\n")
    assert (await ctx.call(TOOL, path=f"artifact://{artifact_id}:2")).text.startswith("two")
    with pytest.raises(ToolError):
        await ctx.call(TOOL, path="artifact://99")


async def test_small_image_is_sent_as_it_is(ctx, project):
    data = png(4, 3)
    (project / "a.dat").write_bytes(data)
    outcome = await ctx.call(TOOL, path="a.dat")
    assert [(image.mime_type, base64.b64decode(image.data)) for image in outcome.images] == [
        ("image/png", data)
    ]
    assert "png image, 4x3 pixels" in outcome.text
    assert outcome.view.note == "4x3"


async def test_large_image_without_pillow_is_an_error_that_says_what_is_missing(ctx, project, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(images, "import_module", missing)
    (project / "a.png").write_bytes(png(2500, 2))
    with pytest.raises(ToolError, match="pip install pillow"):
        await ctx.call(TOOL, path="a.png")


async def test_large_image_is_scaled_with_pillow(ctx, project):
    pytest.importorskip("PIL")
    (project / "a.png").write_bytes(png(2500, 10))
    outcome = await ctx.call(TOOL, path="a.png")
    facts = images.recognise(base64.b64decode(outcome.images[0].data))
    assert (facts.width, facts.height) == (2000, 8)


async def test_huge_image_is_refused_by_its_header(ctx, project):
    (project / "a.png").write_bytes(
        png(1, 1).replace(struct.pack(">II", 1, 1), struct.pack(">II", 30_000, 30_000))
    )
    with pytest.raises(ToolError, match="too large"):
        await ctx.call(TOOL, path="a.png")


async def test_notebook_is_read_as_its_cells(ctx, project):
    (project / "n.ipynb").write_text('{"cells": [{"cell_type": "code", "source": ["a = 1\\n", "b"]}]}')
    assert (await ctx.call(TOOL, path="n.ipynb")).text == "# %% [code] cell 1\na = 1\nb"
    assert (await ctx.call(TOOL, path="n.ipynb:raw")).text.startswith('{"cells"')


async def test_reading_makes_the_content_known(ctx, project):
    (project / "a.txt").write_text("x")
    await ctx.call(TOOL, path="a.txt:1-1")
    assert ctx.workspace.was_read(project / "a.txt")
