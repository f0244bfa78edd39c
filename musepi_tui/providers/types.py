"""What the runtime and a wire format say to each other (providers 11).

A stream never raises once it was returned: failures become one ``StreamError`` event whose message holds
what was received. Exactly one ``StreamDone`` or ``StreamError`` comes, last.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import ProviderError
from musepi_tui.session.messages import AssistantMessage, Message, ToolCallBlock


class ThinkingLevel(StrEnum):
    """How much the model reasons before it answers."""

    OFF = "off"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    tiers: tuple[Mapping[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Model:
    """One row of the model table. ``context_window`` and ``max_tokens`` in tokens; ``context_window`` None
    when nobody knows it. ``source`` says where the row comes from: ``builtin``, ``models.json``, ``flags``,
    ``unlisted`` (a name the table does not have, with its provider's defaults), ``demo``.
    """

    provider: str
    id: str
    api: str
    base_url: str
    name: str = ""
    context_window: int | None = 128_000
    max_tokens: int = 16_384
    input: tuple[str, ...] = ("text",)
    reasoning: bool = False
    thinking_levels: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    prices: Prices | None = None
    headers: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    compat: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context_promotion_target: str | None = None
    compaction_target: str | None = None
    supports_server_compaction: bool = False
    recommended: bool = False
    source: str = "builtin"

    @property
    def key(self) -> str:
        """``provider/id``."""
        return f"{self.provider}/{self.id}"

    @property
    def reads_images(self) -> bool:
        """Whether image blocks may be sent."""
        return "image" in self.input


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it; ``parameters`` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds; 0 disables (contract 4.1). ``first_event_s`` counts from sending, ``idle_s`` between contents.

    Values other than these defaults are kept as they are; the defaults are raised for slow and local servers.
    """

    connect_s: float = 10.0
    first_event_s: float = 100.0
    idle_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Request:
    """One model request. ``messages`` are already converted (only user, developer, assistant, toolResult).

    ``cache_key`` names the prompt cache of the session a request on the side belongs to; None: it is
    ``session_id`` itself.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    thinking: ThinkingLevel = ThinkingLevel.OFF
    tool_choice: Literal["auto", "none"] = "auto"
    session_id: str | None = None
    cache_key: str | None = None
    cache_retention: Literal["none", "short", "long"] = "short"
    timeouts: Timeouts = Timeouts()
    request_retries: int = 2
    request_base_delay_s: float = 0.5
    retry_after_cap_s: float = 60.0


@dataclass(frozen=True, slots=True)
class StreamStart:
    """The server began to answer."""

    type: str = "start"


@dataclass(frozen=True, slots=True)
class BlockStart:
    """A block was opened at ``content_index``. ``kind`` is ``text``, ``thinking`` or ``toolcall``.

    For a tool call ``name`` and ``call_id`` are known as far as the wire gave them.
    """

    kind: Literal["text", "thinking", "toolcall"]
    content_index: int
    name: str = ""
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class BlockDelta:
    """More of a block: text, thinking text, or raw argument JSON. ``arguments`` is the tolerant parse so far
    (tool calls only, refreshed now and then)."""

    kind: Literal["text", "thinking", "toolcall"]
    content_index: int
    delta: str
    arguments: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class BlockEnd:
    """A block is complete; ``content`` is its whole text, or ``tool_call`` the whole call."""

    kind: Literal["text", "thinking", "toolcall"]
    content_index: int
    content: str = ""
    tool_call: ToolCallBlock | None = None


@dataclass(frozen=True, slots=True)
class StreamDone:
    """The answer is complete."""

    message: AssistantMessage


@dataclass(frozen=True, slots=True)
class StreamError:
    """The answer ended early. ``message`` holds what was received (stop reason ``error`` or ``aborted``)."""

    message: AssistantMessage
    error: ProviderError


BlockEvent: TypeAlias = BlockStart | BlockDelta | BlockEnd
StreamEvent: TypeAlias = StreamStart | BlockEvent | StreamDone | StreamError


class AssistantStream(Protocol):
    """An answer in the making. Closing it early cancels the request; ``aclose`` is idempotent."""

    def __aiter__(self) -> AsyncIterator[StreamEvent]: ...

    async def aclose(self) -> None:
        """Cancel the request and free its connection, within 2 s."""
        ...

    def partial(self) -> AssistantMessage:
        """What was received so far as an ``aborted`` message: unfinished tool calls left out."""
        ...


@dataclass(frozen=True, slots=True)
class Credentials:
    """What authorises a request. ``key`` None for keyless local servers. ``source`` is told to people:
    ``--api-key``, ``auth.json``, ``ANTHROPIC_API_KEY``, ``models.json``, ``none needed``.

    ``headers`` are laid over all others. ``commands`` still have to be run when the request is made: their
    output becomes the key (name ``""``) or the header of that name.
    """

    key: str | None
    source: str
    bearer: bool = False
    headers: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    commands: Mapping[str, str] = field(default_factory=dict[str, str])


StreamFunction: TypeAlias = Callable[[Model, Credentials, Request], AssistantStream]


class ProviderSpec:
    """One wire format. ``stream`` starts a request at its first iteration and never raises itself.

    ``decode`` feeds recorded bytes through the decoder of live streams (sdk ``parse_wire_response``):
    ``decode(status, headers, chunks) -> StreamDone | StreamError``. ``extra_roots`` lists folders the
    provider works in (the demo's scratch project); ``close`` frees what the provider made.
    """

    def __init__(
        self,
        api: str,
        stream: StreamFunction,
        *,
        decode: "DecodeFunction | None" = None,
        extra_roots: Callable[[], tuple[Path, ...]] = lambda: (),
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.api = api
        self.stream = stream
        self.decode = decode
        self.extra_roots = extra_roots
        self.close = close


DecodeFunction: TypeAlias = Callable[[int, Mapping[str, str], tuple[bytes, ...]], "StreamDone | StreamError"]
