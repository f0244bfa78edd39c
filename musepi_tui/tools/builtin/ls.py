"""Lists a folder."""

import os
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from musepi_tui.base.errors import ToolError
from musepi_tui.base.text import group_digits, plural
from musepi_tui.tools.limits import cut_head
from musepi_tui.tools.paths import Workspace, explain, printable_name
from musepi_tui.tools.preview import argument, title
from musepi_tui.tools.types import ArtifactSink, Effect, ToolContext, ToolOutcome, ToolView
from musepi_tui.tools.validate import ToolArguments


class LsArguments(ToolArguments):
    """Arguments of ``ls``."""

    path: str = Field(default=".", description="default the project")
    limit: int = Field(default=500, ge=1, le=10_000)


class Ls:
    """Names in a folder, also hidden ones."""

    name = "ls"
    arguments = LsArguments
    effect = Effect.READ
    prompt = "tool-ls"

    def preview(self, arguments: Mapping[str, Any]) -> ToolView:
        """The folder."""
        return ToolView("list", title("ls", argument(arguments, "path", ".")), "")

    async def run(self, args: LsArguments, ctx: ToolContext) -> ToolOutcome:
        """Names in alphabetical order, case ignored."""
        return await ctx.in_thread(_list, ctx.workspace, ctx.artifacts, args)


TOOL = Ls()


def _list(workspace: Workspace, artifacts: ArtifactSink, args: LsArguments) -> ToolOutcome:
    folder = workspace.existing(args.path)
    if not folder.path.is_dir():
        raise ToolError(f"{folder.shown} is no folder. Use read.")
    try:
        with os.scandir(folder.path) as entries:
            names = sorted((_name(entry) for entry in entries), key=lambda name: (name.casefold(), name))
    except OSError as error:
        raise ToolError(f"{folder.shown} {explain(error)}.") from error
    text = "\n".join(names[: args.limit])
    part = cut_head(text)
    notes: list[str] = []
    if part.is_cut:
        artifact_id = artifacts.save("ls", "\n".join(names))
        notes.append(f"[lines 1-{part.last} of {part.total} shown; full output: artifact://{artifact_id}]")
    if len(names) > args.limit:
        notes.append(f"[{group_digits(args.limit)} of {group_digits(len(names))} entries shown; raise limit]")
    view = ToolView("list", title("ls", args.path), note=plural(len(names), "entry", "entries"))
    return ToolOutcome("\n".join((part.text or "The folder is empty.", *notes)), useless=not names, view=view)


def _name(entry: os.DirEntry[str]) -> str:
    """A name with what it is: a slash for folders, an arrow and the target for links."""
    name = printable_name(entry.name)
    if entry.is_symlink():
        try:
            return f"{name} -> {printable_name(os.readlink(entry.path))}"  # noqa: PTH115 - a name, not a path
        except OSError:
            return f"{name} -> ?"
    return f"{name}/" if entry.is_dir(follow_symlinks=False) else name
