"""Rows of the model table, as written in JSON, into ``Model`` values (providers 9.1, 9.3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from musepi_tui.base.address import address_of
from musepi_tui.base.http import is_loopback_host
from musepi_tui.providers.types import Model, Prices

DEFAULT_WINDOW = 128_000
DEFAULT_MAX_TOKENS = 16_384
LOCAL_WINDOW = 8_192
"""Window of a local server nobody described: too small is safe, since local overflow is often silent."""
LOCAL_MAX_TOKENS = 8_192

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a row takes from its provider. ``compat`` are flags of the user, not those of the vendor."""

    provider: str
    api: str
    base_url: str
    source: str
    headers: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    compat: Mapping[str, Any] = field(default_factory=dict[str, Any])


def read_row(row: Row, defaults: Defaults) -> Model:
    """The model of one checked row; what it does not say comes from ``defaults``."""
    cost = row.get("cost")
    window = row.get("contextWindow", DEFAULT_WINDOW)
    base_url = row.get("baseUrl") or defaults.base_url
    return Model(
        provider=defaults.provider,
        id=row["id"],
        api=row.get("api") or defaults.api,
        base_url=base_url,
        name=row.get("name") or row["id"],
        context_window=window,
        max_tokens=row.get("maxTokens", min(DEFAULT_MAX_TOKENS, window)),
        input=tuple(row.get("input", ("text",))),
        reasoning=row.get("reasoning", False),
        thinking_levels=dict(row.get("thinkingLevelMap", {})),
        prices=read_prices(cast("Row", cost)) if isinstance(cost, Mapping) else None,
        headers={**defaults.headers, **row.get("headers", {})},
        compat={**defaults.compat, **row.get("compat", {})},
        context_promotion_target=row.get("contextPromotionTarget"),
        compaction_target=row.get("compactionTarget"),
        supports_server_compaction=row.get("supportsServerCompaction", False) is True,
        recommended=row.get("recommended", False) is True,
        source=defaults.source,
    )


def unlisted_model(model_id: str, defaults: Defaults) -> Model:
    """A model the table does not know, with the defaults of its provider.

    It may reason: whether to ask for that is the user's choice. A local server gets a small window.
    """
    local = is_loopback_host(address_of(defaults.base_url).host)
    row: dict[str, Any] = {"id": model_id}
    if local:
        row.update(contextWindow=LOCAL_WINDOW, maxTokens=LOCAL_MAX_TOKENS)
    return read_row(row, defaults)


def read_prices(cost: Row) -> Prices:
    """Prices of a ``cost`` object; a rate that is no number counts as 0."""
    tiers = cost.get("tiers")
    return Prices(
        input=_rate(cost, "input"),
        output=_rate(cost, "output"),
        cache_read=_rate(cost, "cacheRead"),
        cache_write=_rate(cost, "cacheWrite"),
        tiers=tuple(
            {name: float(value) for name, value in tier.items() if isinstance(value, int | float)}
            for tier in (cast("list[Row]", tiers) if isinstance(tiers, list) else [])
        ),
    )


def _rate(cost: Row, name: str) -> float:
    value = cost.get(name, 0)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def merge_row(base: Row, change: Row) -> dict[str, Any]:
    """``base`` with ``change`` laid over it, objects merged by name (``modelOverrides``)."""
    merged = dict(base)
    for name, value in change.items():
        below = merged.get(name)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[name] = merge_row(cast("Row", below), cast("Row", value))
        else:
            merged[name] = value
    return merged
