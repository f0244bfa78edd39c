"""RPC commands for context maintenance: ``compact handoff run_idle_compaction abort_compaction shake
set_auto_compaction get_context_breakdown``."""

from typing import Any, Literal

from musepi_tui.cli.compaction_json import done_json
from musepi_tui.cli.rpc.protocol import (
    Answer,
    Arguments,
    Handler,
    Pending,
    RpcError,
    RpcHost,
    done,
    optional_text,
    settled_data,
    text_argument,
)
from musepi_tui.maintenance.notices import CANCELLED, NOTHING_TO_SHAKE
from musepi_tui.runtime.events import IntentSettled
from musepi_tui.runtime.intents import (
    Cancel,
    Compact,
    CompactIdle,
    Handoff,
    MeasureContext,
    SetAutoCompaction,
    Shake,
)

_SHAKE_MODES: dict[str, Literal["elide", "images"]] = {"elide": "elide", "images": "images"}


def _compact(_: RpcHost, arguments: Arguments) -> Answer:
    mode, focus = optional_text(arguments, "mode"), optional_text(arguments, "customInstructions")
    if mode is not None and mode.lower() == "shake" and not focus:
        return Pending(Shake(), _shaken_for_compact)
    return Pending(Compact(mode, focus), _compacted)


def _compacted(host: RpcHost, settled: IntentSettled) -> dict[str, Any]:
    """The newest pass; a refused or failed one answers with the texts of compaction 12.2."""
    end = host.last_pass
    if not settled.ok:
        raise RpcError(settled.error or CANCELLED)
    if end is None or end.result is None:
        raise RpcError(end.error if end is not None and end.error else CANCELLED)
    return done_json(end, end.result, host.runtime.read_entry)


def _shaken_for_compact(host: RpcHost, settled: IntentSettled) -> dict[str, Any]:
    if settled.ok and not (settled.data or {}).get("tokensFreed"):
        raise RpcError(NOTHING_TO_SHAKE)
    return _compacted(host, settled)


def _handoff(_: RpcHost, arguments: Arguments) -> Answer:
    return Pending(Handoff(optional_text(arguments, "customInstructions")), settled_data)


def _run_idle_compaction(_: RpcHost, __: Arguments) -> Answer:
    return Pending(CompactIdle(), _idled)


def _idled(host: RpcHost, settled: IntentSettled) -> dict[str, Any]:
    if settled.ok and (settled.data or {}).get("skipped"):
        return {"skipped": True}
    return _compacted(host, settled)


def _abort_compaction(_: RpcHost, __: Arguments) -> Answer:
    return Pending(Cancel(only_maintenance=True), done)


def _shake(_: RpcHost, arguments: Arguments) -> Answer:
    mode = text_argument(arguments, "mode", default="elide")
    if mode not in _SHAKE_MODES:
        raise RpcError(f"mode must be one of {', '.join(_SHAKE_MODES)}, got {mode!r}")
    return Pending(Shake(_SHAKE_MODES[mode]), _shaken)


def _shaken(host: RpcHost, settled: IntentSettled) -> dict[str, Any]:
    return {name: value for name, value in settled_data(host, settled).items() if name != "mode"}


def _set_auto_compaction(_: RpcHost, arguments: Arguments) -> Answer:
    enabled = arguments.get("enabled")
    if not isinstance(enabled, bool):
        raise RpcError(f"enabled must be true or false, got {enabled!r}")
    return Pending(SetAutoCompaction(enabled), done)


def _get_context_breakdown(_: RpcHost, __: Arguments) -> Answer:
    return Pending(MeasureContext(), settled_data)


HANDLERS: dict[str, Handler] = {
    "compact": _compact,
    "handoff": _handoff,
    "run_idle_compaction": _run_idle_compaction,
    "abort_compaction": _abort_compaction,
    "shake": _shake,
    "set_auto_compaction": _set_auto_compaction,
    "get_context_breakdown": _get_context_breakdown,
}
