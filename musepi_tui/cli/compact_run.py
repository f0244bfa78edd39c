"""The compaction of ``musepi compact``, by the executor a running session uses."""

from collections.abc import MutableMapping
from dataclasses import replace

from musepi_tui.cli.compact import CompactOrder
from musepi_tui.cli.compaction_json import done_json, failed_json
from musepi_tui.cli.headless import follow_intents, run_until_signal, tell_rescue
from musepi_tui.cli.launch import Place, make_runtime_options
from musepi_tui.cli.options import Options
from musepi_tui.cli.sessions.reading import load_telling, path_to
from musepi_tui.cli.tables import print_json, print_line
from musepi_tui.cli.told import Told, compaction_line
from musepi_tui.maintenance.notices import CANCELLED, NOTHING_TO_SHAKE
from musepi_tui.runtime.events import (
    Event,
    IntentSettled,
    MaintenanceEnded,
)
from musepi_tui.runtime.intents import Compact, Intent, MoveLeaf, Shake
from musepi_tui.runtime.options import RuntimeOptions
from musepi_tui.runtime.session import SessionRuntime


def run(order: CompactOrder, options: Options, place: Place, environ: MutableMapping[str, str]) -> int:
    """Compacts the file; 0, or 1 when nothing was done. Raises ``SessionBusyError``, ``SessionError``."""
    path_to(load_telling(order.file), order.leaf_id)  # a file that is none, or an unknown leaf, ends here
    chosen = replace(options, session=order.file)
    runtime_options = make_runtime_options(chosen, place, environ, interactive=False)
    return run_until_signal(_run(order, runtime_options))


async def _run(order: CompactOrder, options: RuntimeOptions) -> int:
    report = _Report(order)
    async with SessionRuntime.open(options) as runtime:
        async for event in follow_intents(runtime, _intents(order)):
            report.take(event)
        succeeded = report.finish(runtime)
    return 1 if tell_rescue(runtime) or not succeeded else 0


def _intents(order: CompactOrder) -> list[Intent]:
    work = Shake() if order.strategy == "shake" else Compact("summary", order.focus)
    return [work] if order.leaf_id is None else [MoveLeaf(order.leaf_id), work]


class _Report:
    """Tells problems on stderr as they come, and the result at the end."""

    def __init__(self, order: CompactOrder) -> None:
        self._order = order
        self._end: MaintenanceEnded | None = None
        self._error: str | None = None
        self._told = Told()

    def take(self, event: Event) -> None:
        """One event."""
        if self._told.take(event):
            return
        match event:
            case MaintenanceEnded():
                self._end = event
            case IntentSettled(ok=False):
                self._error = event.error or CANCELLED
            case _:
                pass

    def finish(self, runtime: SessionRuntime) -> bool:
        """Prints the result; whether something was done."""
        end = self._end
        result = None if end is None else end.result
        if end is None or result is None or self._error is not None:
            self._fail(self._error or self._missing())
            return False
        if self._order.as_json:
            print_json(done_json(end, result, runtime.read_entry))
        else:
            print_line(compaction_line(result))
        return True

    def _missing(self) -> str:
        return NOTHING_TO_SHAKE if self._order.strategy == "shake" else CANCELLED

    def _fail(self, error: str) -> None:
        if self._order.as_json:
            aborted = self._end is not None and self._end.aborted
            print_json(failed_json(error, self._order.strategy, aborted=aborted))
        self._told.tell(error)
