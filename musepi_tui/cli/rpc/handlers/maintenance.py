"""RPC commands for context maintenance: ``compact abort_compaction get_context_breakdown``."""

from typing import Any

from musepi_tui.cli.rpc.protocol import (
    Answer,
    Arguments,
    Handler,
    Pending,
    RpcError,
    RpcHost,
    done,
    optional_text,
)
from musepi_tui.runtime.event_json import result_json
from musepi_tui.runtime.events import IntentSettled
from musepi_tui.runtime.intents import Cancel, Compact


def _compact(_: RpcHost, arguments: Arguments) -> Answer:
    intent = Compact(optional_text(arguments, "mode"), optional_text(arguments, "customInstructions"))
    return Pending(intent, _compacted)


def _compacted(host: RpcHost, settled: IntentSettled) -> dict[str, Any]:
    end = host.last_manual_pass
    if not settled.ok or end is None or end.result is None:
        raise RpcError(settled.error or (end.error if end else None) or "Compaction cancelled")
    shape = result_json(end.result) or {}
    names = ("entryId", "firstKeptEntryId", "tokensBefore", "tokensAfter", "durationMs")
    return {
        "ok": True,
        **{name: shape[name] for name in names},
        "action": end.action,
        "method": end.action,
        "warning": None,
        "errorMessage": None,
        "aborted": False,
    }


def _abort_compaction(_: RpcHost, __: Arguments) -> Answer:
    return Pending(Cancel(only_maintenance=True), done)


HANDLERS: dict[str, Handler] = {"compact": _compact, "abort_compaction": _abort_compaction}
