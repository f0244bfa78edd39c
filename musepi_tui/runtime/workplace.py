"""Everything that works for the one session that is open."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from musepi_tui.base.errors import UsageError
from musepi_tui.providers.types import ToolSpec
from musepi_tui.runtime.approvals import Approvals
from musepi_tui.runtime.call_context import ToolKit
from musepi_tui.runtime.events import Notice
from musepi_tui.runtime.loop import Briefing, Turn
from musepi_tui.runtime.options import RuntimeOptions
from musepi_tui.runtime.project.context_files import find_context_files
from musepi_tui.runtime.project.system_prompt import render_system_prompt
from musepi_tui.runtime.queue import MessageQueue
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.tool_runner import ToolRunner
from musepi_tui.settings.schema import PermissionSettings
from musepi_tui.storage.artifacts import ArtifactStore
from musepi_tui.tools.approval.decide import Policy
from musepi_tui.tools.approval.rules import rule_problems
from musepi_tui.tools.paths import Workspace
from musepi_tui.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class _Equipment:
    """What is found out once, in a thread, before the first turn."""

    briefing: Briefing
    tools: ToolRegistry
    workspace: Workspace
    notes: tuple[str, ...]
    files: tuple[tuple[str, str], ...]


class Workplace:
    """Makes turns for a session: finds tools, instruction files and the system prompt when first needed.

    ``mode`` is the approval mode; setting it takes effect with the next call.
    """

    def __init__(
        self,
        services: Services,
        options: RuntimeOptions,
        cwd: Path,
        artifacts: ArtifactStore,
        approvals: Approvals,
    ) -> None:
        self.mode = options.mode or options.settings.values.permissions.mode
        self._services = services
        self._options = options
        self._cwd = cwd
        self._artifacts = artifacts
        self._approvals = approvals
        self._equipment: _Equipment | None = None
        self._runner: ToolRunner | None = None
        self._lock = asyncio.Lock()
        self._untold: tuple[str, ...] = ()

    @property
    def cwd(self) -> Path:
        """The folder tools work in."""
        return self._cwd

    async def prepare(self) -> None:
        """Finds everything out and tells what is odd; later calls do nothing."""
        await self.equip()
        notes, self._untold = self._untold, ()
        for note in notes:
            self._services.bus.emit(Notice("warning", note, "context"))

    async def equip(self) -> None:
        """Finds everything out, in a thread; from then on the context is measured with all it holds. Tells
        nothing yet, so that it can be done before the session is shown."""
        async with self._lock:
            if self._equipment is not None:
                return
            equipment = await asyncio.to_thread(self._equip)
            self._equipment = equipment
            kit = ToolKit(
                equipment.tools,
                equipment.workspace,
                self._artifacts,
                self._policy,
                self._environment,
                self._services.bus.emit,
            )
            services = self._services
            self._runner = ToolRunner(
                kit, services.history, self._approvals, services.children, services.clock
            )
        briefing = equipment.briefing
        services.tokens.set_overhead(briefing.system, briefing.tools, equipment.files)
        self._untold = equipment.notes

    async def briefing(self) -> Briefing:
        """What every request holds besides messages."""
        await self.prepare()
        if self._equipment is None:
            raise RuntimeError("prepare sets it")
        return self._equipment.briefing

    async def new_turn(self, queue: MessageQueue) -> Turn:
        """A turn that is ready to run; steering comes from ``queue``."""
        await self.prepare()
        if self._equipment is None or self._runner is None:
            raise RuntimeError("prepare sets both")
        # The model may have been changed since: the demo's scratch project is a root while it is used.
        roots = await asyncio.to_thread(self._services.gateway.extra_roots)
        workspace = self._equipment.workspace
        workspace.roots = tuple(dict.fromkeys((*workspace.roots, *(root.resolve() for root in roots))))
        return Turn(self._services, self._equipment.briefing, self._runner, queue)

    def _equip(self) -> _Equipment:
        options = self._options
        tools, notes = _find_tools(options.tools)
        found = find_context_files(options.paths.config, self._cwd)
        system = render_system_prompt(self._cwd, tools.names, found.files, options.clock.now_ms())
        self._services.gateway.warm_up()
        specs = tuple(ToolSpec(text.name, text.description, text.parameters) for text in tools.specs())
        paths = options.paths
        workspace = Workspace(self._cwd, own_folders=(paths.config, paths.data, paths.state))
        notes += found.notes + _rule_notes(options.settings.values.permissions)
        files = tuple((str(file.path), file.text) for file in found.files)
        return _Equipment(Briefing(system, specs), tools, workspace, notes, files)

    def _policy(self) -> Policy:
        permissions = self._services.settings.permissions
        return Policy(
            mode=self.mode,
            allow=permissions.allow,
            ask=permissions.ask,
            deny=permissions.deny,
            grants=self._approvals.grants,
        )

    def _environment(self) -> Mapping[str, str]:
        """What commands of the model can know about this run (TUI-7.43)."""
        services = self._services
        model, path = services.gateway.model, services.history.saver.path
        return {
            "MUSEPI": "1",
            "MUSEPI_SESSION_ID": services.history.header.id,
            "MUSEPI_SESSION_FILE": "" if path is None else os.fspath(path),
            "MUSEPI_PROVIDER": model.provider if model is not None else "",
            "MUSEPI_MODEL": model.id if model is not None else "",
            "MUSEPI_REASONING_LEVEL": services.gateway.thinking.value,
        }


def _rule_notes(permissions: PermissionSettings) -> tuple[str, ...]:
    """What is wrong with permission rules; they are ignored."""
    rules = (*permissions.allow, *permissions.ask, *permissions.deny)
    return tuple(
        f"The permission rule {problem.text!r} is ignored: {problem.reason}."
        for problem in rule_problems(rules)
    )


def _find_tools(wanted: tuple[str, ...] | None) -> tuple[ToolRegistry, tuple[str, ...]]:
    """The tools to offer, and notes. A name nobody knows offers none: a limit must not be widened by a
    typo."""
    tools = ToolRegistry.discover()
    if wanted is None:
        return tools, ()
    try:
        return tools.only(wanted), ()
    except UsageError as error:
        return ToolRegistry(()), (str(error),)
