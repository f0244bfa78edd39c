"""The whole answer to a request, for those who do not show it while it grows."""

from collections.abc import Callable

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.types import AssistantStream, StreamDone, StreamError, StreamEvent
from musepi_tui.session.messages import AssistantMessage


async def read_answer(
    stream: AssistantStream, watch: Callable[[StreamEvent], None] | None = None
) -> AssistantMessage:
    """The complete answer. ``watch`` is told every event, the one of a failure too.

    Raises ``ProviderError`` when the request failed, or when the answer ends without saying so. The stream is
    closed in any case.
    """
    try:
        async for event in stream:
            if watch is not None:
                watch(event)
            match event:
                case StreamDone(message):
                    return message
                case StreamError(error=error):
                    raise error
                case _:
                    pass
    finally:
        await stream.aclose()
    raise ProviderError("The answer ended without an end event", kind=ErrorKind.TRANSPORT, retryable=True)
