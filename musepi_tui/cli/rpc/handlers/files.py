"""RPC commands about the session's file, its name and its labels: copies, moves, what is unsaved."""

from musepi_tui.cli.rpc.protocol import (
    Answer,
    Arguments,
    Handler,
    Pending,
    RpcError,
    RpcHost,
    done,
    optional_text,
    path_argument,
    settled_data,
    text_argument,
)
from musepi_tui.runtime.intents import (
    CloneSession,
    DeleteSession,
    ExportSession,
    Flush,
    ForkSession,
    MoveSession,
    SetLabel,
    SetName,
)
from musepi_tui.session.entries import MessageEntry
from musepi_tui.session.messages import UserMessage, text_of

FORMATS = ("html", "md", "jsonl", "txt")
"""What ``export`` writes."""


def _flush(_: RpcHost, __: Arguments) -> Answer:
    return Pending(Flush(), settled_data)


def _fork(_: RpcHost, arguments: Arguments) -> Answer:
    return Pending(ForkSession(optional_text(arguments, "entryId")), settled_data)


def _clone(_: RpcHost, __: Arguments) -> Answer:
    return Pending(CloneSession(), settled_data)


def _get_fork_messages(host: RpcHost, _: Arguments) -> Answer:
    """The user messages of the path: places to fork from."""
    found: list[dict[str, str]] = []
    for head in host.runtime.view().tree.path():
        entry = host.runtime.read_entry(head.id) if head.type == "message" else None
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
            found.append({"entryId": head.id, "text": text_of(entry.message.content)})
    return {"messages": found}


def _move_session(_: RpcHost, arguments: Arguments) -> Answer:
    return Pending(MoveSession(path_argument(arguments, "cwd")), settled_data)


def _delete_session(_: RpcHost, arguments: Arguments) -> Answer:
    path = path_argument(arguments, "sessionPath")
    return Pending(DeleteSession(path, permanently=arguments.get("permanently") is True), settled_data)


def _export(_: RpcHost, arguments: Arguments) -> Answer:
    path, kind = path_argument(arguments, "path"), optional_text(arguments, "format")
    if kind is not None and kind not in FORMATS:
        raise RpcError(f"format must be one of {', '.join(FORMATS)}, got {kind}")
    if kind is not None and not path.lower().endswith(f".{kind}"):
        path = f"{path}.{kind}"
    raw, force, inline = (arguments.get(name) is True for name in ("raw", "force", "inline"))
    return Pending(ExportSession(path, force=force, raw=raw, inline=inline), settled_data)


def _set_session_name(_: RpcHost, arguments: Arguments) -> Answer:
    return Pending(SetName(text_argument(arguments, "name")), done)


def _set_label(_: RpcHost, arguments: Arguments) -> Answer:
    if "label" not in arguments:
        raise RpcError("label must be a string, got nothing; an empty one clears the label")
    label = optional_text(arguments, "label") or ""
    return Pending(SetLabel(label, text_argument(arguments, "entryId")), done)


HANDLERS: dict[str, Handler] = {
    "flush": _flush,
    "fork": _fork,
    "clone": _clone,
    "get_fork_messages": _get_fork_messages,
    "export": _export,
    "move_session": _move_session,
    "delete_session": _delete_session,
    "set_session_name": _set_session_name,
    "set_label": _set_label,
}
