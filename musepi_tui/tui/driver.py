"""The terminal driver: Textual's own, safe against hostile input and slow or vanished terminals (TUI-0.29).

Everything private of Textual's driver and parser that the program relies on is used here and nowhere else;
``tests/tui/test_toolkit.py`` fails when one of the names goes away.
"""

import codecs
import os
import queue
import re
import selectors
import signal
import string
import time
from collections.abc import Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from textual import constants, events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._time import get_time
from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.keys import Keys
from textual.message import Message

from musepi_tui.tui.output import shorten_rows

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

ESCAPE_DELAY_S: Final = 0.04
"""How long a lone escape waits for the rest of a key. Slow links split sequences: ``ESCDELAY`` raises it."""

STALL_RETRY_S: Final = 0.25
MAX_HELD_CHARS: Final = 4096
ANSWER_DELAY_S: Final = 1.0
"""How long the rest of an answer is waited for: over a slow line it comes in pieces, and is no key."""
ASK_GROUND: Final = "\x1b]11;?\x1b\\"
"""Asks the terminal for its background colour; ``GroundTold`` is the answer, if there is one."""
PASTE_START: Final = "\x1b[200~"
PASTE_END: Final = "\x1b[201~"

_NOISE: Final = re.compile(
    r"\x1b\[<(?P<mouse>[^Mm\x1b]*)[Mm]"  # mouse reports: kept when they are three numbers
    r"|\x1b\[[?>][0-9;]*[cu]"  # what the terminal says it is
    r"|\x1b(?:\][0-9]|P[0-9>!$+=]|_G)[^\x07\x1b]*(?:\x07|\x1b\\)"  # answers to queries
    r"|\x1b\[[0-9:;]*:[0-9:;]*[u~A-HPQRS]"  # key reports with an event type
)
_GROUND: Final = re.compile(r"\x1b\]11;rgba?:([0-9a-f]{1,4})/([0-9a-f]{1,4})/([0-9a-f]{1,4})", re.IGNORECASE)
_MOUSE: Final = re.compile(r"\d+;-?\d+;-?\d+")
_UNFINISHED: Final = re.compile(
    r"\x1b(?:\[(?:<[^Mm\x1b]*|[?>]?[0-9:;]*)|(?:\][0-9]?|P[0-9>!$+=]?|_G?)[^\x07\x1b]*\x1b?)?\Z"
)
"""The beginning of something above, or of a paste, at the end of what was read."""


def _key(name: str) -> tuple[SimpleNamespace]:
    return (SimpleNamespace(value=name),)


def patch_toolkit() -> None:
    """Sets the constants and key sequences of Textual that have no public switch. Idempotent."""
    if "ESCDELAY" not in os.environ:
        setattr(constants, "ESCAPE_DELAY", ESCAPE_DELAY_S)  # noqa: B010  declared final
    # In-band resize switches pixel mouse reports on and never off; the debug mode writes all keys to a file.
    setattr(constants, "SMOOTH_SCROLL", False)  # noqa: B010
    setattr(constants, "DEBUG", False)  # noqa: B010
    sequences = cast("dict[str, Any]", ANSI_SEQUENCES_KEYS)
    sequences["\x1b\r"] = _key("alt+enter")
    sequences["\x1b-"] = _key("alt+minus")
    sequences["\x1b\x7f"] = _key("alt+backspace")
    for letter in string.ascii_lowercase:  # known at once: alt+letter need not wait
        sequences.setdefault(f"\x1b{letter}", _key(f"alt+{letter}"))
    module = cast("Any", linux_driver)
    module.XTermParser = SafeParser
    module.getincrementaldecoder = _safe_decoder
    module.selectors = SimpleNamespace(SelectSelector=WakeSelector, EVENT_READ=selectors.EVENT_READ)


class GroundTold(Message):
    """The terminal said whether its background is light."""

    def __init__(self, *, is_light: bool) -> None:
        super().__init__()
        self.is_light = is_light


