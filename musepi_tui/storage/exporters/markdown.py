"""A session as Markdown."""

from musepi_tui.storage.exporters.cleaning import joined
from musepi_tui.storage.exporters.fences import code_span, fenced, inert, quoted
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

_MARKS = {"ok": "✓", "failed": "✗", "cancelled": "✗ cancelled"}


class MarkdownWriter(ItemWriter):
    """The document in pieces."""

    between = "\n\n"

    def head(self, source: ExportSource) -> str:
        """Title, folder, days and id."""
        facts = "".join(f"- {code_span(self._flat(fact))}\n" for fact in head_facts(source))
        return f"# {self._line(title_of(source))}\n\n{facts}\n"

    def foot(self) -> str:
        """The figures."""
        return f"---\n\n{joined(self.tally.facts())}\n"

    def answer(self, item: AnswerItem) -> str:
        """Text of the model, which is Markdown already."""
        return inert(self._shown(item.text).strip("\n"))

    def thinking(self, item: ThinkingItem) -> str:
        """Reasoning of the model."""
        text = inert(self._shown(item.text)) if item.text.strip() else "(hidden by provider)"
        return quoted(f"*Thinking*\n\n{text}")

    def custom(self, item: CustomItem) -> str:
        """Text of somebody else."""
        body = [fenced(self._shown(item.text))] if item.text.strip() else []
        images = [self._caption(caption(image)) for image in item.images]
        return "\n\n".join([f"**{self._line(item.label) or 'message'}**", *body, *images])

    def note(self, item: NoteItem) -> str:
        """A remark."""
        return f"*{self._line(item.text)}*"

    def model(self, item: ModelItem) -> str:
        """A change of the model."""
        return f"## {self._line(item.model)}"

    def user(self, item: UserItem) -> str:
        """What a person wrote."""
        time = clock_time(item.timestamp)
        heading = f"## You · {time}" if time else "## You"
        words = _with_breaks(quoted(inert(self._shown(item.text))))
        images = [self._caption(caption(image)) for image in item.images]
        return "\n\n".join([heading, *([words] if item.text.strip() else []), *images])

    def tool(self, item: ToolItem) -> str:
        """A tool call with its result."""
        note = f" ({self._line(item.note)})" if item.note else ""
        parts = [f"{_MARKS[item.state]} {code_span(self._flat(item.title))}{note}"]
        if item.diff is not None:
            parts.append(fenced(self._spelled(item.diff), "diff"))
        elif item.arguments:
            parts.append(fenced(self._spelled(item.arguments), "json" if item.arguments[0] == "{" else ""))
        if item.edited is not None:
            parts.append(f"*No longer sent to the model: {self._line(item.edited)}*")
        if item.result is not None and item.result.strip():
            parts.append(fenced(self._spelled(item.result)))
        return "\n\n".join([*parts, *(self._caption(caption(image)) for image in item.images)])

    def shell(self, item: ShellItem) -> str:
        """A command of the person."""
        note = shell_note(item)
        text = f"$ {item.command}\n{item.output}".rstrip("\n")
        return fenced(self._spelled(text), "console") + (f"\n\n*{self._line(note)}*" if note else "")

    def divider(self, item: DividerItem) -> str:
        """A compaction, branch or handoff."""
        heading = f"**{self._line(item.heading)}**" if item.heading else ""
        figures = joined([heading, *(self._line(fact) for fact in item.facts)])
        warning = f"*{self._line(item.warning)}*" if item.warning else ""
        files = fenced(self._spelled("\n".join(item.files))) if item.files else ""
        body = inert(self._shown(item.body))
        inside = "\n\n".join(part for part in (figures, warning, body, files) if part)
        return f"{item.line}\n\n{quoted(inside)}"

    def _line(self, text: str) -> str:
        """One line of plain words: nothing in it counts as Markdown or HTML."""
        flat = self._flat(text)
        return "".join(f"\\{char}" if char in "\\`*_[]<>#|~&" else char for char in flat)

    def _caption(self, text: str) -> str:
        return f"\\[{self._line(text)}\\]"


def _with_breaks(quote: str) -> str:
    """A quote whose line breaks stay where a person made them: two blanks in front of each."""
    lines = quote.split("\n")
    pairs = zip(lines, [*lines[1:], ">"], strict=True)
    return "\n".join(f"{line}  " if ">" not in (line, after) else line for line, after in pairs)
