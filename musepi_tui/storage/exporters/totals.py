"""What an export says about the whole: where and when it happened, and how much there was."""

from collections.abc import Iterator

from musepi_tui.base.text import plural, short_number
from musepi_tui.session.messages import Usage
from musepi_tui.storage.exporters.items import (
    AnswerItem,
    DividerItem,
    ExportSource,
    Item,
    ToolItem,
    UsageItem,
    UserItem,
)
from musepi_tui.storage.exporters.reading import read_items
from musepi_tui.storage.titles import title_of_prompt

UNTITLED = "Untitled session"


class Tally:
    """Counts the items that pass through it."""

    def __init__(self) -> None:
        self.prompts = 0
        self.answers = 0
        self.calls = 0
        self.compactions = 0
        self._input = 0
        self._output = 0
        self._dollars = 0.0

    def watch(self, items: Iterator[Item]) -> Iterator[Item]:
        """The same items, counted on their way. Figures that are only to be counted go no further."""
        for item in items:
            match item:
                case UserItem():
                    self.prompts += 1
                case AnswerItem():
                    self.answers += 1
                case ToolItem():
                    self.calls += 1
                case DividerItem():
                    self.compactions += item.kind == "compaction"
                case UsageItem():
                    self._add(item.usage)
                    continue
                case _:
                    pass
            yield item

    def facts(self) -> tuple[str, ...]:
        """``12 prompts``, ``40 tool calls``, ``1.2M tokens in, 34k out``, ``$0.12``: what there was."""
        counts = ((self.prompts, "prompt"), (self.answers, "answer"), (self.calls, "tool call"))
        facts = [
            plural(number, word) for number, word in (*counts, (self.compactions, "compaction")) if number
        ]
        if self._input or self._output:
            facts.append(f"{short_number(self._input)} tokens in, {short_number(self._output)} out")
        if self._dollars:
            facts.append(f"${self._dollars:.2f}")
        return tuple(facts)

    def _add(self, usage: Usage) -> None:
        self._input += usage.input + usage.cache_read + usage.cache_write
        self._output += usage.output
        self._dollars += usage.cost.total if usage.cost is not None else 0.0


def title_of(source: ExportSource) -> str:
    """The name, else the beginning of the first prompt as it may be seen; uncleaned."""
    if source.name:
        return source.name
    prompts = (item.text for item in read_items(source) if isinstance(item, UserItem))
    return title_of_prompt(next(prompts, "")) or UNTITLED


def head_facts(source: ExportSource) -> tuple[str, ...]:
    """Folder, days and id of the session, uncleaned. Times are UTC, as stored."""
    heads = source.heads()
    last = heads[-1].timestamp if heads else source.header.timestamp
    days = dict.fromkeys(day for day in (source.header.timestamp[:10], last[:10]) if day)
    return tuple(fact for fact in (source.header.cwd, " – ".join(sorted(days)), source.header.id) if fact)


def clock_time(timestamp: str) -> str:
    """``2026-01-02 03:04`` of an ISO time; empty for anything else."""
    return timestamp[:16].replace("T", " ") if len(timestamp) >= 16 and timestamp[10] == "T" else ""
