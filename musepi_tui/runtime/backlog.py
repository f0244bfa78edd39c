"""The messages that wait for a worker, and whether they are held back."""

from collections.abc import Callable, Sequence

from musepi_tui.base.text import cut
from musepi_tui.maintenance.triggers import Reason, Stop
from musepi_tui.runtime.events import Event, Notice
from musepi_tui.runtime.jobs import Prompt
from musepi_tui.runtime.loop import Turn
from musepi_tui.runtime.queue import MessageQueue


class Backlog:
    """A queue whose messages become prompts, unless ``is_held``: after a turn that failed or was stopped the
    person decides whether they still make sense."""

    def __init__(self, queue: MessageQueue, emit: Callable[[Event], None]) -> None:
        self.queue = queue
        self.is_held = False
        self._emit = emit

    def __len__(self) -> int:
        return len(self.queue)

    def next_prompt(self) -> Prompt | None:
        """The next of them, taken from the queue; None when nothing waits or all are held."""
        if self.is_held or not len(self.queue):
            return None
        return Prompt(self.queue.take_next(), None)

    def give_back(self, prompt: Prompt, error: str) -> None:
        """A prompt that was not accepted goes back: to who sent it, or to the front of the queue."""
        self.is_held = True
        if prompt.settle is None:
            self.queue.put_back(prompt.messages)
        else:
            prompt.settle(error)

    def hold(self, turn: Turn, stop: Stop | None) -> None:
        """Holds them back after a turn, and says so where it failed."""
        self.is_held = True
        texts = [*self.queue.texts("steer"), *self.queue.texts("follow_up")]
        if texts and turn.stop == "error":
            lost = stop is not None and stop.error is not None and stop.reason is Reason.OVERFLOW
            self._emit(Notice("error", _unsent(texts, stays=not lost), "queue"))


def _unsent(texts: Sequence[str], *, stays: bool) -> str:
    """What is told of messages that wait. ``stays`` false: a screen takes them back into its editor."""
    others = f" and {len(texts) - 1} more" if len(texts) > 1 else ""
    text = f'Not sent, because the turn failed: "{cut(texts[0], 60)}"{others}.'
    return f"{text} What waits in the queue is sent before your next message." if stays else text
