"""Sending, queueing, stopping: what happens between the editor and the runtime."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from musepi_tui.runtime.events import (
    ContextPruned,
    ExtensionFailed,
    IntentSettled,
    MaintenanceEnded,
    ModelPromoted,
    Notice,
    SaveStateChanged,
)
from musepi_tui.runtime.intents import Cancel, Compact, Handoff, Intent, Shake, SubmitPrompt, TakeQueue
from musepi_tui.tui.status import Status
from musepi_tui.tui.widgets.composer import Composer

if TYPE_CHECKING:
    from musepi_tui.runtime.session import SessionRuntime

Tell: TypeAlias = Callable[[Literal["info", "warning", "error"], str], None]
Then: TypeAlias = Callable[[IntentSettled], None]
"""What to do when an intent has ended."""


def failure_of(event: IntentSettled) -> str:
    """Why an intent did not end well."""
    return event.error or "That did not work."


class Conversation:
    """Hands intents to the runtime and remembers them until they settle; nothing that was typed is lost."""

    def __init__(self, runtime: "SessionRuntime", status: Status, composer: Composer, tell: Tell) -> None:
        self._runtime = runtime
        self._status = status
        self._composer = composer
        self._tell = tell
        self._open: dict[str, tuple[Intent, Then | None, Then | None]] = {}
        self._told = ""
        self._has_failed_to_save = False
        self._ended: MaintenanceEnded | None = None

    def send(self, intent: Intent, then: Then | None = None, failed: Then | None = None) -> str:
        """Hands an intent over. ``then`` is called when it ended well, ``failed`` when it did not; without
        the latter the failure is told here."""
        if isinstance(intent, Compact | Shake):
            self._ended = None
        intent_id = self._runtime.send(intent)
        self._open[intent_id] = (intent, then, failed)
        return intent_id

    def submit(self, text: str, *, follow_up: bool) -> None:
        """Sends a prompt; while something runs the runtime queues it."""
        self.send(SubmitPrompt(text, delivery="follow_up" if follow_up else "steer"))

    def interrupt(self) -> None:
        """Stops what runs: first a pass or a retry, else the turn, whose queue goes back into the editor."""
        waiting = self._status.steering or self._status.follow_up
        if not self._status.is_maintaining and self._status.waiting is None and waiting:
            self.take_queue()
        self.send(Cancel())

    def take_queue(self) -> None:
        """Puts every waiting message before what is in the editor."""

        def put(event: IntentSettled) -> None:
            text = str((event.data or {}).get("text", ""))
            if text:
                self._composer.put_before(text)

        self.send(TakeQueue(), put)

    def noticed(self, event: Notice) -> None:
        """Remembers what was told, so that it is not told twice."""
        self._told = event.text
        if event.level == "error" and event.source == "session":
            self._has_failed_to_save = True

    def saved(self, event: SaveStateChanged) -> None:
        """Tells that everything is in the file again, to whom it was told that it could not be written."""
        if self._has_failed_to_save and not event.unsaved:
            self._has_failed_to_save = False
            self._tell("info", "Everything is saved now.")

    def session_changed(self) -> None:
        """Another session is open; what was told about the one before says nothing about it."""
        self._has_failed_to_save = False

    def ended(self, event: MaintenanceEnded) -> None:
        """Tells how a pass ended."""
        if event.reason == "manual":
            self._ended = event
        from musepi_tui.tui import endings  # deferred: not needed for the first frame

        told = endings.ending(event)
        if told is not None:
            self._tell(*told)
        waits = self._status.steering or self._status.follow_up
        if waits and endings.gives_queue_back(event) and not self._composer.text:
            self.take_queue()

    def happened(self, event: ContextPruned | ModelPromoted | ExtensionFailed) -> None:
        """Tells what maintenance, or an extension, did by itself."""
        from musepi_tui.tui import endings  # deferred: see above

        match event:
            case ContextPruned():
                # The command that asked for it tells the same with more figures.
                if not any(isinstance(intent, Shake) for intent, *_ in self._open.values()):
                    self._tell(*endings.pruned(event))
            case ModelPromoted():
                self._tell(*endings.promoted(event))
            case ExtensionFailed():
                self._tell(*endings.extension_failure(event))

    def settled(self, event: IntentSettled) -> None:
        """An intent has ended."""
        intent, then, failed = self._open.pop(event.intent_id, (None, None, None))
        if intent is None:
            return
        if event.ok:
            if then is not None:
                then(event)
            if isinstance(intent, Shake):
                from musepi_tui.tui import endings  # deferred: see above

                self._tell(*endings.shaken(event.data or {}))
            return
        if failed is not None:
            failed(event)
        else:
            self._tell_failure(intent, failure_of(event))

    def _tell_failure(self, intent: Intent, error: str) -> None:
        """Nothing that was typed is lost, and nothing is told twice."""
        if isinstance(intent, SubmitPrompt):
            self._composer.put_before(intent.text)
        if isinstance(intent, Compact | Shake | Handoff):
            from musepi_tui.tui import endings  # deferred: see above

            is_handoff = isinstance(intent, Handoff)
            told = endings.handoff_refusal(error) if is_handoff else endings.refusal(error, self._ended)
            if told is not None:
                self._tell(*told)
        elif error != self._told:
            self._tell("warning", error)
