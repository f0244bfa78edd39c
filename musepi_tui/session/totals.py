"""Running usage and cost of a session (session-format 4)."""

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.block_codec import decode_usage
from musepi_tui.session.entries import BranchSummaryEntry, CompactionEntry, Entry, MessageEntry, StateEntry
from musepi_tui.session.fields import as_object
from musepi_tui.session.messages import AssistantMessage, Message, ToolResultMessage, Usage


@dataclass(frozen=True, slots=True)
class Totals:
    """Tokens and US dollars of all entries of a file, whatever branch they are on.

    ``unknown`` counts answers whose usage cannot be read; they add nothing.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0
    requests: int = 0
    unknown: int = 0

    def add(self, entry: Entry) -> "Totals":
        """These totals with one more entry."""
        usage = usage_of(entry)
        if usage is not None:
            return self.add_usage(usage)
        is_answer = isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage)
        return self._counting_unknown() if is_answer else self

    def add_usage(self, usage: Usage) -> "Totals":
        """These totals with the usage of one more request."""
        return Totals(
            self.input + usage.input,
            self.output + usage.output,
            self.cache_read + usage.cache_read,
            self.cache_write + usage.cache_write,
            self.cost + (usage.cost.total if usage.cost else 0.0),
            self.requests + 1,
            self.unknown,
        )

    def _counting_unknown(self) -> "Totals":
        return Totals(
            self.input,
            self.output,
            self.cache_read,
            self.cache_write,
            self.cost,
            self.requests,
            self.unknown + 1,
        )


def usage_of(entry: Entry) -> Usage | None:
    """The usage an entry adds to the totals of its session; None when it has none."""
    match entry:
        case MessageEntry():
            return _message_usage(entry.message)
        case CompactionEntry() | BranchSummaryEntry():
            return entry.usage
        case StateEntry() if entry.type == "usage":
            return decode_usage(entry.fields.get("usage"))
        case _:
            return None


def _message_usage(message: Message) -> Usage | None:
    if isinstance(message, AssistantMessage):
        return message.usage
    if not isinstance(message, ToolResultMessage):
        return None
    own = decode_usage(message.extra.get("usage"))
    if own is not None or message.tool_name != "task":
        return own
    details = as_object(message.details) or {}
    return decode_usage(details.get("usage"))
