"""How a server differs from plain Chat Completions or Messages (providers 2.5): flags and their detection."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, Literal, cast

from musepi_tui.base.address import address_of
from musepi_tui.base.http import is_loopback_host
from musepi_tui.providers.catalogue import Vendor, load_vendors
from musepi_tui.providers.types import Model

ToolIdStyle = Literal["any", "anthropic", "openai40", "mistral9"]


@dataclass(frozen=True, slots=True)
class Compat:
    """The flags of one model. The defaults fit an unknown server."""

    supports_store: bool = False
    supports_developer_role: bool = False
    supports_reasoning_effort: bool = True
    supports_usage_in_streaming: bool = True
    max_tokens_field: str = "max_tokens"
    requires_tool_result_name: bool = False
    requires_assistant_after_tool_result: bool = False
    requires_thinking_as_text: bool = False
    requires_reasoning_content: bool = False
    thinking_format: str = "openai"
    supports_strict_mode: bool = False
    supports_tool_choice: bool = True
    tool_call_id_style: ToolIdStyle = "any"
    cache_control_format: str | None = None
    session_affinity: str | None = None
    empty_length_is_overflow: bool = False
    idle_timeout_ms: int | None = None
    first_event_timeout_ms: int | None = None
    connect_timeout_ms: int | None = None
    # Flags of our own.
    supports_prompt_cache_key: bool = False
    supports_long_cache: bool = False
    supports_empty_tools: bool = True
    parse_think_tags: bool = False
    think_tag_open: bool = False
    cumulative_reasoning: bool = False
    merge_user_messages: bool = False
    tool_stream: bool = False
    api_key_header: str | None = None
    thinking_off: str | None = None
    thinking_display: str | None = None
    betas: tuple[str, ...] = ()
    extra_body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])


def compat_of(model: Model) -> Compat:
    """The flags of ``model``: its vendor's, then those its row or the user set."""
    vendor = find_vendor(model.provider, model.base_url)
    flags = read_flags(Compat(), vendor.compat) if vendor is not None else Compat()
    if vendor is not None:
        for prefix, changes in vendor.compat_by_prefix.items():
            if model.id.startswith(prefix):
                flags = read_flags(flags, changes)
    return read_flags(flags, model.compat)


def read_flags(base: Compat, flags: Mapping[str, Any]) -> Compat:
    """``base`` with the camelCase ``flags`` set; unknown names and values of a wrong type change nothing."""
    changes: dict[str, Any] = {}
    for name, value in flags.items():
        attribute = _ATTRIBUTES.get(name)
        if attribute is None:
            continue
        current = getattr(_DEFAULTS, attribute)
        if isinstance(current, bool) and not isinstance(value, bool):
            continue
        if isinstance(value, list):
            value = tuple(cast("list[object]", value))
        changes[attribute] = value
    return replace(base, **changes) if changes else base


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


_DEFAULTS = Compat()
_ATTRIBUTES = {_camel(item.name): item.name for item in fields(Compat)}


def find_vendor(provider: str, base_url: str) -> Vendor | None:
    """Who a server is: by provider id, then by host, then by the port of a loopback address."""
    return _find_vendor(provider, base_url)


@lru_cache(maxsize=64)
def _find_vendor(provider: str, base_url: str) -> Vendor | None:
    vendors = load_vendors()
    if provider in vendors:
        return vendors[provider]
    address = address_of(base_url)
    host = address.host
    for vendor in vendors.values():
        if any(host == known or host.endswith("." + known) for known in vendor.hosts):
            return vendor
    if is_loopback_host(host):
        for vendor in vendors.values():
            if address.port in vendor.ports:
                return vendor
    return None
