"""A session as one page that needs nothing else: no script, nothing to load; it works on paper too."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from musepi_tui import __version__
from musepi_tui.base.text import cut
from musepi_tui.session.messages import ImageBlock
from musepi_tui.storage.exporters.cleaning import Mask, joined
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
from musepi_tui.storage.exporters.markup import diff_html, markdown_html
from musepi_tui.storage.exporters.pictures import caption, data_url
from musepi_tui.storage.exporters.totals import clock_time, head_facts, title_of
from musepi_tui.storage.exporters.writer import ItemWriter, shell_note

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""What the page may load (SAF-55): nothing but the pictures and styles inside it."""

OPEN_DIFF_LINES = 80
"""Diffs up to this are shown at once: changes are what people open a session for."""

_PROMPT_CHARS = 100
_MARKS = {"ok": "✓", "failed": "✗", "cancelled": "✗"}


class HtmlWriter(ItemWriter):
    """The page in pieces. Knows the prompts so far, which are its table of contents."""

    def __init__(self, mask: Mask) -> None:
        super().__init__(mask)
        self._prompts: list[str] = []

    def head(self, source: ExportSource) -> str:
        """Everything before the first item."""
        title = escape(self._flat(title_of(source)))
        facts = escape(joined([self._flat(fact) for fact in head_facts(source)]))
        style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
        return (
            "<!doctype html>\n<html>\n<head>\n"
            '<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            '<meta name="referrer" content="no-referrer">\n'
            f'<meta name="generator" content="musepi {__version__}">\n'
            f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
            f"<header>\n<h1>{title}</h1>\n<p>{facts}</p>\n"
            '<nav><p><a href="#contents">Contents</a> · <a href="#end">End</a></p></nav>\n</header>\n<main>\n'
        )

    def foot(self) -> str:
        """Everything behind the last item."""
        contents = ""
        if self._prompts:
            rows = "\n".join(
                f'<li><a href="#p{number}">{text}</a></li>' for number, text in enumerate(self._prompts, 1)
            )
            contents = f"<h2>Contents</h2>\n<ol>\n{rows}\n</ol>\n"
        facts = escape(joined(self.tally.facts()))
        return (
            f'</main>\n<nav id="contents">\n{contents}</nav>\n<footer id="end">\n<p>{facts}</p>\n'
            f"<p>Exported by musepi {__version__}. Times are UTC.</p>\n</footer>\n</body>\n</html>\n"
        )

    def answer(self, item: AnswerItem) -> str:
        """Text of the model."""
        return f'<div class="answer">{markdown_html(self._shown(item.text))}</div>'

    def custom(self, item: CustomItem) -> str:
        """Text of somebody else."""
        label = escape(self._flat(item.label)) or "message"
        body = f'<p class="words">{escape(self._shown(item.text))}</p>' if item.text.strip() else ""
        pictures = self._pictures(item.images)
        return f'<div class="custom"><p class="label">{label}</p>{body}{pictures}</div>'

    def note(self, item: NoteItem) -> str:
        """A remark."""
        return self._line(item.level if item.level != "info" else "remark", item.text)

    def model(self, item: ModelItem) -> str:
        """A change of the model."""
        return f'<p class="who"><b>{escape(self._flat(item.model))}</b>{_time(item.timestamp)}</p>'

    def user(self, item: UserItem) -> str:
        """What a person wrote."""
        text = self._shown(item.text)
        self._prompts.append(escape(cut(" ".join(text.split()), _PROMPT_CHARS)) or "(picture)")
        words = f'<p class="words">{escape(text)}</p>' if text.strip() else ""
        who = f'<p class="who"><b>You</b>{_time(item.timestamp)}</p>'
        pictures = self._pictures(item.images)
        return f'<section class="user" id="p{len(self._prompts)}">{who}{words}{pictures}</section>'

    def thinking(self, item: ThinkingItem) -> str:
        """Reasoning of the model."""
        if not item.text.strip():
            return '<p class="remark">Thinking (hidden by provider)</p>'
        text = markdown_html(self._shown(item.text))
        return f'<details class="thinking"><summary>Thinking</summary>{text}</details>'

    def tool(self, item: ToolItem) -> str:
        """A tool call with its result."""
        title = escape(self._flat(item.title))
        note = " · ".join(part for part in (item.note, "cancelled" if item.result is None else "") if part)
        behind = f' <span class="note">{escape(self._flat(note))}</span>' if note else ""
        parts: list[str] = []
        if item.diff is not None:
            parts.append(diff_html(self._spelled(item.diff)))
        elif item.arguments:
            parts.append(self._labelled("Arguments", item.arguments))
        if item.edited is not None:
            parts.append(self._line("facts", f"No longer sent to the model: {item.edited}"))
        if item.result is not None and item.result.strip():
            parts.append(self._labelled("Result", item.result))
        parts.append(self._pictures(item.images))
        is_short = item.diff is not None and item.diff.count("\n") <= OPEN_DIFF_LINES
        opened = " open" if is_short or item.images else ""
        mark = f'<span class="mark">{_MARKS[item.state]}</span>'
        summary = f"<summary>{mark} {title}{behind}</summary>"
        return f'<details class="tool {item.state}"{opened}>{summary}{"".join(parts)}</details>'

    def shell(self, item: ShellItem) -> str:
        """A command of the person."""
        note = shell_note(item)
        behind = f' <span class="note">{escape(self._flat(note))}</span>' if note else ""
        output = f"<pre>{escape(self._shown(item.output))}</pre>" if item.output.strip() else ""
        state = "failed" if item.outcome else "ok"
        return (
            f'<details class="shell {state}" open><summary>$ {escape(self._spelled(item.command))}{behind}'
            f"</summary>{output}</details>"
        )

    def divider(self, item: DividerItem) -> str:
        """A compaction, branch or handoff."""
        parts = [self._line("figures", item.heading), self._line("facts", joined(item.facts))]
        if item.warning:
            parts.append(self._line("warning", item.warning))
        parts.append(markdown_html(self._shown(item.body)))
        if item.files:
            parts.append(self._labelled("Files", "\n".join(item.files)))
        return (
            f'<details class="divider {item.kind}"><summary>{escape(item.line)}</summary>'
            f'<div class="body">{"".join(parts)}</div></details>'
        )

    def _labelled(self, label: str, text: str) -> str:
        return f'<p class="label">{label}</p><pre>{escape(self._spelled(text))}</pre>'

    def _line(self, kind: str, text: str) -> str:
        return f'<p class="{kind}">{escape(self._shown(text))}</p>' if text else ""

    def _pictures(self, images: Sequence[ImageBlock]) -> str:
        return "".join(self._picture(image) for image in images)

    def _picture(self, image: ImageBlock) -> str:
        text = escape(self._flat(caption(image)))
        url = data_url(image)
        if url is None:
            return f'<p class="remark">[{text}]</p>'
        return (
            f'<figure><img src="{url}" alt="{text}" loading="lazy"><figcaption>{text}</figcaption></figure>'
        )


def _time(timestamp: str) -> str:
    text = clock_time(timestamp)
    return f' <time datetime="{escape(timestamp)}">{escape(text)}</time>' if text else ""
