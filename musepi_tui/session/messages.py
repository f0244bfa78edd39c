"""Messages of a conversation and the blocks they are made of (session-format 4).

All are immutable: a change means a new object. ``extra`` holds the fields of the stored object that no
attribute names, so that a message survives a round trip unchanged. Times are Unix milliseconds.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, TypeAlias

from musepi_tui.base.dataclass import dataclass


class StopReason(StrEnum):
    """Why the model stopped, spelled as stored."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_USE = "toolUse"
    ERROR = "error"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Plain text. ``signature`` is opaque and byte-exact."""

    text: str
    signature: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """Reasoning text. With ``redacted`` the payload is in ``signature`` and ``thinking`` is empty.

    The meaning of ``signature`` depends on the api: Anthropic the signature, Chat Completions the name of
    the field the reasoning came in (providers 0.1).
    """

    thinking: str
    signature: str | None = None
    redacted: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ToolCallBlock:
    """A tool call. ``parse_error`` (never stored) says why ``arguments`` is empty although text came."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    thought_signature: str | None = None
    parse_error: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """An image: base64 ``data`` (or a blob reference) and its MIME type."""

    data: str
    mime_type: str
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class OpaqueBlock:
    """A block of a kind this version does not know; kept as it was."""

    raw: Mapping[str, Any]


Block: TypeAlias = TextBlock | ThinkingBlock | ToolCallBlock | ImageBlock | OpaqueBlock
Content: TypeAlias = str | tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars by kind of token."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request. ``input`` never contains cached tokens; ``reasoning`` is part of ``output``.

    ``total_tokens`` 0 means that the provider gave no total. ``estimated`` (never stored) marks figures
    that no server reported.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total_tokens: int = 0
    cost: Cost | None = None
    reasoning: int | None = None
    cache_write_1h: int | None = None
    estimated: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a person wrote."""

    content: Content
    timestamp_ms: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class DeveloperMessage:
    """Text of the program that ranks above the user's; never stored by musepi itself."""

    content: Content
    timestamp_ms: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """An answer. ``usage`` is None when the stored record has none that can be read (shown as unknown).

    ``provider_payload`` is opaque data a provider wants back (stored as ``providerPayload``).
    """

    content: tuple[Block, ...]
    api: str
    provider: str
    model: str
    stop_reason: StopReason
    usage: Usage | None = None
    timestamp_ms: int = 0
    error_message: str | None = None
    error_status: int | None = None
    response_id: str | None = None
    provider_payload: Mapping[str, Any] | None = None
    duration_ms: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    """The answer to one tool call. ``details`` is for the screen and never sent to a model."""

    tool_call_id: str
    tool_name: str
    content: tuple[Block, ...]
    is_error: bool = False
    details: Any = None
    useless: bool = False
    pruned_at_ms: int | None = None
    timestamp_ms: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class BashExecution:
    """A command the person ran (``kind`` ``bash`` or ``python``); ``exit_code`` None when it was killed."""

    command: str
    output: str
    exit_code: int | None = None
    cancelled: bool = False
    truncated: bool = False
    excluded: bool = False
    kind: str = "bash"
    timestamp_ms: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class FileMention:
    """Files attached by another tool: ``files`` are the stored objects with ``path`` and ``content``."""

    files: tuple[Mapping[str, Any], ...]
    timestamp_ms: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class CustomMessage:
    """Text injected by the program or an extension. Hidden when ``display`` is false, but still sent."""

    custom_type: str
    content: Content
    display: bool = True
    details: Any = None
    attribution: str | None = None
    timestamp_ms: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class BranchSummary:
    """What happened on a branch the conversation came back from. Rebuilt only, never stored as a message."""

    summary: str
    from_id: str | None = None
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class CompactionSummary:
    """The summary that stands for older history. Rebuilt only, never stored as a message."""

    summary: str
    tokens_before: int = 0
    short_summary: str | None = None
    images: tuple[ImageBlock, ...] = ()
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class UnknownMessage:
    """A message with a role this version does not know; kept, shown as unknown, never sent."""

    role: str
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any])
    timestamp_ms: int = 0


Message: TypeAlias = (
    UserMessage
    | DeveloperMessage
    | AssistantMessage
    | ToolResultMessage
    | BashExecution
    | FileMention
    | CustomMessage
    | BranchSummary
    | CompactionSummary
    | UnknownMessage
)


def blocks_of(content: Content) -> tuple[Block, ...]:
    """The content as blocks: a string becomes one text block, an empty string none."""
    if isinstance(content, str):
        return (TextBlock(content),) if content else ()
    return content


def text_of(content: Content) -> str:
    """All text blocks joined without a separator; images and other blocks give nothing."""
    if isinstance(content, str):
        return content
    return "".join(block.text for block in content if isinstance(block, TextBlock))


def tool_calls_of(message: AssistantMessage) -> tuple[ToolCallBlock, ...]:
    """The tool calls of an answer, in order."""
    return tuple(block for block in message.content if isinstance(block, ToolCallBlock))
