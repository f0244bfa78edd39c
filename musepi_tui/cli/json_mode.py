"""The events of one run on stdout, one JSON object a line (contract 4)."""

import sys
from collections.abc import Sequence

from musepi_tui.base.safe_text import display_safe
from musepi_tui.cli.headless import follow_intents, intents_of, run_until_signal, with_runtime
from musepi_tui.cli.print_mode import EXIT_CODES
from musepi_tui.cli.stdio import LineWriter
from musepi_tui.cli.tables import print_error
from musepi_tui.runtime.event_json import dump_line, to_json
from musepi_tui.runtime.events import AgentSettled, AgentStarted, Event, IntentSettled, MaintenanceStarted
from musepi_tui.runtime.intents import Intent
from musepi_tui.runtime.options import RuntimeOptions
from musepi_tui.runtime.outcome import Outcome
from musepi_tui.runtime.session import SessionRuntime
from musepi_tui.session.codec import encode_header

SETTLED = {"type": "agent_settled"}


def run(options: RuntimeOptions, prompts: tuple[str, ...]) -> int:
    """Carries out the prompts and writes every event; the exit code. Raises ``UsageError``."""
    return run_until_signal(_run(options, intents_of(prompts)))


async def _run(options: RuntimeOptions, intents: Sequence[Intent]) -> int:
    async def answer(runtime: SessionRuntime) -> int:
        output = _Output(runtime)
        try:
            async for event in follow_intents(runtime, intents):
                if output.is_broken:
                    break
                output.write(event)
        finally:
            output.finish()
        return 1 if output.is_broken else output.exit_code(runtime.outcome)

    code, unsaved = await with_runtime(options, answer)
    return 1 if unsaved else code


class _Output:
    """Writes events to stdout and remembers what the exit code depends on."""

    def __init__(self, runtime: SessionRuntime) -> None:
        self._read_entry = runtime.read_entry
        self._writer = LineWriter(sys.stdout.fileno(), lambda: None)
        self._is_settled = False
        self._refused: str | None = None
        self._succeeded = False
        self._writer.write(dump_line(encode_header(runtime.view().header)))

    @property
    def is_broken(self) -> bool:
        """Whether the reader of stdout is gone."""
        return self._writer.broken

    def write(self, event: Event) -> None:
        """One event."""
        for shape in to_json(event, self._read_entry):
            self._writer.write(dump_line(shape))
        match event:
            case AgentSettled():
                self._is_settled = True
            case AgentStarted() | MaintenanceStarted():
                self._is_settled = False
            case IntentSettled(ok=True):
                self._succeeded = True
            case IntentSettled():
                self._refused = event.error
            case _:
                pass

    def finish(self) -> None:
        """Writes the last event where no turn did (nothing was started, or a pass alone) and flushes."""
        if not self._is_settled:
            self._writer.write(dump_line(SETTLED))
        self._writer.close()

    def exit_code(self, outcome: Outcome) -> int:
        """The exit code of a run that no signal ended; says on stderr what was refused."""
        if self._refused is not None:
            print_error(display_safe(self._refused))
            return 1
        # A pass alone has no outcome. Nor has a session that could not be loaded; nothing succeeded then.
        code = 0 if outcome.stop == "none" and self._succeeded else EXIT_CODES[outcome.stop]
        return 4 if code == 0 and outcome.withheld else code
