"""``musepi models list``: the models that can be chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from musepi_tui.base.text import short_number
from musepi_tui.cli.parser import Parser
from musepi_tui.cli.tables import print_error, print_json, print_line, print_table
from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.providers.types import Model, Prices
from musepi_tui.storage.paths import find_paths


@dataclass(frozen=True, slots=True)
class _Row:
    model: Model
    available: bool


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Lists models, those without a key only with ``--all``; exit code 1 for a broken models file."""
    parser = Parser(prog="musepi models", description="The models musepi knows.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="list models")
    listing.add_argument("search", nargs="?", default="", help="only ids that contain this")
    listing.add_argument("--all", action="store_true", help="also those without a key")
    listing.add_argument("--json", action="store_true")
    parsed = parser.parse_args(arguments)
    registry = ModelRegistry.load(find_paths(environ).config, environ)
    usable = {model.key for model in registry.available()}
    word = parsed.search.lower()
    rows = [_Row(model, model.key in usable) for model in registry.models if word in model.key.lower()]
    if parsed.json:
        print_json([_as_json(row) for row in rows])
    else:
        _print([row for row in rows if row.available or parsed.all], hidden=len(rows))
    for problem in registry.problems:
        print_error(problem)
    return 1 if registry.problems else 0


def _print(rows: list[_Row], *, hidden: int) -> None:
    hidden -= len(rows)
    if rows:
        heading = ("MODEL", "CONTEXT", "OUTPUT", "READS", "THINKS", "$/M IN", "$/M OUT", "KEY")
        print_table([heading, *(_as_text(row) for row in rows)])
    if hidden:
        print_line(f"{hidden} more without a key: musepi models list --all")


def _as_text(row: _Row) -> tuple[str, ...]:
    model, prices = row.model, row.model.prices
    return (
        model.key,
        "?" if model.context_window is None else short_number(model.context_window),
        short_number(model.max_tokens),
        "+".join(model.input),
        "yes" if model.reasoning else "no",
        "" if prices is None else f"{prices.input:g}",
        "" if prices is None else f"{prices.output:g}",
        "yes" if row.available else "no",
    )


def _as_json(row: _Row) -> dict[str, Any]:
    model = row.model
    return {
        "provider": model.provider,
        "id": model.id,
        "name": model.name or model.id,
        "api": model.api,
        "contextWindow": model.context_window,
        "maxTokens": model.max_tokens,
        "input": list(model.input),
        "reasoning": model.reasoning,
        "cost": _prices_json(model.prices),
        "available": row.available,
        "source": model.source,
    }


def _prices_json(prices: Prices | None) -> dict[str, float] | None:
    if prices is None:
        return None
    return {
        "input": prices.input,
        "output": prices.output,
        "cacheRead": prices.cache_read,
        "cacheWrite": prices.cache_write,
    }
