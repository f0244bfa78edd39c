"""Where maintenance starts, and what is kept free for it (compaction 3.3, 3.5)."""

import math
import re
from enum import StrEnum
from fractions import Fraction

from musepi_tui.base.dataclass import dataclass

DEFAULT_RESERVE_TOKENS = 16_384
"""Reserve where the setting is unset (compaction 3.3): room for a long answer and a summary of it."""

RECOVERY_BAND = Fraction(8, 10)
"""Share of the threshold a pass must get below (compaction 2.5). At 1 a pass that frees a few tokens lands
just under the line and the next turn starts another pass: an endless loop."""

_PERCENT = re.compile(r"([+-]?\d{1,20}(?:\.\d{1,20})?)\s*%", re.ASCII)
_DIGITS = re.compile(r"\d[\d_]{0,40}", re.ASCII)
_AUTO_WORDS = frozenset({"", "auto", "default"})


class ThresholdKind(StrEnum):
    """How the threshold is given."""

    AUTO = "auto"
    PERCENT = "percent"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True)
class ThresholdSetting:
    """A parsed ``compaction.threshold``. ``amount`` is a percentage or tokens, 0 for auto.

    ``invalid_raw`` is the text nobody could read (then the kind is auto); it must be reported once.
    """

    kind: ThresholdKind = ThresholdKind.AUTO
    amount: Fraction = Fraction(0)
    invalid_raw: str | None = None


@dataclass(frozen=True, slots=True)
class Threshold:
    """The threshold for one window, in tokens. ``clamped``: the setting did not fit the window."""

    tokens: int
    clamped: bool
    kind: ThresholdKind

    @property
    def recovery_tokens(self) -> int:
        """What a pass must get below to count as done."""
        return math.floor(self.tokens * RECOVERY_BAND)


def parse_threshold(raw: str | float | None) -> ThresholdSetting:
    """The setting as a value: a number or digits are tokens, ``85%`` a share, ``auto`` and "" automatic.

    Amounts that are not above zero mean automatic; text of no known form too, with ``invalid_raw`` set.
    """
    if raw is None:
        return ThresholdSetting()
    if isinstance(raw, bool):
        return ThresholdSetting(invalid_raw=str(raw).lower())
    if isinstance(raw, int | float):
        return _setting(ThresholdKind.TOKENS, Fraction(raw) if math.isfinite(raw) else Fraction(0))
    return _parse_text(raw)


def resolve_threshold(setting: ThresholdSetting, window: int, reserve_tokens: int | None) -> Threshold:
    """The threshold in tokens for a window of ``window`` tokens (>= 1): always in ``[0, window - 1]``."""
    kind = setting.kind
    if kind is ThresholdKind.TOKENS:
        tokens = min(max(1, min(math.floor(setting.amount), window - 1)), window - 1)
        return Threshold(tokens, setting.amount > window - 1, kind)
    if kind is ThresholdKind.PERCENT:
        share = min(max(setting.amount, Fraction(1)), Fraction(99))
        return Threshold(math.floor(window * share / 100), share != setting.amount, kind)
    tokens = max(0, min(window - 1, window - budget_reserve(window, reserve_tokens)))
    return Threshold(tokens, clamped=False, kind=kind)


def budget_reserve(window: int, reserve_tokens: int | None) -> int:
    """Tokens kept free in a window: the setting (or 16,384), at least 15 % of the window.

    Where that would take the whole window, or half of it while the setting is unset, 15 % alone. None is the
    unset setting; an explicit 16,384 is honoured.
    """
    effective = _effective_reserve(window, reserve_tokens)
    return _proportional_reserve(window) if _takes_too_much(window, reserve_tokens) else effective


def summary_reserve(window: int | None, reserve_tokens: int | None) -> int:
    """The reserve that summary lengths are shares of (``R`` of compaction 6.2)."""
    if window is not None and _takes_too_much(window, reserve_tokens):
        return _proportional_reserve(window)
    return DEFAULT_RESERVE_TOKENS if reserve_tokens is None else reserve_tokens


def should_compact(tokens: int, threshold: Threshold) -> bool:
    """Whether a context of that size is over the threshold. Exactly at it is not over."""
    return tokens > threshold.tokens


def _parse_text(raw: str) -> ThresholdSetting:
    text = raw.strip().lower()
    if text in _AUTO_WORDS:
        return ThresholdSetting()
    if (percent := _PERCENT.fullmatch(text)) is not None:
        return _setting(ThresholdKind.PERCENT, Fraction(percent[1]))
    if _DIGITS.fullmatch(text) is not None:
        return _setting(ThresholdKind.TOKENS, Fraction(text.replace("_", "")))
    return ThresholdSetting(invalid_raw=raw)


def _effective_reserve(window: int, reserve_tokens: int | None) -> int:
    return max(window * 15 // 100, DEFAULT_RESERVE_TOKENS if reserve_tokens is None else reserve_tokens)


def _takes_too_much(window: int, reserve_tokens: int | None) -> bool:
    effective = _effective_reserve(window, reserve_tokens)
    return effective >= window or (reserve_tokens is None and 2 * effective >= window)


def _proportional_reserve(window: int) -> int:
    return max(1, window * 15 // 100)


def _setting(kind: ThresholdKind, amount: Fraction) -> ThresholdSetting:
    return ThresholdSetting(kind, amount) if amount > 0 else ThresholdSetting()
