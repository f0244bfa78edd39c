"""RPC commands by group; each module offers ``HANDLERS``, a name to its function."""

import difflib

from musepi_tui.cli.rpc.handlers import files, maintenance, model, session, tree, turn
from musepi_tui.cli.rpc.protocol import Handler, RpcError

_HANDLERS: dict[str, Handler] = {
    **turn.HANDLERS,
    **session.HANDLERS,
    **files.HANDLERS,
    **maintenance.HANDLERS,
    **model.HANDLERS,
    **tree.HANDLERS,
}


def find_handler(name: str) -> Handler:
    """The handler of a command. Raises ``RpcError`` with the nearest names when there is none."""
    handler = _HANDLERS.get(name)
    if handler is None:
        near = difflib.get_close_matches(name, _HANDLERS, n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise RpcError(f"unknown command: {name}{hint}")
    return handler
