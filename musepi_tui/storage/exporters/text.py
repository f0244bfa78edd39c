"""A session as plain text."""

from musepi_tui.storage.exporters.cleaning import joined
from musepi_tui.storage.exporters.items import (
    AnswerItem,
    CustomItem,
    DividerItem,
    ExportSource,
    ModelItem,
    NoteItem,
    ShellItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)
from musepi_tui.storage.exporters.pictures import caption
from musepi_tui.storage.exporters.totals import clock_time, head_facts, title_of
from musepi_tui.storage.exporters.writer import ItemWriter, shell_note

_MARKS = {"ok": "", "failed": " failed", "cancelled": " cancelled"}


class TextWriter(ItemWriter):
    """The text in pieces; items are apart by a blank line, dividers stand alone on their line."""

    between = "\n\n"

    def head(self, source: ExportSource) -> str:
        """Title, folder, days and id."""
        facts = joined([self._flat(fact) for fact in head_facts(source)])
        return f"{self._flat(title_of(source))}\n{facts}\n\n"

    def foot(self) -> str:
        """The figures."""
        return joined(self.tally.facts()) + "\n"

    def user(self, item: UserItem) -> str:
        """What a person wrote."""
        time = clock_time(item.timestamp)
        captions = [f"[{caption(image)}]" for image in item.images]
        text = "\n".join([self._shown(item.text), *captions]).strip("\n")
        quote = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        return f"You{f' · {time}' if time else ''}\n{quote}"

    def answer(self, item: AnswerItem) -> str:
        """Text of the model."""
        return self._shown(item.text).strip("\n")

    def thinking(self, item: ThinkingItem) -> str:
        """Reasoning of the model."""
        return f"[thinking] {self._shown(item.text).strip() or '(hidden by provider)'}"

    def tool(self, item: ToolItem) -> str:
        """A tool call with its result."""
        note = f" · {self._flat(item.note)}" if item.note else ""
        parts = [f"[{self._flat(item.name) or 'tool'}{_MARKS[item.state]}] {self._flat(item.title)}{note}"]
        if item.diff is not None:
            parts.append(self._spelled(item.diff).strip("\n"))
        elif item.arguments:
            parts.append(self._spelled(item.arguments))
        if item.edited is not None:
            parts.append(f"(no longer sent to the model: {self._flat(item.edited)})")
        if item.result is not None and item.result.strip():
            parts.append(self._spelled(item.result).strip("\n"))
        return "\n".join([*parts, *(f"[{caption(image)}]" for image in item.images)])

    def shell(self, item: ShellItem) -> str:
        """A command of the person."""
        text = self._spelled(f"$ {item.command}\n{item.output}").rstrip("\n")
        note = shell_note(item)
        return f"{text}\n({note})" if note else text

    def divider(self, item: DividerItem) -> str:
        """A compaction, branch or handoff."""
        figures = joined([item.heading, *(self._flat(fact) for fact in item.facts)])
        warning = f"! {self._flat(item.warning)}" if item.warning else ""
        files = self._spelled("\n".join(item.files))
        inside = "\n\n".join(
            part for part in (figures, warning, self._shown(item.body).strip(), files) if part
        )
        indented = "\n".join(f"  {line}".rstrip() for line in inside.split("\n"))
        return f"{item.line}\n\n{indented}"

    def custom(self, item: CustomItem) -> str:
        """Text of somebody else."""
        captions = [f"[{caption(image)}]" for image in item.images]
        label = self._flat(item.label) or "message"
        return "\n".join([f"[{label}] {self._shown(item.text).strip()}", *captions]).rstrip()

    def note(self, item: NoteItem) -> str:
        """A remark."""
        return f"({self._shown(item.text).strip()})"

    def model(self, item: ModelItem) -> str:
        """A change of the model."""
        return self._flat(item.model)