class SafeParser(XTermParser):
    """The key parser behind a filter: nothing a terminal sends ends the program or is typed as text.

    An unfinished sequence is held back until the rest comes, at most for the escape delay: without that limit
    alt+shift+p (``ESC P``) would swallow what is typed next.
    """

    current: ClassVar["SafeParser | None"] = None

    def __init__(self, debug: bool = False) -> None:  # noqa: FBT001, FBT002  the base class says so
        super().__init__(debug)
        self._held = ""
        self._held_until: float | None = None
        self._paste: list[str] | None = None
        self._paste_tail = ""
        SafeParser.current = self

    def feed(self, data: str) -> Iterable[Message]:
        """The events of more input; an empty string is the end of it."""
        if not data:
            yield from super().feed(data)
            return
        data, self._held, self._held_until = self._held + data, "", None
        while data:
            if self._paste is not None:
                data, paste = self._read_paste(data)
                if paste is not None:
                    yield paste
                continue
            head, start, data = data.partition(PASTE_START)
            yield from self._feed_keys(head, complete=bool(start))
            if start:
                self._paste, self._paste_tail = [], ""

    def _read_paste(self, data: str) -> tuple[str, Message | None]:
        """Collects a paste whole, many times faster than one character at a time."""
        assert self._paste is not None
        self._paste.append(data)
        end = self._paste_tail + data
        if PASTE_END not in end:
            self._paste_tail = end[1 - len(PASTE_END) :]
            return "", None
        text, _, rest = "".join(self._paste).partition(PASTE_END)
        self._paste = None
        return rest, events.Paste(text.replace("\x00", ""))

    def _feed_keys(self, data: str, *, complete: bool) -> Iterable[Message]:
        if answer := _GROUND.search(data):
            yield GroundTold(is_light=_is_light(answer))
        clean = _NOISE.sub(_keep_good_mouse, data)
        unfinished = None if complete else _UNFINISHED.search(clean)
        if unfinished is not None and len(unfinished[0]) <= MAX_HELD_CHARS:
            self._held = unfinished[0]
            is_answer = self._held.startswith("\x1b]1")
            self._held_until = get_time() + (ANSWER_DELAY_S if is_answer else constants.ESCAPE_DELAY)
            clean = clean[: unfinished.start()]
        if clean:
            yield from super().feed(clean)

    def tick(self) -> Iterable[Message]:
        """The events of time passing: held text is given up, a lone escape becomes a key."""
        if self._held_until is not None and get_time() >= self._held_until:
            held, self._held, self._held_until = self._held, "", None
            yield from super().feed(held)
            if self._timeout_time is not None:
                self._timeout_time = get_time()  # it has waited long enough already
        yield from super().tick()

    def next_deadline(self) -> float | None:
        """When ``tick`` has something to do, on the parser's clock."""
        return min((due for due in (self._timeout_time, self._held_until) if due is not None), default=None)

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:  # noqa: FBT001, FBT002
        try:
            found = list(super()._sequence_to_key_events(sequence, alt))
        except (ValueError, OverflowError):  # a code point or number no terminal should send
            return [events.Key(Keys.Ignore, sequence)]
        return [_with_plain_enter(event) for event in found]


def _keep_good_mouse(match: re.Match[str]) -> str:
    mouse = match["mouse"]
    return match[0] if mouse is not None and _MOUSE.fullmatch(mouse) else ""


def _is_light(answer: re.Match[str]) -> bool:
    """Whether the colour of the answer is nearer to white; its parts have one to four hexadecimal digits."""
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in answer.groups())
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5


def _with_plain_enter(event: events.Key) -> events.Key:
    """``shift+enter`` by modifyOtherKeys comes as a key named after a carriage return."""
    return events.Key(event.key[:-1] + "enter", None) if event.key.endswith("+\r") else event


class SafeDecoder(codecs.IncrementalDecoder):
    """UTF-8 that replaces bad bytes and notices the end of input."""

    def __init__(self) -> None:
        super().__init__("replace")
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._told = False

    def decode(self, input: "ReadableBuffer", final: bool = False) -> str:  # noqa: FBT001, FBT002  as the base
        """The text of more bytes; no bytes, and not the last call, mean that the terminal is gone."""
        if not input and not final:
            self._end_of_input()
        return self._utf8.decode(input, final)

    def _end_of_input(self) -> None:
        """The terminal sent no signal that counts: end as if it had."""
        if not self._told:
            self._told = True
            os.kill(os.getpid(), signal.SIGHUP)
        time.sleep(0.05)  # in the input thread, which would spin otherwise


