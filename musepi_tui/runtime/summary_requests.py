"""The texts of summary requests (compaction 6.2, 6.6)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from musepi_tui.base.resources import read_prompt, render_prompt
from musepi_tui.base.types import Tokenizer
from musepi_tui.context.llm import LlmTemplates, convert_to_llm
from musepi_tui.context.prepare import Preparation
from musepi_tui.context.request import upsert_request
from musepi_tui.context.serialize import serialize_messages
from musepi_tui.context.stages import RequestSize, Segment, SerialMessage, answer_limits, segment_block
from musepi_tui.session.messages import Message, ToolResultMessage

BRANCH_LIMIT_TOKENS = 2048
"""The most a branch summary may take (compaction 6.2): it stands beside a whole context, not in its place."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What is added to the requests: a person's ``focus``, lines of ``context`` and another ``instruction``
    from extensions."""

    focus: str | None = None
    context: tuple[str, ...] = ()
    instruction: str | None = None


@dataclass(frozen=True)
class Piece:
    """One summary that is wanted: ``history``, ``prefix`` or ``branch``. Sizes in tokens.

    ``overhead_tokens`` is what its requests hold besides the conversation. ``limit_tokens`` and
    ``segment_limit_tokens`` bound the answers. Not slotted: its texts are made once, when asked for.
    """

    name: str
    messages: tuple[SerialMessage, ...]
    instruction: str
    merging: str
    previous: str | None
    extras: Extras
    limit_tokens: int
    segment_limit_tokens: int
    overhead_tokens: int

    @property
    def input_tokens(self) -> int:
        """Tokens of the one request that takes the whole conversation."""
        return self.overhead_tokens + sum(message.tokens for message in self.messages)

    def size_for(self, max_tokens: int) -> RequestSize:
        """What its requests take of the window of a model whose answers have at most ``max_tokens``."""
        limits = (min(self.limit_tokens, max_tokens), min(self.segment_limit_tokens, max_tokens))
        return RequestSize(self.overhead_tokens, *limits)

    @cached_property
    def prompt(self) -> str:
        """The user message of that request."""
        conversation = "\n\n".join(message.text for message in self.messages)
        return self._framed(f"<conversation>\n{conversation}\n</conversation>", self.instruction)

    def segment_prompt(self, segment: Segment, index: int, count: int) -> str:
        """The user message for segment ``index`` (from 0) of ``count``."""
        instruction = render_prompt("compaction-segment", index=str(index + 1), count=str(count))
        return f"<conversation>\n{segment.text}\n</conversation>\n\n{instruction}"

    def merge_prompt(self, summaries: Sequence[str], *, is_last: bool) -> str:
        """The user message that makes one summary of several; the last one also takes what came before."""
        block = segment_block(summaries)
        return self._framed(block, self.merging) if is_last else f"{block}\n\n{self.merging}"

    def _framed(self, material: str, instruction: str) -> str:
        parts = [material]
        if self.previous is not None:
            inside = self.previous.replace("</previous-summary>", "<\\/previous-summary>")
            parts.append(f"<previous-summary>\n{inside}\n</previous-summary>")
        if self.extras.context:
            lines = "\n".join(f"- {line}" for line in self.extras.context)
            parts.append(f"<additional-context>\n{lines}\n</additional-context>")
        parts.append(self.extras.instruction or instruction)
        if self.extras.focus:
            parts.append(f"Additional focus: {self.extras.focus}")
        return "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class PieceMaker:
    """Makes the pieces of a preparation. ``reserve_tokens`` is what output limits are shares of; ``harmony``:
    a model may be asked whose control tokens have to be defused."""

    count: Tokenizer
    templates: LlmTemplates
    reserve_tokens: int
    extras: Extras
    harmony: bool

    def pieces(self, preparation: Preparation) -> tuple[Piece, ...]:
        """None, one or two. Slow for long histories: run it in a thread."""
        made: list[Piece] = []
        history = self.frame("history", preparation.previous_summary)
        if preparation.history_messages or history.previous is not None:
            made.append(replace(history, messages=self._serial(preparation.history_messages)))
        if preparation.is_split_turn:
            made.append(replace(self.frame("prefix"), messages=self._serial(preparation.prefix_messages)))
        return tuple(made)

    def frame(self, name: str, previous_summary: str | None = None) -> Piece:
        """The piece without its conversation; ``previous_summary`` is the one it continues."""
        is_history = name == "history"
        # The person's request is carried on by musepi itself; the model would only repeat it.
        previous = upsert_request(previous_summary or "", None) or None
        if is_history:
            instruction = read_prompt(
                "compaction-summary" if previous is None else "compaction-update-summary"
            )
        else:
            instruction = read_prompt("compaction-turn-prefix")
        # An extension's prompt replaces that of the summary; the start of a split turn keeps its own.
        extras = self.extras if is_history else replace(self.extras, instruction=None)
        history_limit, prefix_limit = answer_limits(self.reserve_tokens)
        empty = Piece(
            name=name,
            messages=(),
            instruction=instruction,
            merging=read_prompt("compaction-merge") if is_history else instruction,
            previous=previous,
            extras=extras,
            limit_tokens=history_limit if is_history else prefix_limit,
            segment_limit_tokens=prefix_limit,
            overhead_tokens=0,
        )
        return replace(empty, overhead_tokens=self._overhead(empty))

    def branch(self, messages: Sequence[Message], instructions: str | None) -> Piece:
        """The summary of a branch that is left; ``instructions`` of the person replace the prompt for it
        (compaction 10.2). Slow for long branches."""
        instruction = instructions or read_prompt("branch-summary")
        empty = Piece(
            name="branch",
            messages=(),
            instruction=instruction,
            merging=instruction,
            previous=None,
            extras=self.extras,
            limit_tokens=BRANCH_LIMIT_TOKENS,
            segment_limit_tokens=BRANCH_LIMIT_TOKENS,
            overhead_tokens=0,
        )
        return replace(empty, messages=self._serial(messages), overhead_tokens=self._overhead(empty))

    def _overhead(self, empty: Piece) -> int:
        """Tokens of a request besides the conversation."""
        return self.count(read_prompt("summarization-system")) + self.count(empty.prompt)

    def _serial(self, messages: Sequence[Message]) -> tuple[SerialMessage, ...]:
        converted = convert_to_llm(messages, self.templates)
        texts = serialize_messages(converted, harmony=self.harmony)
        return tuple(
            SerialMessage(text, self.count(text), isinstance(message, ToolResultMessage))
            for message, text in zip(converted, texts, strict=True)
            if text
        )
