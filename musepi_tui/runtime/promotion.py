"""Going on with a model that has a larger window, in place of a compaction (compaction 2.7)."""

from collections.abc import Callable

from musepi_tui.base.errors import ProviderError
from musepi_tui.providers.types import Model
from musepi_tui.runtime.events import ModelChanged, ModelPromoted
from musepi_tui.runtime.services import Services

ROLE = "promoted"
"""The role of the ``model_change`` entry: only one without a role is the person's own choice, so that a
resumed session starts with that one again."""

REASON = "context"
"""Why, on the event: the context outgrew the window."""


def promotion_target(services: Services) -> str | None:
    """The key of the model that could take over: declared, with a key, with a strictly larger window."""
    target = _target(services)
    return None if target is None else target.key


def try_promote(services: Services, model_key: str, make_room: Callable[[], None]) -> bool:
    """Switches to the model for the rest of the session's run; false when it cannot be used.

    ``make_room`` is called before the line that says so is added.
    """
    target, current = _target(services), services.gateway.model
    if target is None or current is None or target.key != model_key:
        return False
    services.gateway.promote(target)
    make_room()
    fields = {"provider": target.provider, "modelId": target.id, "model": target.key, "role": ROLE}
    services.history.append_state("model_change", fields)
    services.bus.emit(ModelPromoted(current.key, target.key, REASON))
    services.bus.emit(ModelChanged(target, services.gateway.thinking.value))
    services.meter.refresh()
    return True


def _target(services: Services) -> Model | None:
    current = services.gateway.model
    if current is None or not services.settings.context_promotion.enabled:
        return None
    named = current.context_promotion_target
    target = None if named is None else services.gateway.find(named)
    if target is None or (target.context_window or 0) <= (current.context_window or 0):
        return None
    try:
        services.gateway.check(target)
    except ProviderError:
        return None
    return target
