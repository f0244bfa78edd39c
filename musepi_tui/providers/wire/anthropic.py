"""The Anthropic Messages API."""

from musepi_tui.providers.protocol import Wire
from musepi_tui.providers.stream import provider_of
from musepi_tui.providers.wire.anthropic_decode import AnthropicDecoder
from musepi_tui.providers.wire.anthropic_encode import API, encode_request

PROVIDER = provider_of(Wire(API, encode_request, AnthropicDecoder))
