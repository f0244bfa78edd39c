"""The extensions of a running program: loading them, and one method for each hook."""

import asyncio
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from musepi_tui.extensions.api import ExtensionApi
from musepi_tui.extensions.discovery import Loaded, find_extensions, load_all
from musepi_tui.extensions.dispatch import Dispatcher, Failure
from musepi_tui.extensions.points import (
    USUAL_LIMIT_S,
    BeforeCompact,
    BeforeCompactResult,
    BeforeSwitch,
    BeforeTree,
    BeforeTreeResult,
    BranchSummaryResult,
    CancelResult,
    Compacted,
    Compacting,
    CompactingResult,
    CompactionResult,
    Hook,
    Payload,
    Switched,
    TreeMoved,
)

_Decision = TypeVar("_Decision", BeforeCompactResult, BeforeTreeResult, CancelResult)


@dataclass(frozen=True, slots=True)
class CompactAnswer:
    """What the extensions made of a compaction that is about to run. ``by`` names the one that stopped or
    supplied it."""

    cancelled: bool = False
    compaction: CompactionResult | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class CompactingAnswer:
    """What the extensions add to a summary request: the last instruction given, all lines, all data."""

    prompt: str | None = None
    context: tuple[str, ...] = ()
    preserve_data: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class TreeAnswer:
    """What the extensions made of a move within the session. ``by`` names the one that stopped it or supplied
    the summary."""

    cancelled: bool = False
    summary: BranchSummaryResult | None = None
    by: str | None = None


class Extensions:
    """The loaded extensions. Without any, every method returns at once."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self.loaded: tuple[Loaded, ...] = ()

    async def load(self, folder: Path, named: Sequence[str] = (), *, only_named: bool = False) -> None:
        """Finds, loads and activates them; whoever fails is reported and left out.

        Raises ``UsageError`` for a named path that is not there.
        """
        found = await asyncio.to_thread(find_extensions, folder, named, only_named=only_named)
        if not found:
            return
        loaded, problems = await asyncio.to_thread(load_all, found)
        for problem in problems:
            self._dispatcher.report(Failure(problem.name, "load", f"{problem.origin}: {problem.text}"))
        self.loaded = tuple([each for each in loaded if await self._activate(each)])

    def listens(self, hook: Hook) -> bool:
        """Whether any extension listens to a hook."""
        return self._dispatcher.listens(hook)

    async def before_compact(self, event: BeforeCompact) -> CompactAnswer:
        """The first cancel stops the chain; else the last compaction supplied counts."""
        by, result = await self._decide(Hook.BEFORE_COMPACT, event, BeforeCompactResult)
        return CompactAnswer(result.cancel, result.compaction, by)

    async def compacting(self, event: Compacting) -> CompactingAnswer:
        """The last instruction counts, lines are joined, data is merged, later over earlier."""
        prompt: str | None = None
        context: list[str] = []
        data: dict[str, Any] = {}
        async for _, result in self._dispatcher.answers(Hook.COMPACTING, event):
            if isinstance(result, CompactingResult):
                prompt = result.prompt if result.prompt is not None else prompt
                context += result.context
                data |= result.preserve_data
        return CompactingAnswer(prompt, tuple(context), data)

    async def compacted(self, event: Compacted) -> None:
        """A compaction was stored."""
        await self._dispatcher.tell(Hook.COMPACT, event)

    async def before_tree(self, event: BeforeTree) -> TreeAnswer:
        """The first cancel stops the chain; else the last summary supplied counts."""
        by, result = await self._decide(Hook.BEFORE_TREE, event, BeforeTreeResult)
        return TreeAnswer(result.cancel, result.summary, by)

    async def tree_moved(self, event: TreeMoved) -> None:
        """The session goes on from another entry."""
        await self._dispatcher.tell(Hook.TREE, event)

    async def before_switch(self, event: BeforeSwitch) -> str | None:
        """The extension that stops the switch; None when none does."""
        by, _ = await self._decide(Hook.BEFORE_SWITCH, event, CancelResult)
        return by

    async def switched(self, event: Switched) -> None:
        """Another session is open."""
        await self._dispatcher.tell(Hook.SWITCH, event)

    async def _decide(
        self, hook: Hook, event: Payload, kind: type[_Decision]
    ) -> tuple[str | None, _Decision]:
        """The answer that counts and whose it is: the first that cancels, else the last that says anything.

        ``kind()`` is the answer that says nothing; it is nobody's when all have said that.
        """
        by, decision = None, kind()
        async for name, result in self._dispatcher.answers(hook, event):
            if not isinstance(result, kind):
                continue
            if result.cancel:
                return name, kind(cancel=True)
            if result != kind():
                by, decision = name, result
        return by, decision

    async def _activate(self, extension: Loaded) -> bool:
        api = ExtensionApi(extension.name, partial(self._dispatcher.register, extension.name))
        try:
            async with asyncio.timeout(USUAL_LIMIT_S):
                answer = await asyncio.to_thread(extension.activate, api)
                if inspect.isawaitable(answer):
                    await answer
        except TimeoutError:
            self._dispatcher.report(
                Failure(extension.name, "activate", f"took more than {USUAL_LIMIT_S:g} s")
            )
        except (SystemExit, Exception) as error:  # noqa: BLE001 - extension dispatch is one of the three borders
            text = f"{extension.origin}: {type(error).__name__}: {error}"
            self._dispatcher.report(Failure(extension.name, "activate", text))
        else:
            return True
        return False
