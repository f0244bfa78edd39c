"""RPC commands that move within the session: ``navigate_tree``."""

from typing import Any

from musepi_tui.cli.rpc.protocol import (
    Answer,
    Arguments,
    Handler,
    Pending,
    RpcError,
    RpcHost,
    optional_text,
    settled_data,
    text_argument,
)
from musepi_tui.runtime.events import IntentSettled
from musepi_tui.runtime.intents import NavigateTree

_FIELDS = ("cancelled", "aborted", "leafId", "editorText", "summaryEntryId")


def _navigate_tree(_: RpcHost, arguments: Arguments) -> Answer:
    summarize = arguments.get("summarize", False)
    if not isinstance(summarize, bool):
        raise RpcError(f"summarize must be true or false, got {summarize!r}")
    instructions = optional_text(arguments, "customInstructions")
    return Pending(NavigateTree(text_argument(arguments, "targetId"), summarize, instructions), _navigated)


def _navigated(host: RpcHost, settled: IntentSettled) -> dict[str, Any]:
    data = settled_data(host, settled)
    return {name: data[name] for name in _FIELDS if name in data}


HANDLERS: dict[str, Handler] = {"navigate_tree": _navigate_tree}
