"""The person's last request, carried through compactions word for word.

A summary is written by a model, and models leave things out. What the person asked for last must not be among
them: when it is not in the kept part any more it is put into the compaction as it was said.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from musepi_tui.context.prepare import Preparation, messages_of
from musepi_tui.session.messages import Message, UserMessage, text_of

DATA_KEY = "musepiRequest"
"""The key of ``preserve_data`` under which the request goes on to the next compaction."""

HEAD_CHARS = 6_000
TAIL_CHARS = 2_000
"""A longer request, mostly a pasted file or log, keeps its beginning and its end: what is wanted stands at
one of them."""

_BLOCK = re.compile(r"\s*<last-request>(?:(?!<last-request>).)*?</last-request>", re.DOTALL)
_TAGS = re.compile(r"<(/?)(last-request|files|read-files|modified-files)>")
"""What a request that quotes a stored summary must not contain as it is: the next pass would cut it there."""


def pending_request(preparation: Preparation) -> str | None:
    """The newest request of the person when the compaction does not keep its message; None when it does, and
    when there never was one."""
    if _newest(messages_of(preparation.kept)) is not None:
        return None
    newest = _newest(preparation.prefix_messages) or _newest(preparation.history_messages)
    if newest is not None:
        return _shortened(newest)
    carried = None if preparation.previous is None else (preparation.previous.preserve_data or {})
    text = (carried or {}).get(DATA_KEY)
    return text if isinstance(text, str) and text else None


def upsert_request(summary: str, request: str | None) -> str:
    """The summary with the request at its end, in place of one that stands there; None takes it out."""
    base, removed = _BLOCK.subn("", summary)
    while removed:
        base, removed = _BLOCK.subn("", base)
    base = base.rstrip()
    if request is None:
        return base
    inside = _TAGS.sub(r"<\\\1\2>", request)
    return f"{base}\n\n<last-request>\n{inside}\n</last-request>"


def with_request(data: Mapping[str, Any] | None, request: str | None) -> Mapping[str, Any] | None:
    """The data to store with a compaction, with the request the next one may have to carry on."""
    kept = {key: value for key, value in (data or {}).items() if key != DATA_KEY}
    if request is not None:
        kept[DATA_KEY] = request
    return kept or None


def _newest(messages: Sequence[Message]) -> str | None:
    """The text of the newest message a person wrote."""
    for message in reversed(messages):
        if isinstance(message, UserMessage) and (text := text_of(message.content).strip()):
            return text
    return None


def _shortened(text: str) -> str:
    if len(text) <= HEAD_CHARS + TAIL_CHARS:
        return text
    left_out = len(text) - HEAD_CHARS - TAIL_CHARS
    return f"{text[:HEAD_CHARS]}\n\n[… {left_out} characters left out …]\n\n{text[-TAIL_CHARS:]}"
