"""The Chat Completions API of OpenAI and of everybody who copies it."""

from musepi_tui.providers.protocol import Wire
from musepi_tui.providers.stream import provider_of
from musepi_tui.providers.wire.openai_chat_decode import ChatDecoder
from musepi_tui.providers.wire.openai_chat_encode import API, encode_request

PROVIDER = provider_of(Wire(API, encode_request, ChatDecoder))
