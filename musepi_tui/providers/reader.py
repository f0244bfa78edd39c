"""Bytes of a successful response into block events: the one decoder of live streams and recordings."""

from typing import Any, cast

from musepi_tui.providers.classify import describe_html, parse_error_body, provider_error_of_body
from musepi_tui.providers.partial_json import load_json
from musepi_tui.providers.protocol import Decoder, cut_error, wrong_format_error
from musepi_tui.providers.sse import SseDecoder, SseEvent, too_much_error
from musepi_tui.providers.types import BlockEvent

MAX_STREAM_BYTES = 512 * 1024 * 1024
"""A whole answer (safety 11, SAF-115)."""
MAX_JSON_BYTES = 64 * 1024 * 1024


class ResponseReader:
    """Feeds a decoder from chunks of any size.

    The content type is not trusted: a body that starts with ``{`` is one JSON object, one that starts with
    ``<`` a page, everything else is an event stream (providers 0.2).
    """

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.event_count = 0
        self._sse = SseDecoder()
        self._mode = ""
        self._kept = bytearray()
        self._size_bytes = 0

    def feed(self, chunk: bytes) -> list[BlockEvent]:
        """The block events ``chunk`` completes. Raises ProviderError for a reported failure."""
        self._size_bytes += len(chunk)
        if self._size_bytes > MAX_STREAM_BYTES:
            raise too_much_error()
        if self._mode == "sse":
            self._take_events(self._sse.feed(chunk))
            return self.decoder.draft.take_events()
        self._kept += chunk
        if not self._mode:
            self._mode = _sniff(self._kept)
            if self._mode == "sse":
                self._take_events(self._sse.feed(bytes(self._kept)))
                self._kept.clear()
        if len(self._kept) > MAX_JSON_BYTES:
            raise too_much_error()
        return self.decoder.draft.take_events()

    def finish(self) -> list[BlockEvent]:
        """The body is over. Raises ProviderError when the answer is not complete."""
        match self._mode:
            case "":
                raise cut_error("The server closed the connection without an answer")
            case "json":
                self.decoder.take_whole(self._load_whole())
            case "html":
                raise wrong_format_error(describe_html(bytes(self._kept)))
            case _:
                self._take_events(self._sse.finish())
        self.decoder.finish()
        return self.decoder.draft.take_events()

    def _take_events(self, events: list[SseEvent]) -> None:
        for event in events:
            self.event_count += 1
            self.decoder.take(event)

    def _load_whole(self) -> dict[str, Any]:
        try:
            body = load_json(self._kept.decode("utf-8-sig"))
        except ValueError as error:
            raise cut_error("The server's JSON answer is cut off or damaged") from error
        found = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
        if found.get("error"):
            raise provider_error_of_body(parse_error_body(bytes(self._kept)))
        return found


def _sniff(head: bytearray) -> str:
    """``json``, ``html`` or ``sse`` by the first byte that is no blank; empty while none came."""
    text = bytes(head).removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text or b"\xef\xbb\xbf".startswith(text):
        return ""
    if text.startswith(b"{"):
        return "json"
    return "html" if text.startswith(b"<") else "sse"
