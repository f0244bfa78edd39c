"""The first lines of a session, and what is said while no model is configured. Pure."""

from collections.abc import Sequence
from pathlib import Path

from musepi_tui import __version__
from musepi_tui.providers.types import Model
from musepi_tui.tui.footer import Place

KEYS_LINE = "enter send · ctrl+j new line · / commands · ctrl+o details · esc stop"
DEMO_COMMAND = "musepi --provider demo --model demo"


def header_lines(model: Model | None, place: Place) -> tuple[str, ...]:
    """Name and version, what works where, the keys to begin with."""
    branch = f" ({place.branch})" if place.branch else ""
    if model is None:
        who = "no model yet"
    elif model.source == "demo":
        who = "demo model: a script, no network"
    else:
        who = model.name or model.id
    return (f"musepi {__version__}", f"{who} · {place.path}{branch}", KEYS_LINE)


def missing_key_lines(models: Sequence[Model], current: Model | None, models_json: Path) -> tuple[str, ...]:
    """How to get a real model, when the demo is the only one that can be used; nothing otherwise."""
    if any(model.source != "demo" for model in models) or (current is not None and current.source != "demo"):
        return ()
    remedy = (
        "No model is configured. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or describe a server in "
        f"{models_json}; /login is coming."
    )
    if current is not None:
        return (
            remedy,
            "Until then the demo answers, a script. Try: fix the bug · explain the code · make a table",
        )
    return (remedy, f"To look around without one: {DEMO_COMMAND}")
