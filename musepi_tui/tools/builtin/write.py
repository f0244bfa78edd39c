"""Writes a whole file."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from musepi_tui.base.errors import ToolError
from musepi_tui.base.files import atomic_write
from musepi_tui.base.text import group_digits
from musepi_tui.tools.diff import unified_diff
from musepi_tui.tools.matching import BYTE_ORDER_MARK, line_ending
from musepi_tui.tools.paths import Freshness, ResolvedPath, Workspace, digest_of, explain, open_regular
from musepi_tui.tools.preview import argument, language_of, shown_body, title
from musepi_tui.tools.types import Effect, ToolContext, ToolOutcome, ToolView
from musepi_tui.tools.validate import ToolArguments

_DIFF_BYTES = 1_000_000
"""Old or new content above this gets no diff: nobody reads it, and the session stores it."""


class WriteArguments(ToolArguments):
    """Arguments of ``write``."""

    path: str
    content: str = Field(description="the whole new content")


class Write:
    """Creates a file or replaces one the model has read, atomically."""

    name = "write"
    arguments = WriteArguments
    effect = Effect.WRITE
    prompt = "tool-write"

    def preview(self, arguments: Mapping[str, Any]) -> ToolView:
        """The content as far as it came."""
        path = argument(arguments, "path")
        return _view(path, argument(arguments, "content", ""))

    async def run(self, args: WriteArguments, ctx: ToolContext) -> ToolOutcome:
        """Writes under the lock of the path, so that no other write of ours comes in between."""
        workspace: Workspace = ctx.workspace
        resolved = await ctx.in_thread(workspace.resolve, args.path)
        async with workspace.lock_for(resolved.path):
            return await ctx.in_thread(_write, workspace, resolved, args)


TOOL = Write()


def _write(workspace: Workspace, resolved: ResolvedPath, args: WriteArguments) -> ToolOutcome:
    old = _old_content(workspace, resolved)
    try:
        content = _like(old, args.content).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(f"The content for {resolved.shown} is no valid Unicode text: {error}.") from error
    try:
        _make_parents(resolved)
        atomic_write(resolved.path, content)
        workspace.note_read(resolved.path, digest_of(content))
    except OSError as error:
        raise ToolError(f"{resolved.shown} {explain(error)}. Nothing was written.") from error
    details: dict[str, Any] = {}
    if old is not None and max(len(old), len(content)) <= _DIFF_BYTES:
        diff = unified_diff(old.decode("utf-8", "replace"), content.decode("utf-8"))
        details = {"diff": diff.text, "added": diff.added, "removed": diff.removed}
    text = f"Wrote {group_digits(len(content))} bytes to {resolved.shown}"
    return ToolOutcome(text, details=details, view=_view(resolved.shown, args.content))


def _old_content(workspace: Workspace, resolved: ResolvedPath) -> bytes | None:
    """What would be replaced, None for a new file. Raises ``ToolError`` when the model does not know it."""
    if not os.path.lexists(resolved.path):
        return None
    with open_regular(resolved) as file:
        content = file.read()
    match workspace.freshness(resolved.path):
        case Freshness.UNREAD:
            raise ToolError(f"{resolved.shown} exists and you have not read it. Read it first, or use edit.")
        case Freshness.CHANGED:
            raise ToolError(
                f"{resolved.shown} was changed on disk since you last read it. Read it again, then write."
            )
        case Freshness.FRESH:
            return content


def _like(old: bytes | None, content: str) -> str:
    """The content with the byte-order mark and the line ending of the file it replaces."""
    if not old:
        return content
    before = old.decode("utf-8", "replace")
    if line_ending(before) == "\r\n":
        content = content.replace("\r\n", "\n").replace("\n", "\r\n")
    if before.startswith(BYTE_ORDER_MARK) and not content.startswith(BYTE_ORDER_MARK):
        content = BYTE_ORDER_MARK + content
    return content


def _make_parents(resolved: ResolvedPath) -> None:
    parent: Path = resolved.path.parent
    if parent.is_dir():
        return
    if not resolved.inside:
        raise ToolError(f"The folder {parent} does not exist; folders are only made inside the project.")
    parent.mkdir(parents=True, exist_ok=True)


def _view(path: str, content: str) -> ToolView:
    return ToolView("code", title("write", path), shown_body(content), language_of(path))
