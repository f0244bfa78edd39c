"""One request for a summary, to a model or to an endpoint of the person's own (compaction 6.2, 6.8)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from musepi_tui.base.clock import Clock
from musepi_tui.base.errors import MaintenanceError
from musepi_tui.base.resources import read_prompt
from musepi_tui.context.fileops import upsert_files
from musepi_tui.context.merge import clean_answer, validate_summary
from musepi_tui.context.usage import sum_usage
from musepi_tui.providers.types import BlockDelta, Model, Request, StreamDone, StreamError, StreamEvent
from musepi_tui.runtime.answers import read_answer
from musepi_tui.runtime.candidates import Candidate
from musepi_tui.runtime.gateway import ModelGateway
from musepi_tui.runtime.remote_summary import ask_endpoint
from musepi_tui.session.messages import AssistantMessage, StopReason, TextBlock, Usage, UserMessage

PROGRESS_INTERVAL_S = 0.25
"""Seconds between two reports of growing answers; the screen shows tenths of thousands of tokens."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the requests are; tokens of all of them, those of the answers estimated while they grow.

    ``is_staged``: a long conversation is summarised in parts.
    """

    done: int
    total: int
    input_tokens: int
    output_tokens: int
    is_staged: bool = False


@dataclass(slots=True)
class _Requests:
    """Requests of one piece: answered, and all that are known."""

    done: int
    total: int


class Tally:
    """Counts requests and tokens of the pieces of a summary and reports them, growth at most every
    ``PROGRESS_INTERVAL_S``."""

    def __init__(self, clock: Clock, report: Callable[[Progress], None]) -> None:
        self.is_staged = False
        self._clock = clock
        self._report = report
        self._spent: list[Usage] = []
        self._requests: dict[str, _Requests] = {}
        self._input_tokens = 0
        self._output_chars = 0
        self._reported_s = float("-inf")

    @property
    def usage(self) -> Usage | None:
        """What all requests took together, failed ones included."""
        return sum_usage(self._spent)

    def begin(self, pieces: Iterable[str], requests: int) -> None:
        """Each of these pieces is (again) at its start and will take that many requests."""
        self._requests.update((name, _Requests(0, requests)) for name in pieces)
        self._tell()

    def expect(self, piece: str, requests: int) -> None:
        """The piece takes that many requests more than were known."""
        self._requests[piece].total += requests
        self._tell()

    def asked(self, input_tokens: int) -> None:
        """Requests of that size together are sent."""
        self._input_tokens += input_tokens
        self._tell()

    def answered(self, piece: str) -> None:
        """A request for the piece has its answer."""
        self._requests[piece].done += 1
        self._tell()

    def watch(self, event: StreamEvent) -> None:
        """An answer grows, or has ended and says what it took."""
        match event:
            case BlockDelta():
                self._output_chars += len(event.delta)
                if self._clock.monotonic() - self._reported_s >= PROGRESS_INTERVAL_S:
                    self._tell()
            case StreamDone(message) | StreamError(message):
                if message.usage is not None:
                    self._spent.append(message.usage)
            case _:
                pass

    def _tell(self) -> None:
        self._reported_s = self._clock.monotonic()
        done = sum(requests.done for requests in self._requests.values())
        total = sum(requests.total for requests in self._requests.values())
        outputs = self._output_chars // 4
        self._report(Progress(done, total, self._input_tokens, outputs, self.is_staged))


class Caller:
    """Asks one candidate for summaries."""

    def __init__(self, candidate: Candidate, gateway: ModelGateway, clock: Clock, tally: Tally) -> None:
        self._candidate = candidate
        self._gateway = gateway
        self._clock = clock
        self._tally = tally

    async def ask(self, prompt: str, limit_tokens: int) -> str:
        """The summary, cleaned and checked. One that was cut off is asked for once more with twice the room.

        Raises ``ProviderError`` when the request failed, ``MaintenanceError`` for an unusable answer.
        """
        if self._candidate.endpoint is not None:
            text = await ask_endpoint(self._candidate, self._gateway, prompt)
        else:
            text = await self._ask_model(self._candidate.model, prompt, limit_tokens)
        # The list of files is ours to write: an answer of nothing else is an empty one.
        cleaned = upsert_files(clean_answer(text), "")
        validate_summary(cleaned)
        return cleaned

    async def _ask_model(self, model: Model, prompt: str, limit_tokens: int) -> str:
        limit = min(limit_tokens, model.max_tokens)
        message = await self._request(model, prompt, limit)
        longer = min(2 * limit, model.max_tokens)
        if message.stop_reason is StopReason.LENGTH and longer > limit:
            message = await self._request(model, prompt, longer)
        if message.stop_reason is StopReason.LENGTH:
            raise MaintenanceError(
                f"{model.key} reached its output limit before the summary was complete; nothing was changed. "
                "Set compaction.model to another model, or to a lower thinking level (provider/model:low)."
            )
        return "\n".join(block.text for block in message.content if isinstance(block, TextBlock))

    async def _request(self, model: Model, prompt: str, limit_tokens: int) -> AssistantMessage:
        """The complete answer. What it cost is noted, whatever became of it."""
        request = self._build_request(prompt, limit_tokens)
        return await read_answer(self._gateway.open(model, request), self._tally.watch)

    def _build_request(self, prompt: str, limit_tokens: int) -> Request:
        request = self._gateway.request(
            read_prompt("summarization-system"),
            (UserMessage(prompt, timestamp_ms=self._clock.now_ms()),),
            max_tokens=limit_tokens,
            thinking=self._candidate.level(self._gateway.wanted_thinking),
        )
        # Sent once: writing it to a prompt cache would only cost, and it is no part of the session's cache.
        return replace(request, cache_retention="none", session_id=None)
