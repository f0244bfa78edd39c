"""Finds files by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from musepi_tui.base.errors import ToolError
from musepi_tui.base.text import group_digits, plural
from musepi_tui.tools.limits import cut_head
from musepi_tui.tools.paths import Workspace
from musepi_tui.tools.preview import argument, title
from musepi_tui.tools.types import ArtifactSink, Effect, ToolContext, ToolOutcome, ToolView
from musepi_tui.tools.validate import ToolArguments
from musepi_tui.tools.walker import Found, Walk, matcher

TIME_LIMIT_S = 5.0


class FindArguments(ToolArguments):
    """Arguments of ``find``."""

    pattern: str = Field(description="glob, e.g. *.py or src/**/test_*.py")
    path: str = Field(default=".", description="folder, default the project")
    limit: int = Field(default=1000, ge=1, le=10_000, description="paths, default 1000")
    sort: Literal["path", "mtime"] = Field(default="path", description="mtime: newest first")


class Find:
    """Lists files and folders whose path matches a glob."""

    name = "find"
    arguments = FindArguments
    effect = Effect.READ
    prompt = "tool-find"

    def preview(self, arguments: Mapping[str, Any]) -> ToolView:
        """The pattern and where."""
        return ToolView("list", _title(argument(arguments, "pattern"), argument(arguments, "path", ".")), "")

    async def run(self, args: FindArguments, ctx: ToolContext) -> ToolOutcome:
        """Paths relative to the working folder, folders with a slash."""
        return await ctx.in_thread(_find, ctx.workspace, ctx.artifacts, args)


TOOL = Find()


def _find(workspace: Workspace, artifacts: ArtifactSink, args: FindArguments) -> ToolOutcome:
    start = workspace.existing(args.path).path
    if start == Path(start.anchor):
        raise ToolError("The whole file system is not searched; give a folder in it.")
    if not start.is_dir():
        raise ToolError(f"{args.path} is no folder.")
    top = next((root for root in workspace.roots if start.is_relative_to(root)), start)
    walk = Walk(str(start), str(top), TIME_LIMIT_S)
    is_wanted = matcher(args.pattern)
    found: list[Found] = []
    is_full = False
    for entry in walk.entries():
        if is_wanted(entry.relative):
            is_full = args.sort == "path" and len(found) >= args.limit
            if is_full:
                break
            found.append(entry)
    paths = _in_order(workspace, found, args)
    notes: list[str] = []
    part = cut_head("\n".join(paths))
    if part.is_cut:
        artifact_id = artifacts.save("find", "\n".join(paths))
        notes.append(f"[lines 1-{part.last} of {part.total} shown; full output: artifact://{artifact_id}]")
    if is_full or len(found) > args.limit:
        notes.append(f"[stopped at {plural(args.limit, 'path')}; narrow the pattern or raise limit]")
    if walk.incomplete:
        notes.append("[the folder is too large to be walked completely: these are not all matches]")
    text = "\n".join((part.text or "No file matches.", *notes))
    view = ToolView("list", _title(args.pattern, args.path), note=f"{group_digits(len(paths))} found")
    return ToolOutcome(text, useless=not paths and not notes, view=view)


def _in_order(workspace: Workspace, found: list[Found], args: FindArguments) -> list[str]:
    if args.sort == "mtime":
        found = sorted(found, key=lambda entry: (-_modified_ns(entry.path), entry.relative))[: args.limit]
    else:
        found = sorted(found, key=lambda entry: entry.relative)
    return [workspace.shown(Path(entry.path)) + ("/" if entry.is_folder else "") for entry in found]


def _modified_ns(path: str) -> int:
    try:
        return Path(path).lstat().st_mtime_ns
    except OSError:
        return 0


def _title(pattern: str, path: str) -> str:
    return title("find", pattern, "" if path == "." else f"in {path}")
