"""What a dead end holds for: until that changes, no pass starts at the threshold (compaction 2.5)."""

from dataclasses import dataclass, replace

from musepi_tui.maintenance.triggers import PromptPending, Signal
from musepi_tui.runtime.services import Services
from musepi_tui.session.messages import UserMessage
from musepi_tui.settings.schema import CompactionSettings


@dataclass(frozen=True, slots=True)
class _Situation:
    """The newest user message, the model and the settings."""

    user_entry_id: str | None
    model: str | None
    settings: CompactionSettings


class DeadEnd:
    """Remembers that maintenance gave up: a pass failed, was cancelled, or could not free enough.

    A failure holds for every message submitted until then, the ones that still wait in the queue included:
    they are no answer to it. Where nothing could be freed, the next message may be what can be taken out, so
    that holds for the message it was about. ``submission`` is the number the queue gave a message;
    ``services`` are those of the session that is open: it goes on in the one a handoff begins.
    """

    def __init__(self) -> None:
        self._situation: _Situation | None = None
        self._last_submission = 0

    def holds(self, signal: Signal, services: Services) -> bool:
        """Whether the three threshold triggers are off for what ``signal`` is about."""
        if isinstance(signal, PromptPending) and signal.submission > self._last_submission:
            return False
        return self._situation is not None and self._situation == _situation_of(services)

    def begin(self, services: Services) -> None:
        """Another run begins. What does not hold any more must not hold again with the next message."""
        if self._situation is not None and self._situation != _situation_of(services):
            self.lift()

    def declare(self, services: Services, last_submission: int) -> None:
        """A run gave up; messages up to ``last_submission`` were submitted by then."""
        self._situation = _situation_of(services)
        self._last_submission = last_submission

    def note_prompt(self, services: Services, submission: int) -> None:
        """A message of the person was stored."""
        if submission > self._last_submission:
            self.lift()
        elif self._situation is not None:
            self._situation = replace(self._situation, user_entry_id=_newest_user_id(services))

    def lift(self) -> None:
        """A pass has changed the context, or the person has gone on."""
        self._situation = None


def _situation_of(services: Services) -> _Situation:
    model = services.gateway.model
    key = None if model is None else model.key
    return _Situation(_newest_user_id(services), key, services.settings.compaction)


def _newest_user_id(services: Services) -> str | None:
    history = services.history
    pairs = zip(reversed(history.message_entry_ids), reversed(history.messages), strict=True)
    return next((entry_id for entry_id, message in pairs if isinstance(message, UserMessage)), None)
