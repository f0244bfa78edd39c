"""Thinking levels a model knows, and the words of its vendor for them (providers 1.4, 9.1)."""

from musepi_tui.providers.types import Model, ThinkingLevel

ORDER = tuple(ThinkingLevel)
_NAMED_ONLY = frozenset({ThinkingLevel.XHIGH, ThinkingLevel.MAX})
BUDGET_TOKENS = {
    ThinkingLevel.MINIMAL: 1024,
    ThinkingLevel.LOW: 2048,
    ThinkingLevel.MEDIUM: 8192,
    ThinkingLevel.HIGH: 16384,
    ThinkingLevel.XHIGH: 32768,
    ThinkingLevel.MAX: 32768,
}
"""Level to ``budget_tokens`` for models that take a budget; the last two are ours: the table ends at high."""


def supported_levels(model: Model) -> tuple[ThinkingLevel, ...]:
    """The levels to offer, lowest first; only ``off`` for a model that does not reason."""
    if not model.reasoning:
        return (ThinkingLevel.OFF,)
    return tuple(level for level in ORDER if _is_supported(model, level))


def clamp_level(model: Model, level: ThinkingLevel) -> ThinkingLevel:
    """The level itself when the model has it, else the next higher one, else the next lower one."""
    levels = supported_levels(model)
    if level in levels:
        return level
    position = ORDER.index(level)
    higher = [known for known in levels if ORDER.index(known) > position]
    return higher[0] if higher else levels[-1]


def vendor_word(model: Model, level: ThinkingLevel) -> str | None:
    """What the vendor calls ``level``; None for ``off`` when it has no word."""
    named = model.thinking_levels.get(level.value)
    if named is not None:
        return named
    return None if level is ThinkingLevel.OFF else level.value


def _is_supported(model: Model, level: ThinkingLevel) -> bool:
    if level.value in model.thinking_levels:
        return model.thinking_levels[level.value] is not None
    return level not in _NAMED_ONLY
