"""Choosing a model (TUI-4.13)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from musepi_tui.base.safe_text import display_safe
from musepi_tui.base.text import short_number
from musepi_tui.providers.types import Model
from musepi_tui.runtime.intents import SelectModel
from musepi_tui.tui.screens.panel import Item, Panel, PanelText, matches

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell


def open_models(app: "Shell", argument: str) -> None:
    """Shows the models that can be used; an argument that fits only one chooses it at once."""
    models = {model.key: model for model in app.runtime.models()}
    current = app.bridge.status.model
    wanted = argument.strip()
    fitting = [key for key in models if wanted.lower() in {key.lower(), models[key].id.lower()}]
    fitting = fitting or [key for key, model in models.items() if matches(wanted, f"{key} {model.name}")]
    if wanted and len(fitting) == 1:
        choose(app, models[fitting[0]])
        return

    def find(query: str) -> Sequence[Item]:
        return [
            describe(model, current=current is not None and key == current.key)
            for key, model in models.items()
            if matches(query, f"{key} {model.name}")
        ]

    panel = Panel(app.looks.palette, PanelText("Model", "type to search"), find)
    panel.query_text = wanted

    def chosen(key: str | None) -> None:
        if key is not None:
            choose(app, models[key])

    app.push_screen(panel, chosen)


def choose(app: "Shell", model: Model) -> None:
    """Uses the model from the next request on; a window smaller than the context is pointed out."""
    app.send(SelectModel(model.provider, model.id))
    used = app.bridge.status.meter.context_tokens
    if used is not None and model.context_window is not None and used > model.context_window:
        app.tell(
            "warning",
            f"The context ({short_number(used)} tokens) is larger than the window of {model.id} "
            f"({short_number(model.context_window)}): use /compact first.",
        )


def describe(model: Model, *, current: bool) -> Item:
    """The row of a model: what it can take and what it costs."""
    facts = [f"{short_number(model.context_window)} window" if model.context_window else "window unknown"]
    if model.reasoning:
        facts.append("thinking")
    if model.reads_images:
        facts.append("images")
    if model.prices is not None:
        facts.append(f"${model.prices.input:g}/${model.prices.output:g}")
    if model.source == "demo":
        facts = ["a script, no network"]
    return Item(model.key, display_safe(model.key), " · ".join(facts), current)
