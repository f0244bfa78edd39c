"""RPC commands that drive a turn: ``prompt steer follow_up abort approve``."""

from typing import Literal, cast

from musepi_tui.cli.rpc.protocol import (
    Answer,
    Arguments,
    Handler,
    Pending,
    RpcError,
    RpcHost,
    done,
    optional_text,
    text_argument,
)
from musepi_tui.runtime.intents import AnswerApproval, Cancel, SubmitPrompt
from musepi_tui.session.messages import ImageBlock


def _prompt(host: RpcHost, arguments: Arguments) -> Answer:
    text = text_argument(arguments, "message")
    behaviour = optional_text(arguments, "streamingBehavior")
    if behaviour not in (None, "steer", "followUp"):
        raise RpcError(f'streamingBehavior must be "steer" or "followUp", got "{behaviour}"')
    if host.runtime.view().turn_open and behaviour is None:
        raise RpcError('a turn is running: give streamingBehavior "steer" or "followUp", or use abort first')
    return _submit(arguments, text, "follow_up" if behaviour == "followUp" else "steer")


def _steer(_: RpcHost, arguments: Arguments) -> Answer:
    return _submit(arguments, text_argument(arguments, "message"), "steer")


def _follow_up(_: RpcHost, arguments: Arguments) -> Answer:
    return _submit(arguments, text_argument(arguments, "message"), "follow_up")


def _submit(arguments: Arguments, text: str, delivery: Literal["steer", "follow_up"]) -> Pending:
    if not text.strip() and not arguments.get("images"):
        raise RpcError("message is empty")
    return Pending(SubmitPrompt(text, _images(arguments), delivery), done)


def _images(arguments: Arguments) -> tuple[ImageBlock, ...]:
    given: object = arguments.get("images") or []
    if not isinstance(given, list):
        raise RpcError("images must be a list of image blocks")
    return tuple(_image(block) for block in cast("list[object]", given))


def _image(block: object) -> ImageBlock:
    fields = cast("dict[str, object]", block) if isinstance(block, dict) else {}
    data, mime_type = fields.get("data"), fields.get("mimeType")
    if not isinstance(data, str) or not isinstance(mime_type, str):
        raise RpcError("an image block needs the strings data (base64) and mimeType")
    return ImageBlock(data, mime_type)


def _abort(_: RpcHost, __: Arguments) -> Answer:
    return Pending(Cancel(), done)


_DECISIONS: dict[str, Literal["allow", "allow_session", "deny"]] = {
    "allow": "allow",
    "allow_session": "allow_session",
    "deny": "deny",
}


def _approve(_: RpcHost, arguments: Arguments) -> Answer:
    request_id = text_argument(arguments, "requestId")
    decision = _DECISIONS.get(text_argument(arguments, "decision"))
    if decision is None:
        raise RpcError(f"decision must be one of {', '.join(_DECISIONS)}, got {arguments['decision']!r}")
    return Pending(AnswerApproval(request_id, decision, optional_text(arguments, "feedback")), done)


HANDLERS: dict[str, Handler] = {
    "prompt": _prompt,
    "steer": _steer,
    "follow_up": _follow_up,
    "abort": _abort,
    "approve": _approve,
}
