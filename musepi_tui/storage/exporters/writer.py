"""What all forms of an export have in common: one item after another, counted on the way."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import assert_never

from musepi_tui.storage.exporters.cleaning import Mask, one_line, shown, spelled
from musepi_tui.storage.exporters.items import (
    AnswerItem,
    CustomItem,
    DividerItem,
    ExportSource,
    Item,
    ModelItem,
    NoteItem,
    ShellItem,
    ThinkingItem,
    ToolItem,
    UsageItem,
    UserItem,
)
from musepi_tui.storage.exporters.reading import read_items
from musepi_tui.storage.exporters.totals import Tally


class ItemWriter(ABC):
    """Writes the path of one session. ``between`` stands behind each item."""

    between = "\n"

    def __init__(self, mask: Mask) -> None:
        self.tally = Tally()
        self._mask = mask

    def pieces(self, source: ExportSource) -> Iterator[str]:
        """The whole export, piece by piece."""
        yield self.head(source)
        for item in self.tally.watch(read_items(source)):
            text = self.draw(item)
            if text:
                yield text + self.between
        yield self.foot()

    @abstractmethod
    def head(self, source: ExportSource) -> str:
        """Everything before the first item."""

    @abstractmethod
    def foot(self) -> str:
        """Everything behind the last one."""

    def draw(self, item: Item) -> str:
        """One item; empty when nothing is shown of it."""
        match item:
            case UserItem():
                return self.user(item)
            case AnswerItem():
                return self.answer(item)
            case ThinkingItem():
                return self.thinking(item)
            case ToolItem() | ShellItem() | DividerItem():
                return self._work(item)
            case _:
                return self._remark(item)

    def _work(self, item: ToolItem | ShellItem | DividerItem) -> str:
        match item:
            case ToolItem():
                return self.tool(item)
            case ShellItem():
                return self.shell(item)
            case DividerItem():
                return self.divider(item)
            case _:
                assert_never(item)

    def _remark(self, item: CustomItem | NoteItem | ModelItem | UsageItem) -> str:
        match item:
            case CustomItem():
                return self.custom(item)
            case NoteItem():
                return self.note(item)
            case ModelItem():
                return self.model(item)
            case UsageItem():
                return ""
            case _:
                assert_never(item)

    @abstractmethod
    def user(self, item: UserItem) -> str:
        """What a person wrote."""

    @abstractmethod
    def answer(self, item: AnswerItem) -> str:
        """Text of the model."""

    @abstractmethod
    def thinking(self, item: ThinkingItem) -> str:
        """Reasoning of the model."""

    @abstractmethod
    def tool(self, item: ToolItem) -> str:
        """A tool call with its result."""

    @abstractmethod
    def shell(self, item: ShellItem) -> str:
        """A command of the person."""

    @abstractmethod
    def divider(self, item: DividerItem) -> str:
        """A compaction, branch or handoff."""

    @abstractmethod
    def custom(self, item: CustomItem) -> str:
        """Text of somebody else."""

    @abstractmethod
    def note(self, item: NoteItem) -> str:
        """A remark."""

    @abstractmethod
    def model(self, item: ModelItem) -> str:
        """A change of the model."""

    def _shown(self, text: str) -> str:
        return shown(text, self._mask)

    def _spelled(self, text: str) -> str:
        return spelled(text, self._mask)

    def _flat(self, text: str) -> str:
        return one_line(text, self._mask)


def shell_note(item: ShellItem) -> str:
    """How a command ended, and whether the model saw it; empty when there is nothing to say."""
    notes = (item.outcome, "not sent to the model" if item.is_private else "")
    return " · ".join(note for note in notes if note)
