"""RPC commands for the model: ``set_model set_thinking_level get_available_models``."""

from typing import Any

from musepi_tui.cli.rpc.protocol import Answer, Arguments, Handler, Pending, RpcHost, done, text_argument
from musepi_tui.providers.types import Model
from musepi_tui.runtime.intents import SelectModel, SetThinking


def _set_model(_: RpcHost, arguments: Arguments) -> Answer:
    intent = SelectModel(text_argument(arguments, "provider"), text_argument(arguments, "modelId"))
    return Pending(intent, done)


def _set_thinking_level(_: RpcHost, arguments: Arguments) -> Answer:
    return Pending(SetThinking(text_argument(arguments, "level")), done)


def _get_available_models(host: RpcHost, _: Arguments) -> Answer:
    return {"models": [_model_json(model) for model in host.runtime.models()]}


def _model_json(model: Model) -> dict[str, Any]:
    return {
        "provider": model.provider,
        "id": model.id,
        "name": model.name or model.id,
        "api": model.api,
        "contextWindow": model.context_window,
        "maxTokens": model.max_tokens,
        "input": list(model.input),
        "reasoning": model.reasoning,
    }


HANDLERS: dict[str, Handler] = {
    "set_model": _set_model,
    "set_thinking_level": _set_thinking_level,
    "get_available_models": _get_available_models,
}
