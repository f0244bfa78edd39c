"""The built-in table, ``models.json``: the vendors and the models they offer (providers 9.4, 10)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class Vendor:
    """One provider of the table. ``env`` are the variables of its key, ``bearer_env`` those of a token.

    ``hosts`` and ``ports`` (of loopback addresses) tell it when only an address is known. ``models`` are the
    rows as written, in the shape of a user's models.json.
    """

    id: str
    base_url: str
    api: str
    env: tuple[str, ...] = ()
    bearer_env: tuple[str, ...] = ()
    base_url_env: str | None = None
    hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    is_local: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    compat: Mapping[str, Any] = field(default_factory=dict[str, Any])
    compat_by_prefix: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])
    models: tuple[Mapping[str, Any], ...] = ()

    @property
    def key_variables(self) -> tuple[str, ...]:
        """Every variable that can hold its key."""
        return (*self.env, *self.bearer_env)


@cache
def load_vendors() -> Mapping[str, Vendor]:
    """The vendors by id, in the order in which a start without a choice tries them (providers 9.2)."""
    text = files("musepi_tui.providers").joinpath("models.json").read_text("utf-8")
    return {name: _read_vendor(name, row) for name, row in json.loads(text)["providers"].items()}


def _read_vendor(name: str, row: Mapping[str, Any]) -> Vendor:
    return Vendor(
        id=name,
        base_url=row["baseUrl"],
        api=row["api"],
        env=tuple(row.get("env", ())),
        bearer_env=tuple(row.get("bearerEnv", ())),
        base_url_env=row.get("baseUrlEnv"),
        hosts=tuple(row.get("hosts", ())),
        ports=tuple(row.get("ports", ())),
        is_local=row.get("local", False),
        headers=row.get("headers", {}),
        compat=row.get("compat", {}),
        compat_by_prefix=row.get("compatByPrefix", {}),
        models=tuple(row["models"]),
    )
