"""Runs a shell command."""

import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from musepi_tui.base.errors import ToolError
from musepi_tui.base.process import ChildResult, ChildSpec, Ended, child_environment, find_program, run_child
from musepi_tui.base.process_tree import Running
from musepi_tui.tools.output import CommandOutput, ShownOutput
from musepi_tui.tools.paths import Workspace, explain
from musepi_tui.tools.preview import argument, command_title
from musepi_tui.tools.types import Effect, ToolContext, ToolOutcome, ToolView
from musepi_tui.tools.validate import ToolArguments

if TYPE_CHECKING:
    import asyncio

DEFAULT_TIMEOUT_S = 300
PROGRESS_EVERY_S = 0.05
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class BashArguments(ToolArguments):
    """Arguments of ``bash``."""

    command: str
    timeout: float = Field(default=DEFAULT_TIMEOUT_S, ge=1, le=3600, description="seconds, default 300")
    cwd: str | None = Field(default=None, description="folder to run in")
    env: dict[str, str] | None = None


class Bash:
    """Runs a command in a new shell: no terminal, no standard input, its whole process tree ended with it."""

    name = "bash"
    arguments = BashArguments
    effect = Effect.EXEC
    prompt = "tool-bash"

    def preview(self, arguments: Mapping[str, Any]) -> ToolView:
        """The command alone."""
        title, note = command_title(argument(arguments, "command"))
        return ToolView("tail", title, "", note=note)

    async def run(self, args: BashArguments, ctx: ToolContext) -> ToolOutcome:
        """The merged output; an exit code other than 0 makes it an error result."""
        cwd = await ctx.in_thread(_working_folder, ctx.workspace, args.cwd)
        spec = _spec(args, cwd, ctx.environment)
        output = CommandOutput(ctx.artifacts, self.name)
        progress = _Progress(output, ctx)

        async def take(block: bytes) -> bool:
            if output.is_spilled:
                await ctx.in_thread(output.add, block)
            else:
                output.add(block)
            progress.announce()
            return True

        try:
            result = await run_child(spec, take)
        except (OSError, ValueError) as error:
            raise ToolError(f"The command could not be started: {error}") from error
        finally:
            progress.close()
            output.close()
        shown = await ctx.in_thread(output.finish)
        return _outcome(args, result, shown)


TOOL = Bash()


class _Progress:
    """Shows the end of the output at most every ``PROGRESS_EVERY_S``: it costs more than taking a block."""

    def __init__(self, output: CommandOutput, ctx: ToolContext) -> None:
        self._output = output
        self._ctx = ctx
        self._timer: asyncio.TimerHandle | None = None

    def announce(self) -> None:
        """There is more output."""
        import asyncio  # deferred: describing the tool needs no event loop

        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PROGRESS_EVERY_S, self._show)

    def close(self) -> None:
        """The command is over; its result shows the rest."""
        if self._timer is not None:
            self._timer.cancel()

    def _show(self) -> None:
        self._timer = None
        self._ctx.progress(self._output.progress())


def _working_folder(workspace: Workspace, cwd: str | None) -> Path:
    if cwd is None:
        return workspace.cwd
    resolved = workspace.resolve(cwd)
    if not resolved.path.is_dir():
        raise ToolError(f"cwd: {resolved.shown} is no folder.")
    if not os.access(resolved.path, os.X_OK):
        raise ToolError(f"cwd: {resolved.shown} {explain(PermissionError(13, 'denied'))}.")
    return resolved.path


def _spec(args: BashArguments, cwd: Path, session_variables: Mapping[str, str]) -> ChildSpec:
    if "\0" in args.command:
        raise ToolError("The command contains a NUL character.")
    if not args.command.strip():
        raise ToolError("The command is empty.")
    for name, value in (args.env or {}).items():
        if not _VARIABLE_NAME.fullmatch(name) or "\0" in value:
            raise ToolError(f"env: {name!r} is no usable variable name, or its value contains NUL.")
    shell = find_program("bash") or "/bin/sh"
    return ChildSpec(
        argv=(shell, "-c", args.command),
        cwd=cwd,
        env=child_environment(os.environ, {**session_variables, **(args.env or {})}),
        timeout_s=args.timeout,
        keep_background=True,
    )


def _outcome(args: BashArguments, result: ChildResult, shown: ShownOutput) -> ToolOutcome:
    ending = _ending(args, result)
    text = "\n".join(part for part in (shown.text or "(no output)", *shown.notes) if part)
    details: dict[str, Any] = {"exitCode": result.exit_code}
    if shown.artifact_id is not None:
        details["artifactId"] = shown.artifact_id
    title, more = command_title(args.command)
    body = None if shown.coloured is None else "\n".join((shown.coloured, *shown.notes, *ending))
    return ToolOutcome(
        "\n".join((text, *ending)),
        is_error=result.ended is not Ended.EXIT or result.exit_code != 0,
        details=details,
        view=ToolView("tail", title, body, note=more),
    )


def _ending(args: BashArguments, result: ChildResult) -> tuple[str, ...]:
    """What is said after the output: how it ended, unless well, and what still runs."""
    match result.ended:
        case Ended.TIMEOUT:
            return (f"timed out after {args.timeout:g} s",)
        case Ended.OUTPUT_LIMIT | Ended.ENOUGH:
            return ("ended: the command wrote more than 256 MiB",)
        case Ended.EXIT:
            pass
    ending: list[str] = []
    if result.exit_code > 0:
        ending.append(f"exit code {result.exit_code}")
    elif result.exit_code < 0:
        ending.append(f"ended by {_signal_name(-result.exit_code)}")
    if result.still_running:
        ending.append(f"still running: {', '.join(map(_describe, result.still_running[:10]))}")
    return tuple(ending)


def _describe(process: Running) -> str:
    return f"{process.pid} {process.name}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
