"""What the runtime lends to extensions, and how their failures are told (SAF-121)."""

from collections.abc import Callable
from pathlib import Path

from musepi_tui.base.clock import Clock
from musepi_tui.base.errors import MaintenanceError
from musepi_tui.base.resources import read_prompt
from musepi_tui.extensions.api import Level, SessionFacts
from musepi_tui.extensions.dispatch import Failure
from musepi_tui.runtime.answers import read_answer
from musepi_tui.runtime.events import Event, ExtensionFailed, Notice
from musepi_tui.runtime.gateway import ModelGateway
from musepi_tui.session.messages import TextBlock, UserMessage


class ExtensionHost:
    """The program as extensions see it. ``call_soon`` runs a function in the event loop, from any thread.

    ``gateway`` and ``facts`` are those of the session that is open.
    """

    def __init__(
        self, emit: Callable[[Event], None], call_soon: Callable[[Callable[[], None]], None], clock: Clock
    ) -> None:
        self._emit = emit
        self._call_soon = call_soon
        self._clock = clock
        self._gateway: ModelGateway | None = None
        self._cwd = Path()
        self._session_id = ""
        self._session_file: Path | None = None

    def serve(self, gateway: ModelGateway, cwd: Path, session_id: str, session_file: Path | None) -> None:
        """Another session is open from now on."""
        self._gateway = gateway
        self._cwd = cwd
        self._session_id = session_id
        self._session_file = session_file

    def notify(self, extension: str, level: Level, text: str) -> None:
        """Shows a line to the person. May be called from any thread."""
        self._call_soon(lambda: self._emit(Notice(level, text, extension)))

    def report(self, failure: Failure) -> None:
        """Tells that an extension failed."""
        event = ExtensionFailed(failure.extension, failure.event, failure.error, failure.switched_off)
        self._emit(event)

    def context(self) -> SessionFacts:
        """The session that is open."""
        model = None if self._gateway is None else self._gateway.model
        file = None if self._session_file is None else str(self._session_file)
        return SessionFacts(str(self._cwd), self._session_id, file, None if model is None else model.key)

    async def complete(self, system: str, prompt: str, max_tokens: int) -> str:
        """The answer of the session's model. Raises ``ProviderError``."""
        gateway = self._gateway
        if gateway is None:
            raise MaintenanceError("No session is open yet.")
        model = gateway.require_model()
        await gateway.prepare(model)
        question = UserMessage(prompt, timestamp_ms=self._clock.now_ms())
        request = gateway.request(
            system or read_prompt("summarization-system"), (question,), max_tokens=max_tokens
        )
        answer = await read_answer(gateway.open(model, request))
        return "\n".join(block.text for block in answer.content if isinstance(block, TextBlock))
