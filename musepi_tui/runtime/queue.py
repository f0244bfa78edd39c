"""Messages that wait while the agent works: steering and follow-ups (tui 3.2)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from musepi_tui.session.messages import ImageBlock

MAX_MESSAGES = 100
"""Most messages that wait (safety 14)."""
MAX_CHARS = 10_000_000
"""Most characters that wait, images included (safety 14)."""

Delivery = Literal["steer", "follow_up"]


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message of the person that was not delivered yet. ``submission`` counts all that were submitted,
    from 1 on; 0 before that."""

    text: str
    images: tuple[ImageBlock, ...] = ()
    submission: int = 0

    @property
    def size_chars(self) -> int:
        """What it counts against ``MAX_CHARS``."""
        return len(self.text) + sum(len(image.data) for image in self.images)


class MessageQueue:
    """Steering goes before the next request, follow-ups when the agent would stop. Nothing is ever dropped.

    ``one_at_a_time`` answers for a kind whether one message or all are delivered together; ``changed`` is
    called after every change. ``last_submission`` is the number of the newest message, queued or not.
    """

    def __init__(self, one_at_a_time: Callable[[Delivery], bool], changed: Callable[[], None]) -> None:
        self._waiting: dict[Delivery, list[QueuedMessage]] = {"steer": [], "follow_up": []}
        self._one_at_a_time = one_at_a_time
        self._changed = changed
        self.last_submission = 0

    def __len__(self) -> int:
        return sum(len(messages) for messages in self._waiting.values())

    def texts(self, delivery: Delivery) -> tuple[str, ...]:
        """The waiting texts of a kind, in order."""
        return tuple(message.text for message in self._waiting[delivery])

    def refusal(self, message: QueuedMessage) -> str | None:
        """Why ``message`` cannot be queued, None when it can."""
        if len(self) >= MAX_MESSAGES:
            return f"{MAX_MESSAGES} messages are waiting already; wait for the turn or take some back."
        waiting_chars = sum(item.size_chars for items in self._waiting.values() for item in items)
        if waiting_chars + message.size_chars > MAX_CHARS:
            return "The waiting messages are over 10 MB together; wait for the turn or take some back."
        return None

    def number(self, message: QueuedMessage) -> QueuedMessage:
        """The message as it was submitted: with the next number."""
        self.last_submission += 1
        return replace(message, submission=self.last_submission)

    def push(self, message: QueuedMessage, delivery: Delivery) -> None:
        """Adds a message at the end."""
        self._waiting[delivery].append(message)
        self._changed()

    def take_steering(self) -> tuple[QueuedMessage, ...]:
        """The steering messages to deliver now, removed from the queue."""
        return self._take("steer")

    def take_next(self) -> tuple[QueuedMessage, ...]:
        """What becomes the next prompt: steering first, then follow-ups; empty when nothing waits."""
        return self._take("steer") or self._take("follow_up")

    def put_back(self, messages: Sequence[QueuedMessage]) -> None:
        """Returns undelivered messages to the front."""
        if messages:
            self._waiting["steer"][:0] = messages
            self._changed()

    def take_all(self) -> tuple[QueuedMessage, ...]:
        """Everything, steering first; the queue is empty afterwards."""
        messages = tuple(self._waiting["steer"] + self._waiting["follow_up"])
        self._waiting = {"steer": [], "follow_up": []}
        if messages:
            self._changed()
        return messages

    def _take(self, delivery: Delivery) -> tuple[QueuedMessage, ...]:
        waiting = self._waiting[delivery]
        count = 1 if self._one_at_a_time(delivery) else len(waiting)
        taken = tuple(waiting[:count])
        del waiting[:count]
        if taken:
            self._changed()
        return taken
