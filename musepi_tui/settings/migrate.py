"""Retired keys and names, folded into the present ones (compaction 3.5). Pure."""

import re
from collections.abc import Mapping
from typing import cast

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.types import JsonValue

_STRATEGIES = {"context-full": "summary", "soft": "summary", "snap": "snapcompact"}
_KNOWN_STRATEGIES = frozenset({"summary", "snapcompact", "handoff", "shake", "off"})
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")
_COUNT = re.compile(r"\d+(?:_\d+)*")


@dataclass(frozen=True, slots=True)
class Migrated:
    """The values under present keys, and what was done to them: (key, sentence) pairs for people.

    ``outdated`` is true when a file with the old values should be written again.
    """

    values: dict[str, JsonValue]
    notes: tuple[tuple[str, str], ...] = ()
    outdated: bool = False


def migrate(raw: Mapping[str, JsonValue]) -> Migrated:
    """The settings object of one source under present keys. Idempotent; unknown keys stay as they are."""
    values: dict[str, JsonValue] = dict(raw)
    group = values.get("compaction")
    compaction: dict[str, JsonValue] = dict(group) if isinstance(group, dict) else {}
    if group is not None and not isinstance(group, dict):
        return Migrated(values)
    before = dict(compaction)
    notes: list[tuple[str, str]] = []
    if "compactionModel" in values:
        _move(compaction, "model", values.pop("compactionModel"), "compactionModel", notes)
    if "compactionModel" in compaction:
        _move(compaction, "model", compaction.pop("compactionModel"), "compaction.compactionModel", notes)
    if "remoteEnabled" in compaction:
        _move(compaction, "remote", compaction.pop("remoteEnabled"), "compaction.remoteEnabled", notes)
    _fold_threshold(compaction, notes)
    outdated = compaction != before or "compactionModel" in raw
    outdated = _fold_strategy(compaction, notes) or outdated
    if compaction or "compaction" in raw:
        values["compaction"] = cast("JsonValue", compaction)
    return Migrated(values, tuple(notes), outdated)


def _move(
    group: dict[str, JsonValue], name: str, value: JsonValue, old_key: str, notes: list[tuple[str, str]]
) -> None:
    group.setdefault(name, value)
    notes.append((old_key, f"{old_key} is now called compaction.{name}."))


def _fold_threshold(group: dict[str, JsonValue], notes: list[tuple[str, str]]) -> None:
    old = {name: group.pop(name) for name in ("thresholdTokens", "thresholdPercent") if name in group}
    if not old:
        return
    names = " and ".join(f"compaction.{name}" for name in old)
    tokens, percent = _positive(old.get("thresholdTokens")), _positive(old.get("thresholdPercent"))
    if not _is_explicit(group.get("threshold")) and (tokens or percent):
        group["threshold"] = tokens if tokens else f"{percent}%"
    now = group.get("threshold", "auto")
    notes.append(
        (f"compaction.{next(iter(old))}", f"{names} is replaced by compaction.threshold, here {now}.")
    )


def _positive(value: JsonValue) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        return None
    return int(value) if value == int(value) else value


def _is_explicit(threshold: JsonValue) -> bool:
    """Whether the value names a trigger point of its own; ``auto`` and what cannot be read do not."""
    if not isinstance(threshold, str):
        return _positive(threshold) is not None
    text = threshold.strip()
    if share := _PERCENT.fullmatch(text):
        return float(share[1]) > 0
    return bool(_COUNT.fullmatch(text)) and int(text) > 0


def _fold_strategy(group: dict[str, JsonValue], notes: list[tuple[str, str]]) -> bool:
    """Replaces retired names; true when the stored value should change. An unknown name stays in the file."""
    strategy = group.get("strategy")
    if not isinstance(strategy, str):
        return False
    if strategy in _STRATEGIES:
        group["strategy"] = _STRATEGIES[strategy]
        notes.append(("compaction.strategy", f'Strategy "{strategy}" is now called {_STRATEGIES[strategy]}.'))
        return True
    if strategy == "off" and group.get("enabled") is not False:
        group["enabled"] = False
        return True
    if strategy not in _KNOWN_STRATEGIES:
        group["strategy"] = "summary"
        notes.append(
            ("compaction.strategy", f'compaction.strategy "{strategy}" is unknown; summary is used.')
        )
    return False
