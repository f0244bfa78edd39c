"""The wire formats by the name of their api, found in ``providers/wire`` and ``providers/demo``."""

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers import wire
from musepi_tui.providers.types import ProviderSpec

DEMO_API = "demo"


@cache
def load_provider(api: str) -> ProviderSpec:
    """The provider of ``api``. Raises ProviderError when this version has none."""
    if api == DEMO_API:
        # Deferred: nobody with a real model needs the demo.
        module = importlib.import_module("musepi_tui.providers.demo.spec")
        return module.PROVIDER
    for spec in _wire_formats():
        if spec.api == api:
            return spec
    error = ProviderError(
        f"This version does not speak the api {api!r}. Choose a model of {' or '.join(supported_apis())} "
        "(musepi models list), or reach this one through a server that offers one of them",
        kind=ErrorKind.INVALID_REQUEST,
    )
    error.cause = "api"
    raise error


@cache
def supported_apis() -> tuple[str, ...]:
    """The apis that can be used, the demo's left out, in alphabetical order."""
    return tuple(sorted(spec.api for spec in _wire_formats()))


def _wire_formats() -> Iterator[ProviderSpec]:
    """Every module in ``wire`` that has a PROVIDER; imported here, when the first model is used."""
    for info in pkgutil.iter_modules(wire.__path__):
        module = importlib.import_module(f"{wire.__name__}.{info.name}")
        provider = getattr(module, "PROVIDER", None)
        if isinstance(provider, ProviderSpec):
            yield provider
