"""What a request asks of the demo, read from its messages alone.

So the script also goes on where it was after a resume, and after a compaction took its beginning away.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from musepi_tui.context.serialize import serialize_conversation
from musepi_tui.providers.demo.summary import find_focus
from musepi_tui.providers.types import Request
from musepi_tui.session.messages import (
    AssistantMessage,
    DeveloperMessage,
    Message,
    ToolResultMessage,
    UserMessage,
    text_of,
    tool_calls_of,
)

_SUMMARY_REQUEST = "<conversation>"
_HANDOFF_OPEN = "<handoff-context>"
_TAGS = re.compile(r"</?(?:summary|handoff-context)>.*|^This document was.*", re.MULTILINE)
"""The lines around an earlier summary or document."""

_GIVEN = UserMessage | DeveloperMessage
_SUMMARY_OPEN, _SUMMARY_CLOSE = "<summary>", "</summary>"


class Kind(Enum):
    """What is wanted."""

    PROMPT = auto()
    CONTINUE = auto()
    """The program asks to go on, or a compaction took the prompt of this turn away."""
    SUMMARY = auto()
    HANDOFF = auto()


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one tool call."""

    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """The state of the conversation. ``step`` counts the answers already given in this turn; ``results`` has
    one tuple for each of them, in call order. ``is_first``: the demo has said nothing yet. ``turn`` counts
    the messages of the person in the context. For a handoff ``prompt`` is the conversation so far,
    serialized, ``earlier`` the text the context begins with in place of what came before, ``focus`` what is
    asked for in particular.
    """

    kind: Kind
    prompt: str = ""
    step: int = 0
    results: tuple[tuple[Result, ...], ...] = ()
    is_first: bool = False
    turn: int = 0
    earlier: str = ""
    focus: str | None = None

    def result(self, step: int, index: int = 0) -> Result | None:
        """The result of a call of an earlier step of this turn; None when there is none."""
        if step < len(self.results) and index < len(self.results[step]):
            return self.results[step][index]
        return None


def read_scene(request: Request) -> Scene:
    """The scene of a request."""
    messages = request.messages
    if request.tool_choice == "none" and messages:
        return _read_handoff(messages)
    start = _turn_start(messages)
    if start is None:
        return Scene(Kind.CONTINUE)
    opening = messages[start]
    prompt = text_of(opening.content) if isinstance(opening, UserMessage | DeveloperMessage) else ""
    if prompt.startswith(_SUMMARY_REQUEST):
        return Scene(Kind.SUMMARY, prompt)
    if isinstance(opening, DeveloperMessage) or _is_summary(prompt):
        return Scene(Kind.CONTINUE)
    answers = [
        place for place in range(start + 1, len(messages)) if isinstance(messages[place], AssistantMessage)
    ]
    spoken = any(
        isinstance(message, AssistantMessage) or _stands_for(message) for message in messages[:start]
    )
    return Scene(
        kind=Kind.PROMPT,
        prompt=prompt,
        step=len(answers),
        results=tuple(_results_of(messages, place) for place in answers),
        is_first=not spoken and not answers,
        turn=sum(isinstance(message, UserMessage) for message in messages[: start + 1]),
    )


def _turn_start(messages: Sequence[Message]) -> int | None:
    """The last user message, or a later developer message that came when nothing was left to do."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, UserMessage):
            return place
        if isinstance(message, DeveloperMessage) and _ends_turn(messages[:place]):
            return place
    return None


def _ends_turn(messages: Sequence[Message]) -> bool:
    """Whether the last message, reminders apart, is an answer without calls."""
    spoken = [message for message in messages if not isinstance(message, DeveloperMessage)]
    return bool(spoken) and isinstance(spoken[-1], AssistantMessage) and not tool_calls_of(spoken[-1])


def _results_of(messages: Sequence[Message], place: int) -> tuple[Result, ...]:
    """The results of the calls of one answer, in call order; a missing one counts as an error."""
    answer = messages[place]
    if not isinstance(answer, AssistantMessage):
        return ()
    by_id = {
        message.tool_call_id: Result(text_of(message.content), message.is_error)
        for message in messages[place + 1 :]
        if isinstance(message, ToolResultMessage)
    }
    return tuple(by_id.get(call.id, Result("", is_error=True)) for call in tool_calls_of(answer))


def _read_handoff(messages: Sequence[Message]) -> Scene:
    """The scene of a request whose last message asks for a handoff document."""
    *before, question = messages
    told = [
        _TAGS.sub("", text_of(message.content).partition("<files>")[0])
        for message in before
        if isinstance(message, _GIVEN) and _stands_for(message)
    ]
    spoken = [message for message in before if not _stands_for(message)]
    asked = text_of(question.content) if isinstance(question, UserMessage) else ""
    return Scene(
        Kind.HANDOFF,
        serialize_conversation(spoken),
        earlier="\n\n".join(told),
        focus=find_focus(asked),
    )


def _stands_for(message: Message) -> bool:
    """Whether the message is in place of a conversation that is not shown any more."""
    if not isinstance(message, _GIVEN):
        return False
    text = text_of(message.content)
    return text.startswith(_HANDOFF_OPEN) or (isinstance(message, UserMessage) and _is_summary(text))


def _is_summary(text: str) -> bool:
    """Whether the text shows the summary of a compaction to the model (compaction 1.4)."""
    return _SUMMARY_OPEN in text and text.rstrip().endswith(_SUMMARY_CLOSE)
