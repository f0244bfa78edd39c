"""Shortens single messages of the live context, without a model (compaction 5, 2.5)."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from musepi_tui.base.errors import MusepiError, SessionError
from musepi_tui.context.edits import Edits
from musepi_tui.context.estimate import Estimator
from musepi_tui.context.livetail import NO_TAIL, LiveTail, extend_live_tail, read_live_tail
from musepi_tui.context.offload import OffloadPlan
from musepi_tui.context.prune import PruneOptions, is_cache_cold, stale_edits, threshold_edits
from musepi_tui.context.rescue import drop_images, truncation_plan
from musepi_tui.context.shake import AGGRESSIVE, GENTLE, ShakeConfig, dedup_plan, shake_plan
from musepi_tui.maintenance.facts import Outcome
from musepi_tui.maintenance.steps import Dedup, PruneStale, PruneThreshold, Rescue
from musepi_tui.maintenance.triggers import Tier
from musepi_tui.runtime.edits import Edit
from musepi_tui.runtime.events import ContextPruned
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.threads import Checkpoint, run_stoppable
from musepi_tui.tools.types import ArtifactSink

T = TypeVar("T")

ARTIFACT = "shake"
"""The name under which offloaded texts are stored."""

Seal: TypeAlias = Callable[[], None]
"""Called right before edits are stored; from then on it is too late to cancel."""

_Decide: TypeAlias = Callable[[LiveTail, Estimator, PruneOptions], Edits]
_Place: TypeAlias = tuple[int, str | None]
"""Generation and leaf of the history."""

_Basis: TypeAlias = tuple[_Place, Estimator, PruneOptions, bool]

NOTHING = Outcome(ok=True)
_LOG = logging.getLogger("musepi.maintenance")


@dataclass(frozen=True, slots=True)
class ShakeResult:
    """What a shake took out of the context; ``artifact_id`` None when nothing was stored."""

    tool_results: int = 0
    blocks: int = 0
    images: int = 0
    tokens_freed: int = 0
    artifact_id: str | None = None

    @property
    def regions(self) -> int:
        """Everything that moved to the artifact."""
        return self.tool_results + self.blocks


def prune_options(services: Services) -> PruneOptions:
    """What pruning may do now, by the settings."""
    compaction = services.settings.compaction
    return PruneOptions(
        supersede_reads=compaction.supersede_reads,
        drop_useless=compaction.drop_useless,
        now_ms=services.clock.now_ms(),
    )


class Pruner:
    """Decides on edits of the live context and stores them. Each method is one pass over it."""

    def __init__(self, services: Services, artifacts: ArtifactSink) -> None:
        self._services = services
        self._artifacts = artifacts
        self._tail: tuple[_Place, LiveTail] = (-1, None), NO_TAIL
        self._barren: dict[_Decide, _Basis | None] = {}

    async def perform(self, step: PruneStale | PruneThreshold | Dedup | Rescue) -> Outcome:
        """Does what the policy asks for."""
        match step:
            case PruneStale():
                return await self.prune_stale()
            case PruneThreshold():
                return await self.prune_threshold()
            case Dedup():
                return await self.dedup()
            case Rescue(tier, needed_tokens):
                return await self.rescue(tier, needed_tokens)

    async def prune_stale(self) -> Outcome:
        """Blanks superseded reads and useless results."""
        options = prune_options(self._services)
        if not options.supersede_reads and not options.drop_useless:
            return NOTHING
        return await self._prune(stale_edits, options)

    async def prune_threshold(self) -> Outcome:
        """Blanks old results."""
        return await self._prune(threshold_edits, prune_options(self._services))

    async def dedup(self) -> Outcome:
        """Moves results that a later one repeats to an artifact."""
        estimate = self._services.tokens.estimate
        return (await self._offload(lambda tail: dedup_plan(tail, estimate)))[0]

    async def shake(self, seal: Seal, *, by_hand: bool) -> Outcome:
        """The shake of a pass: gentle when it comes by itself, all that can be had when somebody asked."""
        return (await self._shake(AGGRESSIVE if by_hand else GENTLE, seal))[0]

    async def shake_all(self, seal: Seal) -> ShakeResult:
        """The shake a person asks for."""
        outcome, plan, artifact_id = await self._shake(AGGRESSIVE, seal)
        if not outcome.changed:
            return ShakeResult()
        counts = (plan.result_count, plan.block_count)
        return ShakeResult(*counts, tokens_freed=outcome.tokens_freed, artifact_id=artifact_id)

    async def drop_images(self, seal: Seal) -> ShakeResult:
        """Takes every picture out of the context."""
        found = await self._find(drop_images)
        seal()
        outcome = await self._store(found.edits)
        return ShakeResult(images=found.images if outcome.changed else 0, tokens_freed=outcome.tokens_freed)

    async def rescue(self, tier: Tier, needed_tokens: int) -> Outcome:
        """Frees more by force, after a pass that left the context ``needed_tokens`` too large."""
        match tier:
            case Tier.SHAKE:
                return (await self._shake(AGGRESSIVE))[0]
            case Tier.DROP_IMAGES:
                return await self._apply(lambda tail: drop_images(tail).edits)
            case Tier.TRUNCATE_TEXTS:
                estimate = self._services.tokens.estimate
                return (await self._offload(lambda tail: truncation_plan(tail, estimate, needed_tokens)))[0]

    async def _prune(self, decide: _Decide, options: PruneOptions) -> Outcome:
        """Blanks what ``decide`` finds. What found nothing is not asked again until something it depends on
        has changed: the end of a turn and the next prompt look at the same conversation."""
        estimate = self._services.tokens.estimate
        basis = self._basis(options)
        if basis is not None and self._barren.get(decide) == basis:
            return NOTHING
        edits = await self._find(lambda tail: decide(tail, estimate, options))
        if not edits:
            self._barren[decide] = self._basis(options)
        return await self._store(edits)

    def _basis(self, options: PruneOptions) -> _Basis | None:
        """All that pruning depends on, as far as it is known without a look at the session."""
        place, tail = self._tail
        if place != self._place():
            return None
        is_cold = is_cache_cold(tail, options.now_ms)
        return place, self._services.tokens.estimate, replace(options, now_ms=None), is_cold

    def _place(self) -> _Place:
        history = self._services.history
        return history.generation, history.tree.leaf_id

    async def _find(self, find: Callable[[LiveTail], T]) -> T:
        """What ``find`` makes of the live tail, worked out in a thread."""
        return await run_stoppable(lambda check: find(self._read_tail(check)))

    def _read_tail(self, check: Checkpoint) -> LiveTail:
        """The live tail. Passes over an unchanged one share it; one that only grew is added to."""
        place = self._place()
        before, tail = self._tail
        if before != place:
            path = self._services.history.read_live(check)
            tail = extend_live_tail(tail, path) or read_live_tail(path)
            self._tail = place, tail
        return tail

    async def _apply(self, find: Callable[[LiveTail], Edits]) -> Outcome:
        return await self._store(await self._find(find))

    async def _shake(
        self, config: ShakeConfig, seal: Seal = lambda: None
    ) -> tuple[Outcome, OffloadPlan, str | None]:
        estimate = self._services.tokens.estimate
        return await self._offload(lambda tail: shake_plan(tail, estimate, config), seal)

    async def _offload(
        self, find: Callable[[LiveTail], OffloadPlan], seal: Seal = lambda: None
    ) -> tuple[Outcome, OffloadPlan, str | None]:
        """Stores what leaves the context in an artifact first, then the edits that point to it."""
        plan = await self._find(find)
        if not plan:
            return NOTHING, plan, None
        artifact_id = await self._save(plan)
        seal()
        return await self._store(plan.edits(artifact_id)), plan, artifact_id

    async def _save(self, plan: OffloadPlan) -> str | None:
        """The id of the artifact; None when it cannot be stored. The session file has the texts anyway."""
        try:
            return await asyncio.to_thread(lambda: self._artifacts.save(ARTIFACT, plan.artifact_text()))
        except (OSError, MusepiError) as error:
            _LOG.warning("the texts of a shake could not be stored: %s", error)
            return None

    async def _store(self, edits: Edits) -> Outcome:
        """Commits the edits and tells of them, one event a kind; what cannot be written changes nothing."""
        if not edits:
            return NOTHING
        changes = [Edit(each.target_id, each.replacement, each.reason.value) for each in edits.changes]
        try:
            await self._services.history.commit_edits(changes)
        except SessionError as error:
            _LOG.warning("pruning could not be stored: %s", error)
            return NOTHING
        for count in edits.counts:
            self._services.bus.emit(ContextPruned(count.reason.value, count.entries, count.tokens))
        self._services.meter.refresh(only_changes=True)
        return Outcome(ok=True, changed=True, tokens_freed=edits.tokens_saved)
