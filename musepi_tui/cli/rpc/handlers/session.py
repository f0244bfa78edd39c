"""RPC commands that read or change the session: state, messages, entries, tree, another session."""

from musepi_tui.cli.rpc.protocol import (
    Answer,
    Arguments,
    Handler,
    Pending,
    RpcHost,
    path_argument,
    settled_data,
)
from musepi_tui.cli.sessions.shapes import context_message_json, tree_json
from musepi_tui.runtime.events import SessionView
from musepi_tui.runtime.intents import NewSession, OpenSession
from musepi_tui.session.codec import encode_entry
from musepi_tui.session.entries import MessageEntry
from musepi_tui.session.messages import AssistantMessage, text_of


def _get_state(host: RpcHost, _: Arguments) -> Answer:
    view = host.runtime.view()
    return {
        "sessionId": view.header.id,
        "sessionFile": str(view.file) if view.file else None,
        "sessionName": view.name,
        "leafId": view.tree.display_leaf,
        "model": None if view.model is None else {"provider": view.model.provider, "id": view.model.id},
        "isStreaming": view.turn_open,
        "isCompacting": view.compacting,
        "thinkingLevel": view.thinking_level,
        "queue": {"steering": list(view.steering), "followUp": list(view.follow_up)},
        "messageCount": _count_messages(view),
        "unsaved": view.unsaved,
        "readOnly": view.read_only,
        "mode": view.mode,
    }


def _count_messages(view: SessionView) -> int:
    return len(view.tree.path().of_types(("message", "custom_message")))


def _get_messages(host: RpcHost, _: Arguments) -> Answer:
    pairs = host.runtime.context_messages()
    return {"messages": [context_message_json(entry_id, message) for entry_id, message in pairs]}


def _get_entries(host: RpcHost, _: Arguments) -> Answer:
    tree = host.runtime.view().tree
    entries = [encode_entry(host.runtime.read_entry(entry_id)) for entry_id in tree.order]
    return {"entries": entries, "leafId": tree.display_leaf}


def _get_tree(host: RpcHost, _: Arguments) -> Answer:
    runtime = host.runtime
    return dict(tree_json(runtime.view().tree, lambda head: runtime.read_entry(head.id)))


def _get_last_assistant_text(host: RpcHost, _: Arguments) -> Answer:
    for head in reversed(host.runtime.view().tree.path()):
        if head.type != "message":
            continue
        entry = host.runtime.read_entry(head.id)
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            return {"text": text_of(entry.message.content)}
    return {"text": None}


def _new_session(_: RpcHost, __: Arguments) -> Answer:
    return Pending(NewSession(), settled_data)


def _switch_session(_: RpcHost, arguments: Arguments) -> Answer:
    return Pending(OpenSession(path_argument(arguments, "sessionPath")), settled_data)


HANDLERS: dict[str, Handler] = {
    "get_state": _get_state,
    "get_messages": _get_messages,
    "get_entries": _get_entries,
    "get_tree": _get_tree,
    "get_last_assistant_text": _get_last_assistant_text,
    "new_session": _new_session,
    "switch_session": _switch_session,
}