def _safe_decoder(encoding: str) -> type[SafeDecoder]:
    """Stands for ``getincrementaldecoder``: Textual only ever asks for UTF-8."""
    return SafeDecoder


class WakeSelector(selectors.SelectSelector):
    """Waits for input, or until the parser has something to do, and not ten times a second."""

    current: ClassVar["WakeSelector | None"] = None

    def __init__(self) -> None:
        super().__init__()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        super().register(self._wake_read, selectors.EVENT_READ)
        WakeSelector.current = self

    def wake(self) -> None:
        """Ends the waiting. May be called from any thread."""
        os.write(self._wake_write, b".")

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The input that is ready; the time-out that Textual asks for is not used."""
        parser = SafeParser.current
        due = parser.next_deadline() if parser is not None else None
        ready = super().select(None if due is None else max(0.0, due - get_time()))
        return [item for item in ready if item[0].fd != self._wake_read]

    def close(self) -> None:
        """Frees the pipe."""
        if WakeSelector.current is self:
            WakeSelector.current = None
        super().close()
        os.close(self._wake_read)
        os.close(self._wake_write)


def _queue_of(thread: WriterThread) -> "queue.Queue[str | None]":
    return thread._queue  # pyright: ignore[reportPrivateUsage]  there is no public way to write without waiting


class SafeDriver(LinuxDriver):
    """Writes without blocking the program, asks for what tmux needs, reports mouse presses and drags only."""

    stalled = False
    """The terminal takes nothing at the moment; frames are dropped until it does."""

    def write(self, data: str) -> None:
        """Queues output. With a full queue it is lost, and everything is painted again when there is room."""
        thread = self._writer_thread
        if thread is None or not thread.is_alive():
            return
        if self.stalled and not self._recover():
            return
        try:
            _queue_of(thread).put_nowait(shorten_rows(data, self._app.size.width))
        except queue.Full:
            self.stalled = True
            self._loop.call_soon_threadsafe(self._loop.call_later, STALL_RETRY_S, self._poke)

    def _recover(self) -> bool:
        """Whether the terminal reads again; then the lost frames are made up for."""
        thread = self._writer_thread
        if thread is None or _queue_of(thread).qsize():
            return False
        self.stalled = False
        _queue_of(thread).put_nowait("\x1b[?2026l")
        self._loop.call_soon(cast("Any", self._app).repaint_all)
        return True

    def _poke(self) -> None:
        if self.stalled and not self._recover():
            self._loop.call_later(STALL_RETRY_S, self._poke)

    def close(self) -> None:
        """Ends the writer thread, but never waits for a terminal that takes nothing."""
        thread = self._writer_thread
        if thread is None:
            return
        try:
            _queue_of(thread).put(None, timeout=0.5)
        except queue.Full:
            return
        thread.join(timeout=1.0)

    def start_application_mode(self) -> None:
        """Takes the terminal over."""
        super().start_application_mode()
        self.write("\x1b[>4;1m")  # modifyOtherKeys: without it tmux sends no extended keys
        self.write("\x1b[22;2t")  # remember the window title

    def stop_application_mode(self) -> None:
        """Gives the terminal back."""
        self.write(f"{cast('Any', self._app).undo}\x1b[>4;0m\x1b[23;2t")
        super().stop_application_mode()

    def _sigcont_application(self, *_: object) -> None:
        # A hang-up sends SIGCONT too: what was not given back is given back first, else a second input thread
        # shares the keys and outlives the program.
        if self._auto_restart and not self._must_signal_resume and self._writer_thread is not None:
            self.suspend_application_mode()
            self._must_signal_resume = True
        super()._sigcont_application()  # pyright: ignore[reportUnknownMemberType]  its *_ has no type

    def disable_input(self) -> None:
        """Ends the input thread at once instead of at its next poll."""
        selector = WakeSelector.current
        if selector is not None:
            selector.wake()  # the byte stays in the pipe: the thread goes round until it sees the exit event
        super().disable_input()

    def _enable_mouse_support(self) -> None:
        # Presses and drags; reports of every motion cost a fifth of a core while the mouse moves.
        if self._mouse:
            self.write("\x1b[?1000h\x1b[?1002h\x1b[?1006h")
            self.flush()

    def _disable_mouse_support(self) -> None:
        if self._mouse:
            self.write("\x1b[?1006l\x1b[?1002l\x1b[?1000l")
            self.flush()
