"""Server-sent events out of a byte stream (providers 0.2).

Lines end at CR, LF or CRLF only, also when a network chunk splits the pair or a character.
"""

from dataclasses import dataclass

from musepi_tui.base.errors import ErrorKind, ProviderError

MAX_EVENT_BYTES = 64 * 1024 * 1024
"""Longest line and longest event (safety 11, SAF-115): a server must not fill the memory."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event: its ``event:`` name (empty when it had none) and its data lines joined with LF."""

    name: str
    data: str


class SseDecoder:
    """Turns chunks of any size into events. Comments are dropped."""

    __slots__ = ("_after_cr", "_data", "_event_bytes", "_name", "_pieces", "_pieces_bytes", "_started")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._pieces_bytes = 0
        self._data: list[bytes] = []
        self._event_bytes = 0
        self._name = b""
        self._after_cr = False
        self._started = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that ``chunk`` completes. Raises ProviderError for an endless line or event."""
        if not chunk:
            return []
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        events: list[SseEvent] = []
        for line in chunk.splitlines(keepends=True):
            if not line.endswith((b"\n", b"\r")):
                self._keep(line)
                continue
            event = self._take_line(self._join(line.rstrip(b"\r\n")))
            if event is not None:
                events.append(event)
        return events

    def finish(self) -> list[SseEvent]:
        """What is left at the end of the stream: an event may lack its closing empty line."""
        events: list[SseEvent] = []
        if self._pieces:
            event = self._take_line(self._join(b""))
            if event is not None:
                events.append(event)
        event = self._close_event()
        if event is not None:
            events.append(event)
        return events

    def _keep(self, part: bytes) -> None:
        self._pieces_bytes += len(part)
        _check_size(self._pieces_bytes)
        self._pieces.append(part)

    def _join(self, last: bytes) -> bytes:
        if not self._pieces:
            return last
        self._pieces.append(last)
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._pieces_bytes = 0
        return line

    def _take_line(self, line: bytes) -> SseEvent | None:
        if not self._started:
            self._started = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._close_event()
        if line.startswith(b":"):
            return None
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._event_bytes += len(value)
            _check_size(self._event_bytes)
            self._data.append(value)
        elif field == b"event":
            self._name = value
        return None

    def _close_event(self) -> SseEvent | None:
        name, data = self._name, b"\n".join(self._data)
        had_data = bool(self._data)
        self._name = b""
        self._data.clear()
        self._event_bytes = 0
        if not had_data:
            return None
        return SseEvent(_decode(name), _decode(data))


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProviderError(
            "The server sent bytes that are not UTF-8 text", kind=ErrorKind.TRANSPORT, retryable=True
        ) from error


def _check_size(size_bytes: int) -> None:
    if size_bytes > MAX_EVENT_BYTES:
        raise too_much_error()


def too_much_error() -> ProviderError:
    """The failure of a server that does not stop (safety 11, SAF-115)."""
    return ProviderError("the server sent too much", kind=ErrorKind.SERVER)
