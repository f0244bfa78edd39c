"""Searches the content of files."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from musepi_tui.base.errors import ToolError
from musepi_tui.base.process import ChildResult, ChildSpec, Ended, run_child
from musepi_tui.base.text import group_digits, plural
from musepi_tui.tools.limits import cut_head
from musepi_tui.tools.paths import ResolvedPath, Workspace
from musepi_tui.tools.preview import argument, title
from musepi_tui.tools.search import SearchEvents, layout, search_command
from musepi_tui.tools.search_worker import SearchJob
from musepi_tui.tools.types import Effect, ToolContext, ToolOutcome, ToolView
from musepi_tui.tools.validate import ToolArguments

TIME_LIMIT_S = 30.0


class GrepArguments(ToolArguments):
    """Arguments of ``grep``."""

    pattern: str = Field(description="regular expression")
    path: str = Field(default=".", description="file or folder, default the project")
    glob: str | None = Field(default=None, description="only these files, e.g. *.py")
    ignoreCase: bool = False
    literal: bool = Field(default=False, description="pattern is plain text")
    context: int = Field(default=0, ge=0, le=20, description="lines around each match")
    limit: int = Field(default=100, ge=1, le=2000, description="matches, default 100")


class Grep:
    """Finds lines with ripgrep, or without it in a child process of our own."""

    name = "grep"
    arguments = GrepArguments
    effect = Effect.READ
    prompt = "tool-grep"

    def preview(self, arguments: Mapping[str, Any]) -> ToolView:
        """The pattern and where."""
        return ToolView("list", _title(argument(arguments, "pattern"), argument(arguments, "path", ".")), "")

    async def run(self, args: GrepArguments, ctx: ToolContext) -> ToolOutcome:
        """The matching lines by file; never from files that may hold secrets unless named themselves."""
        workspace: Workspace = ctx.workspace
        if "\0" in args.pattern or "\n" in args.pattern:
            raise ToolError("The pattern contains NUL or a line break; lines are searched one by one.")
        start = await ctx.in_thread(workspace.existing, args.path)
        job = _job(workspace, start, args)
        argv, folder = await ctx.in_thread(search_command, job)
        events = SearchEvents(args.limit, lambda path: workspace.hides(folder / path, start.path))

        async def take(block: bytes) -> bool:
            return events.take(block)

        try:
            result = await run_child(ChildSpec(argv, folder, timeout_s=TIME_LIMIT_S), take)
        except OSError as error:
            raise ToolError(f"The search could not be started: {error}") from error
        _refuse_failure(result, events, args)
        text = layout(events.hits, lambda path: workspace.shown(folder / path), with_context=args.context > 0)
        return await ctx.in_thread(_outcome, ctx, args, text, (result, events))


TOOL = Grep()


def _job(workspace: Workspace, start: ResolvedPath, args: GrepArguments) -> SearchJob:
    top = next((root for root in workspace.roots if start.path.is_relative_to(root)), start.path)
    return SearchJob(
        pattern=args.pattern,
        start=str(start.path),
        top=str(top),
        glob=args.glob,
        ignore_case=args.ignoreCase,
        literal=args.literal,
        context=args.context,
    )


def _refuse_failure(result: ChildResult, events: SearchEvents, args: GrepArguments) -> None:
    """An engine that found nothing and complained did not understand the pattern or the glob."""
    failed = result.ended is Ended.EXIT and result.exit_code not in (0, 1)
    if failed and not events.hits:
        said = " ".join(" ".join(events.errors).split())[:500]
        hint = "" if args.literal else " To search for it as plain text, set literal."
        raise ToolError(f"The search for {args.pattern!r} failed: {said}.{hint}")


def _outcome(
    ctx: ToolContext, args: GrepArguments, text: str, found: tuple[ChildResult, SearchEvents]
) -> ToolOutcome:
    result, events = found
    notes: list[str] = []
    part = cut_head(text)
    if part.is_cut:
        artifact_id = ctx.artifacts.save("grep", text)
        notes.append(f"[lines 1-{part.last} of {part.total} shown; full output: artifact://{artifact_id}]")
    if events.is_full:
        notes.append(
            f"[stopped at {plural(args.limit, 'match', 'matches')}; narrow the search or raise limit]"
        )
    if result.ended is Ended.TIMEOUT:
        notes.append(f"[stopped after {TIME_LIMIT_S:g} s: these are not all matches]")
    if events.hidden:
        names = ", ".join(sorted(events.hidden)[:5])
        notes.append(f"[matches in files that may hold secrets are not shown: {names}]")
    shown = "\n".join((part.text or "No matches.", *notes))
    view = ToolView("list", _title(args.pattern, args.path), note=f"{group_digits(events.matches)} found")
    return ToolOutcome(shown, useless=not events.hits and not notes, view=view)


def _title(pattern: str, path: str) -> str:
    return title("grep", f"/{pattern}/", "" if path == "." else f"in {path}")
