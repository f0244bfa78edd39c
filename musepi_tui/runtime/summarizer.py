"""Asks models for the summaries a compaction needs (compaction 6.2, 6.4, 6.7)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from musepi_tui.base.clock import Clock
from musepi_tui.base.errors import MaintenanceError, MusepiError, ProviderError
from musepi_tui.base.resources import read_prompt
from musepi_tui.base.text import group_digits
from musepi_tui.base.types import Tokenizer
from musepi_tui.context.llm import LlmTemplates, convert_to_llm
from musepi_tui.context.merge import NO_PRIOR_HISTORY, clean_answer, merge_split_turn, validate_summary
from musepi_tui.context.prepare import Preparation
from musepi_tui.context.serialize import serialize_conversation
from musepi_tui.context.usage import sum_usage
from musepi_tui.maintenance import notices
from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.providers.types import BlockDelta, Model, Request, StreamDone, StreamError, StreamEvent
from musepi_tui.runtime.candidates import Candidate, Chain, Switch, Wait, after_failure, next_action
from musepi_tui.runtime.gateway import ModelGateway
from musepi_tui.session.messages import (
    AssistantMessage,
    Message,
    StopReason,
    TextBlock,
    Usage,
    UserMessage,
)
from musepi_tui.settings.schema import RetrySettings

HISTORY_SHARE = 8
PREFIX_SHARE = 5
"""Tenths of the reserve a history summary and a turn prefix may take (compaction 6.2): together with a short
answer they fit into what is kept free anyway."""

PROGRESS_INTERVAL_S = 0.25
"""Seconds between two reports of growing answers; the screen shows tenths of thousands of tokens."""


@dataclass(frozen=True, slots=True)
class SummaryOrder:
    """What is wanted. Output limits are shares of ``reserve_tokens``; ``focus`` is a person's wish."""

    preparation: Preparation
    chain: Chain
    reserve_tokens: int
    focus: str | None = None
    manual: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """The finished text, the model that wrote it (``provider/id``) and what all requests cost together."""

    text: str
    model: str
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the requests are; tokens of all of them, those of the answers estimated while they grow."""

    done: int
    total: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Tools:
    """What a summarizer works with. ``tell`` shows a notice, ``report`` the progress."""

    gateway: ModelGateway
    clock: Clock
    count: Tokenizer
    templates: LlmTemplates
    retry: RetrySettings
    tell: Callable[[NoticeText], None]
    report: Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Piece:
    """One summary request: its user message, tokens of its prompt, and its output limit."""

    name: str
    prompt: str
    input_tokens: int
    limit_tokens: int


async def summarize(order: SummaryOrder, tools: Tools) -> Summary:
    """The summary of a preparation: history and turn prefix are asked for side by side, then merged.

    Raises ``ProviderError`` or ``MaintenanceError`` when no candidate could write it.
    """
    pieces = await asyncio.to_thread(build_pieces, order, tools.count, tools.templates)
    answers = _Answers(pieces, tools)
    if pieces:
        await _ask_chain(order, answers, tools)
    history = answers.texts.get("history") or order.preparation.previous_summary or NO_PRIOR_HISTORY
    return Summary(
        merge_split_turn(history, answers.texts.get("prefix")), answers.model, sum_usage(answers.spent)
    )


def build_pieces(order: SummaryOrder, count: Tokenizer, templates: LlmTemplates) -> tuple[Piece, ...]:
    """The requests a preparation needs: none, one or two. Slow for long histories: run it in a thread."""
    preparation = order.preparation
    harmony = any(is_harmony(candidate.model) for candidate in order.chain.candidates)
    system_tokens = count(read_prompt("summarization-system"))

    def piece(
        name: str, messages: Sequence[Message], instruction: str, previous: str | None, share: int
    ) -> Piece:
        conversation = serialize_conversation(convert_to_llm(messages, templates), harmony=harmony)
        prompt = request_text(conversation, previous, read_prompt(instruction), order.focus)
        return Piece(name, prompt, system_tokens + count(prompt), max(1, order.reserve_tokens * share // 10))

    pieces: list[Piece] = []
    previous = preparation.previous_summary
    if preparation.history_messages or previous is not None:
        instruction = "compaction-summary" if previous is None else "compaction-update-summary"
        pieces.append(piece("history", preparation.history_messages, instruction, previous, HISTORY_SHARE))
    if preparation.is_split_turn:
        messages = preparation.prefix_messages
        pieces.append(piece("prefix", messages, "compaction-turn-prefix", None, PREFIX_SHARE))
    return tuple(pieces)


def request_text(conversation: str, previous: str | None, instruction: str, focus: str | None) -> str:
    """The one user message of a summary request (compaction 6.2)."""
    parts = [f"<conversation>\n{conversation}\n</conversation>"]
    if previous is not None:
        inside = previous.replace("</previous-summary>", "<\\/previous-summary>")
        parts.append(f"<previous-summary>\n{inside}\n</previous-summary>")
    parts.append(instruction)
    if focus:
        parts.append(f"Additional focus: {focus}")
    return "\n\n".join(parts)


def is_harmony(model: Model) -> bool:
    """Whether the model reads the control tokens of the harmony format."""
    return "gpt-oss" in model.id.lower()


class _Answers:
    """Texts of the pieces that were answered; they are not asked for again."""

    def __init__(self, pieces: Sequence[Piece], tools: Tools) -> None:
        self.texts: dict[str, str] = {}
        self.spent: list[Usage] = []
        self.model = ""
        self._pieces = tuple(pieces)
        self._tools = tools
        self._output_chars: dict[str, int] = {}
        self._reported_s = float("-inf")

    @property
    def missing(self) -> tuple[Piece, ...]:
        """What is still to be asked."""
        return tuple(piece for piece in self._pieces if piece.name not in self.texts)

    @property
    def largest(self) -> Piece:
        """The missing request that needs the largest window."""
        return max(self.missing, key=lambda piece: piece.input_tokens + piece.limit_tokens)

    def take(self, piece: Piece, text: str, model: Model) -> None:
        """Notes an answer."""
        self.texts[piece.name] = text
        self.model = model.key
        self.report()

    def grew(self, piece: Piece, chars: int) -> None:
        """Notes that an answer became longer by that many characters."""
        self._output_chars[piece.name] = self._output_chars.get(piece.name, 0) + chars
        if self._tools.clock.monotonic() - self._reported_s >= PROGRESS_INTERVAL_S:
            self.report()

    def report(self) -> None:
        """Tells how far it is."""
        self._reported_s = self._tools.clock.monotonic()
        inputs = sum(piece.input_tokens for piece in self._pieces)
        outputs = sum(self._output_chars.values()) // 4
        self._tools.report(Progress(len(self.texts), len(self._pieces), inputs, outputs))


async def _ask_chain(order: SummaryOrder, answers: _Answers, tools: Tools) -> None:
    """Asks one candidate after the other until nothing is missing."""
    waiting = _fitting(order.chain.candidates, answers.largest)
    attempt = 0
    while True:
        candidate, *rest = waiting
        error = await _ask_missing(candidate, answers, tools)
        if error is None:
            return
        action: NextStep = next_action(
            error, attempt, after_failure(candidate, error, rest), tools.retry, manual=order.manual
        )
        match action:
            case Wait(delay_s):
                attempt += 1
                await tools.clock.sleep(delay_s)
            case Switch(candidates):
                waiting, attempt = candidates, 0
                tools.tell(notices.next_candidate(candidate.model.key, candidates[0].model.key, str(error)))
            case None:
                raise error


NextStep: TypeAlias = Wait | Switch | None


def _fitting(candidates: Sequence[Candidate], largest: Piece) -> tuple[Candidate, ...]:
    """The candidates whose window holds the largest request. Raises when there is none."""
    if not candidates:
        raise MaintenanceError(notices.NO_MODEL)
    fitting = tuple(candidate for candidate in candidates if _fits(candidate, largest))
    if not fitting:
        window = max(candidate.window or 0 for candidate in candidates)
        raise MaintenanceError(
            f"The history to summarise takes {group_digits(largest.input_tokens)} tokens, too many for the "
            f"largest window of {group_digits(window)}. Set compaction.model to a model with a larger one."
        )
    return fitting


def _fits(candidate: Candidate, piece: Piece) -> bool:
    needed = piece.input_tokens + min(piece.limit_tokens, candidate.model.max_tokens)
    return candidate.window is None or needed <= candidate.window


async def _ask_missing(candidate: Candidate, answers: _Answers, tools: Tools) -> MusepiError | None:
    """Asks for everything missing side by side; the first failure, when there was one."""
    answers.report()
    try:
        await tools.gateway.prepare(candidate.model)
    except ProviderError as error:
        return error
    requests = [_ask(candidate, piece, answers, tools) for piece in answers.missing]
    results = await asyncio.gather(*requests, return_exceptions=True)
    failures = [result for result in results if result is not None]
    for failure in failures:
        if not isinstance(failure, MusepiError):
            raise failure
    return next((failure for failure in failures if isinstance(failure, MusepiError)), None)


async def _ask(candidate: Candidate, piece: Piece, answers: _Answers, tools: Tools) -> None:
    """One piece from one model; a summary that was cut off is asked for once more with twice the room."""
    model = candidate.model
    limit = min(piece.limit_tokens, model.max_tokens)
    message = await _request(candidate, piece, limit, answers, tools)
    longer = min(2 * limit, model.max_tokens)
    if message.stop_reason is StopReason.LENGTH and longer > limit:
        message = await _request(candidate, piece, longer, answers, tools)
    if message.stop_reason is StopReason.LENGTH:
        raise MaintenanceError(
            f"{model.key} reached its output limit before the summary was complete; nothing was changed. "
            "Set compaction.model to another model, or to a lower thinking level (provider/model:low)."
        )
    texts = (block.text for block in message.content if isinstance(block, TextBlock))
    text = clean_answer("\n".join(texts))
    validate_summary(text)
    answers.take(piece, text, model)


async def _request(
    candidate: Candidate, piece: Piece, limit_tokens: int, answers: _Answers, tools: Tools
) -> AssistantMessage:
    """The complete answer. Raises ``ProviderError``; what it cost is noted either way."""
    stream = tools.gateway.open(candidate.model, _build_request(candidate, piece, limit_tokens, tools))
    try:
        async for event in stream:
            if isinstance(event, BlockDelta):
                answers.grew(piece, len(event.delta))
            message = _finished(event, answers)
            if message is not None:
                return message
    finally:
        await stream.aclose()
    raise MaintenanceError(f"The answer of {candidate.model.key} ended without an end.")


def _finished(event: StreamEvent, answers: _Answers) -> AssistantMessage | None:
    if not isinstance(event, StreamDone | StreamError):
        return None
    if event.message.usage is not None:
        answers.spent.append(event.message.usage)
    if isinstance(event, StreamError):
        raise event.error
    return event.message


def _build_request(candidate: Candidate, piece: Piece, limit_tokens: int, tools: Tools) -> Request:
    request = tools.gateway.request(
        read_prompt("summarization-system"),
        (UserMessage(piece.prompt, timestamp_ms=tools.clock.now_ms()),),
        max_tokens=limit_tokens,
        thinking=candidate.level(tools.gateway.thinking),
    )
    # Sent once: writing it to a prompt cache would only cost, and it is no part of the session's own cache.
    return replace(request, cache_retention="none", session_id=None)
