"""One answer: the final text on stdout, everything else on stderr (tui 9.1)."""

import sys
from collections.abc import Sequence

from musepi_tui.base.safe_text import display_safe
from musepi_tui.base.text import cut, duration
from musepi_tui.cli.headless import follow_intents, intents_of, run_until_signal, with_runtime
from musepi_tui.cli.told import Told, compaction_line
from musepi_tui.runtime.events import (
    ApprovalAsked,
    ApprovalClosed,
    Event,
    IntentSettled,
    MaintenanceEnded,
    MaintenanceResult,
    RetryScheduled,
)
from musepi_tui.runtime.intents import Intent
from musepi_tui.runtime.options import RuntimeOptions
from musepi_tui.runtime.outcome import Outcome
from musepi_tui.runtime.session import SessionRuntime
from musepi_tui.session.messages import text_of

EXIT_CODES = {"none": 1, "ok": 0, "error": 1, "aborted": 1, "denied": 1, "budget": 3}
"""Exit code by how the last turn ended (contract 7)."""


def run(options: RuntimeOptions, prompts: tuple[str, ...]) -> int:
    """Answers the prompts in order and prints the last answer; the exit code. Raises ``UsageError``."""
    return run_until_signal(_run(options, intents_of(prompts)))


async def _run(options: RuntimeOptions, intents: Sequence[Intent]) -> int:
    report = _Report()

    async def answer(runtime: SessionRuntime) -> Outcome:
        async for event in follow_intents(runtime, intents):
            report.take(event)
        return runtime.outcome

    outcome, unsaved = await with_runtime(options, answer)
    code = report.finish(outcome)
    return 1 if unsaved else code


class _Report:
    """Writes what happens to stderr as it comes, and the result to stdout at the end."""

    def __init__(self) -> None:
        self._asked: dict[str, ApprovalAsked] = {}
        self._compacted: MaintenanceResult | None = None
        self._refused: str | None = None
        self._told = Told()

    def take(self, event: Event) -> None:
        """One event."""
        if self._told.take(event):
            return
        match event:
            case RetryScheduled():
                attempt, wait = f"{event.attempt}/{event.max_attempts}", duration(event.delay_s)
                self._told.tell(f"retrying ({attempt}) in {wait}: {event.error}")
            case ApprovalAsked():
                self._asked[event.request_id] = event
            case ApprovalClosed(decision="deny"):
                self._tell_withheld(event)
            case MaintenanceEnded(reason="manual"):
                self._compacted = event.result
            case MaintenanceEnded(error=str() as text):
                self._told.tell(text)
            case IntentSettled(ok=False):
                self._refused = event.error
            case _:
                pass

    def finish(self, outcome: Outcome) -> int:
        """Prints the result; the exit code."""
        if self._refused is not None:
            self._told.tell(self._refused)
            return 1
        if outcome.stop == "none" and self._compacted is not None:
            _print(compaction_line(self._compacted))
            return 0
        if outcome.message is not None:
            text = text_of(outcome.message.content)
            if text:
                _print(text)
        if outcome.error is not None:
            self._told.tell(outcome.error)
        code = EXIT_CODES[outcome.stop]
        return 4 if code == 0 and outcome.withheld else code

    def _tell_withheld(self, closed: ApprovalClosed) -> None:
        asked = self._asked.pop(closed.request_id, None)
        if asked is not None:
            what = cut(f"{asked.tool}: {asked.view.title}", 200)
            self._told.tell(f"not run: {what}: {closed.reason}")


def _print(text: str) -> None:
    sys.stdout.write(display_safe(text) + "\n")
    sys.stdout.flush()
