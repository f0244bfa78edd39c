"""What could leave the context now without a summary, estimated by what would take it out (tui 4.6)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from musepi_tui.context.edits import EditReason, Edits
from musepi_tui.context.estimate import Estimator
from musepi_tui.context.livetail import LiveTail
from musepi_tui.context.prune import PruneOptions, stale_edits, threshold_edits
from musepi_tui.context.rescue import drop_images
from musepi_tui.context.shake import AGGRESSIVE, shake_plan


@dataclass(frozen=True, slots=True)
class Reclaimable:
    """What one way of shortening would free, in tokens: ``tokens`` now, ``rested`` once the conversation has
    rested so long that the provider's cache is gone.

    The ways overlap: what one took, another does not find any more.
    """

    name: str
    tokens: int
    rested: int


def find_reclaimable(tail: LiveTail, estimate: Estimator, options: PruneOptions) -> tuple[Reclaimable, ...]:
    """One row for each way: what a pass after the next turn blanks, what pruning takes, what ``/shake`` does.

    These are the figures of the passes themselves, with the options they run with.
    """
    warm = stale_edits(tail, estimate, options)
    rested = stale_edits(tail, estimate, replace(options, warm_suffix_tokens=None))
    old = _tokens_for(EditReason.THRESHOLD, threshold_edits(tail, estimate, options))
    shaken = shake_plan(tail, estimate, AGGRESSIVE).tokens_saved
    images = drop_images(tail).edits.tokens_saved
    return (
        *(
            Reclaimable(reason.value, _tokens_for(reason, warm), _tokens_for(reason, rested))
            for reason in (EditReason.SUPERSEDED, EditReason.USELESS)
        ),
        *_settled((EditReason.THRESHOLD, old), (EditReason.SHAKE, shaken), (EditReason.IMAGES, images)),
    )


def _settled(*rows: tuple[EditReason, int]) -> Sequence[Reclaimable]:
    """Rows of ways that do not ask how long the conversation has rested."""
    return [Reclaimable(reason.value, tokens, tokens) for reason, tokens in rows]


def _tokens_for(reason: EditReason, edits: Edits) -> int:
    return sum(count.tokens for count in edits.counts if count.reason is reason)
