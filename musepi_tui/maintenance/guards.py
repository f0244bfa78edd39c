"""Whether a pass has achieved enough, and whether one could (compaction 2.5, 3.5)."""

from musepi_tui.context.threshold import should_compact
from musepi_tui.maintenance.facts import Facts


def has_headroom(facts: Facts) -> bool:
    """Whether the context is so far below the threshold that the next turn will not start a pass again."""
    return facts.threshold is None or facts.context_tokens <= facts.threshold.recovery_tokens


def is_over_threshold(facts: Facts) -> bool:
    """Whether a pass is due. An unknown window has no threshold."""
    return facts.threshold is not None and should_compact(facts.context_tokens, facts.threshold)


def is_overhead_too_large(facts: Facts) -> bool:
    """Whether what no pass can shrink reaches the threshold by itself."""
    return facts.threshold is not None and facts.other_tokens >= facts.threshold.tokens
