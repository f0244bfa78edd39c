"""What a running tool is given, and what all calls of a session share."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from musepi_tui.base.clock import Clock
from musepi_tui.runtime.events import Event, ToolProgress
from musepi_tui.tools.approval.decide import Policy
from musepi_tui.tools.paths import Workspace
from musepi_tui.tools.registry import ToolRegistry
from musepi_tui.tools.types import ArtifactSink

P = ParamSpec("P")
T = TypeVar("T")

PROGRESS_EVERY_S = 0.1
"""Shortest time between two progress events of one call (TUI-7.42)."""


@dataclass(frozen=True, slots=True)
class ToolKit:
    """Tools and where they work. ``policy`` gives the approval rules and ``environment`` the variables for
    children as they are at the moment of a call."""

    tools: ToolRegistry
    workspace: Workspace
    artifacts: ArtifactSink
    policy: Callable[[], Policy]
    environment: Callable[[], Mapping[str, str]]
    emit: Callable[[Event], None]


class CallContext:
    """The ``ToolContext`` of one call."""

    def __init__(self, call_id: str, kit: ToolKit, clock: Clock) -> None:
        self._call_id = call_id
        self._kit = kit
        self._clock = clock
        self._environment = kit.environment()
        self._shown_at = -PROGRESS_EVERY_S
        self._waiting: str | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def workspace(self) -> Workspace:
        """Where the tool works."""
        return self._kit.workspace

    @property
    def artifacts(self) -> ArtifactSink:
        """Where full outputs go."""
        return self._kit.artifacts

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables for children of the tool."""
        return self._environment

    def progress(self, text: str) -> None:
        """Shows the output so far: at once, or a moment later when the last one was just shown."""
        if self._closed:
            return
        self._waiting = text
        if self._timer is not None:
            return
        wait_s = self._shown_at + PROGRESS_EVERY_S - self._clock.monotonic()
        if wait_s <= 0:
            self._show()
        else:
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._show)

    async def in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs blocking work in a thread."""
        return await asyncio.to_thread(function, *args, **kwargs)

    def close(self) -> None:
        """No progress is shown any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _show(self) -> None:
        self._timer = None
        if self._waiting is None:
            return
        self._shown_at = self._clock.monotonic()
        self._kit.emit(ToolProgress(self._call_id, self._waiting))
        self._waiting = None
