"""What a run without a screen tells on stderr, and the line about a pass."""

from musepi_tui.cli.headless import extension_line
from musepi_tui.cli.tables import print_error
from musepi_tui.maintenance.notices import success_text
from musepi_tui.runtime.events import (
    Event,
    ExtensionFailed,
    MaintenanceResult,
    Notice,
    RuntimeFault,
    SessionReady,
)


class Told:
    """Problems as they come, each line once, and where the conversation went."""

    def __init__(self) -> None:
        self._lines: set[str] = set()

    def take(self, event: Event) -> bool:
        """Tells an event that is a problem in itself, or another session; whether it was one."""
        match event:
            case Notice(level="warning" | "error") | RuntimeFault():
                self.tell(event.text)
            case ExtensionFailed():
                self.tell(extension_line(event))
            case SessionReady(reason="handoff", view=view) if view.file is not None:
                self.tell(f"went on in a new session: {view.file}")
            case _:
                return False
        return True

    def tell(self, text: str) -> None:
        """Writes a line to stderr, unless it was written before."""
        if text not in self._lines:
            self._lines.add(text)
            print_error(text)


def compaction_line(result: MaintenanceResult) -> str:
    """What a pass did: tokens before and after, seconds, cost in US dollars where it is known."""
    cost = result.usage.cost.total if result.usage and result.usage.cost else None
    return success_text(result.tokens_before, result.tokens_after, result.duration_ms, cost)
