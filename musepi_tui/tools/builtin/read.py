"""Reads a file, an image, an artifact or the listing of a folder."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import Field

from musepi_tui.base.errors import ToolError
from musepi_tui.base.text import group_digits, plural
from musepi_tui.tools import images
from musepi_tui.tools.limits import MAX_BYTES, cut_head
from musepi_tui.tools.lines import ReadLines, read_lines
from musepi_tui.tools.notebook import notebook_text
from musepi_tui.tools.paths import ResolvedPath, Workspace, explain, open_regular, printable_name
from musepi_tui.tools.preview import argument, title
from musepi_tui.tools.selector import ARTIFACT, LineRange, Selector, split_path
from musepi_tui.tools.types import ArtifactSink, Effect, ToolContext, ToolOutcome, ToolView
from musepi_tui.tools.validate import ToolArguments

_MAX_TEXT_BYTES = 256 * 1024 * 1024
_FOLDER_ENTRIES = 12
_HEAD_BYTES = 8_192


class ReadArguments(ToolArguments):
    """Arguments of ``read``."""

    path: str = Field(description="path, optionally with a line selector")
    offset: int | None = Field(default=None, ge=1, description="first line")
    limit: int | None = Field(default=None, ge=1, description="number of lines")


class Read:
    """Shows files to the model."""

    name = "read"
    arguments = ReadArguments
    effect = Effect.READ
    prompt = "tool-read"

    def preview(self, arguments: Mapping[str, Any]) -> ToolView:
        """The path with its selector."""
        return ToolView("none", title("read", argument(arguments, "path")))

    async def run(self, args: ReadArguments, ctx: ToolContext) -> ToolOutcome:
        """Opens what the path names; a selector is only one when no file has that name."""
        return await ctx.in_thread(_read, ctx.workspace, ctx.artifacts, args)


TOOL = Read()


def _read(workspace: Workspace, artifacts: ArtifactSink, args: ReadArguments) -> ToolOutcome:
    path, selector = _split(workspace, args)
    if path.startswith(ARTIFACT):
        file = artifacts.find(path.removeprefix(ARTIFACT))
        resolved, note = ResolvedPath(Path(os.path.realpath(file)), path), None
    else:
        resolved, note = workspace.find(path)
    if resolved.path.is_dir():
        return _with_note(_read_folder(resolved), note)
    with open_regular(resolved) as file:
        outcome = _read_file(workspace, resolved, file, selector)
    return _with_note(outcome, note)


def _split(workspace: Workspace, args: ReadArguments) -> tuple[str, Selector]:
    """The path and what is wanted of it; ``offset`` and ``limit`` are another spelling of a selector."""
    path, selector = split_path(args.path, workspace)
    if not selector.ranges and (args.offset is not None or args.limit is not None):
        first = args.offset or 1
        last = first + args.limit - 1 if args.limit is not None else None
        written = f":{first}-{'' if last is None else last}"
        selector = Selector((LineRange(first, last),), selector.raw, written + selector.text)
    return path, selector


def _read_file(
    workspace: Workspace, resolved: ResolvedPath, file: BinaryIO, selector: Selector
) -> ToolOutcome:
    size = os.fstat(file.fileno()).st_size
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    facts = images.recognise(head)
    if facts is not None:
        return _read_image(resolved, file, size)
    if b"\0" in head:
        text = (
            f"{resolved.shown} is a binary file of {group_digits(size)} bytes ({_kind_of(head)}); not shown."
        )
        return ToolOutcome(text, view=ToolView("none", title("read", resolved.shown), note="binary"))
    if resolved.path.suffix == ".ipynb" and not selector.raw and not selector.ranges:
        cells = notebook_text(file.read(_MAX_TEXT_BYTES))
        file.seek(0)
        if cells is not None:
            return _read_notebook(resolved, cells)
    if size > _MAX_TEXT_BYTES:
        raise ToolError(
            f"{resolved.shown} has {group_digits(size)} bytes, too many to be read as a whole. "
            "Use grep, or bash with sed -n 'A,Bp'."
        )
    result = read_lines(file, selector.ranges)
    workspace.note_read(resolved.path, result.digest)
    return _text_outcome(resolved, selector, result)


def _text_outcome(resolved: ResolvedPath, selector: Selector, result: ReadLines) -> ToolOutcome:
    total = plural(result.total, "line")
    if result.too_long_bytes is not None:
        raise ToolError(
            f"Line {result.stopped_at} of {resolved.shown} has {group_digits(result.too_long_bytes)} bytes, "
            f"more than the {group_digits(MAX_BYTES)} of one result. Use grep, or bash with cut -c1-2000."
        )
    if result.total == 0:
        text = f"{resolved.shown} is empty."
        return ToolOutcome(text, view=ToolView("none", title("read", resolved.shown), note="empty"))
    if not result.lines:
        first = selector.ranges[0].first
        raise ToolError(f"{resolved.shown} has {total}, so there is no line {group_digits(first)}.")
    shown = title("read", resolved.shown + selector.text)
    view = ToolView("none", shown, note=plural(len(result.lines), "line"))
    return ToolOutcome(_layout(result, raw=selector.raw), view=view)


def _layout(result: ReadLines, *, raw: bool) -> str:
    """The lines; a footer says which they are when they are not the whole file."""
    blocks = list(result.blocks())
    if len(result.lines) == result.total or raw:
        return "\n".join(text for _, _, text in blocks)
    if len(blocks) > 1:
        text = "\n\n".join(f"[lines {first}-{last}]\n{text}" for first, last, text in blocks)
    else:
        text = blocks[0][2]
    first, last = result.numbers[0], result.numbers[-1]
    rest = f"; continue with :{result.stopped_at or last + 1}" if last < result.total else ""
    return f"{text}\n\n[lines {first}-{last} of {result.total} shown{rest}]"


def _read_image(resolved: ResolvedPath, file: BinaryIO, size: int) -> ToolOutcome:
    if size > images.MAX_FILE_BYTES:
        raise ToolError(
            f"{resolved.shown} is an image of {group_digits(size)} bytes; at most 20 MiB are read."
        )
    data = file.read(images.MAX_FILE_BYTES)
    facts = images.recognise(data)
    if facts is None:
        raise ToolError(f"{resolved.shown} was changed while it was read.")
    block, text = images.to_block(data, facts, resolved.shown)
    note = f"{facts.width}x{facts.height}"
    return ToolOutcome(text, images=(block,), view=ToolView("none", title("read", resolved.shown), note=note))


def _read_notebook(resolved: ResolvedPath, cells: str) -> ToolOutcome:
    part = cut_head(cells)
    text = part.text
    if part.is_cut:
        text += f"\n\n[lines 1-{part.last} of {part.total} shown; the rest is in the file itself: :raw]"
    view = ToolView("none", title("read", resolved.shown), note=plural(part.last, "line"))
    return ToolOutcome(text, view=view)


def _read_folder(resolved: ResolvedPath) -> ToolOutcome:
    """Two levels, ``_FOLDER_ENTRIES`` of each folder."""
    lines: list[str] = []
    for entry in _first_entries(resolved.path, lines):
        lines.append(_entry_name(entry))
        if entry.is_dir(follow_symlinks=False) and entry.name != ".git":
            below: list[str] = []
            names = [_entry_name(inner) for inner in _first_entries(Path(entry.path), below)]
            lines += [f"  {name}" for name in (*names, *below)]
    view = ToolView("none", title("read", f"{resolved.shown}/"), note="folder")
    return ToolOutcome(cut_head("\n".join(lines) or "The folder is empty.").text, view=view)


def _first_entries(folder: Path, rest: list[str]) -> Iterator[os.DirEntry[str]]:
    """The first entries of a folder by name; then a line about the others is put into ``rest``."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name.casefold())
    except OSError as error:
        rest.append(f"({explain(error)})")
        return
    yield from entries[:_FOLDER_ENTRIES]
    if len(entries) > _FOLDER_ENTRIES:
        rest.append(f"… {len(entries) - _FOLDER_ENTRIES} more")


def _entry_name(entry: os.DirEntry[str]) -> str:
    return printable_name(entry.name) + ("/" if entry.is_dir(follow_symlinks=False) else "")


def _kind_of(head: bytes) -> str:
    for start, kind in (
        (b"\xff\xfe", "UTF-16 text"),
        (b"\xfe\xff", "UTF-16 text"),
        (b"\x7fELF", "program"),
        (b"PK\x03\x04", "zip archive"),
        (b"\x1f\x8b", "gzip"),
        (b"SQLite format 3", "SQLite database"),
        (b"%PDF", "PDF"),
    ):
        if head.startswith(start):
            return kind
    return "unknown type"


def _with_note(outcome: ToolOutcome, note: str | None) -> ToolOutcome:
    if note is None:
        return outcome
    return ToolOutcome(f"[{note}]\n{outcome.text}", outcome.images, view=outcome.view)
