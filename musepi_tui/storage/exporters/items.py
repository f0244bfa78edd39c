"""What an export shows, one item after another: the path of a session as people read it.

Entries are read one by one and let go, except that a call waits for its result; so a path may be of any
length.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.entries import EntryHead, SessionHeader
from musepi_tui.session.fields import as_object, as_text
from musepi_tui.session.messages import ImageBlock, Usage
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies


@dataclass(frozen=True, slots=True)
class ExportSource:
    """What is exported. ``name`` is the title, ``tree`` has the leaf wanted, ``file`` is its file,
    None for a session in memory only."""

    header: SessionHeader
    name: str | None
    tree: SessionTree
    bodies: Bodies
    file: Path | None = None

    def heads(self) -> Sequence[EntryHead]:
        """The heads of the path, root first."""
        return self.tree.path() if self.tree.leaf_id is not None else ()


@dataclass(frozen=True, slots=True)
class ItemBase:
    """Fields of every item. ``timestamp`` is that of the entry, ISO 8601 as stored."""

    entry_id: str
    timestamp: str


@dataclass(frozen=True, slots=True)
class UserItem(ItemBase):
    """What a person wrote."""

    text: str
    images: tuple[ImageBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerItem(ItemBase):
    """Text of the model, Markdown."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingItem(ItemBase):
    """Reasoning of the model; empty when the provider hides it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolItem(ItemBase):
    """A tool call with its result. ``title`` is one line, ``note`` stands behind it. ``arguments`` is JSON
    or, where there is only one, the text itself.

    ``result`` None: there is none. ``diff`` is a unified diff of what was changed. ``edited`` is what the
    model is shown instead of the result by now.
    """

    name: str
    title: str
    arguments: str
    state: Literal["ok", "failed", "cancelled"]
    result: str | None = None
    diff: str | None = None
    note: str = ""
    images: tuple[ImageBlock, ...] = ()
    edited: str | None = None


@dataclass(frozen=True, slots=True)
class ShellItem(ItemBase):
    """A command the person ran; ``outcome`` says how it ended when that is worth a word."""

    command: str
    output: str
    outcome: str = ""
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class DividerItem(ItemBase):
    """A compaction, branch or handoff: ``line`` is the canonical text, ``heading`` the figures or a title,
    ``facts`` why and how, ``body`` the summary (Markdown), ``files`` indented lines."""

    kind: Literal["compaction", "branch", "handoff"]
    line: str
    heading: str
    body: str
    facts: tuple[str, ...] = ()
    warning: str | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CustomItem(ItemBase):
    """Text that neither the person nor the model wrote; ``label`` says whose."""

    label: str
    text: str
    images: tuple[ImageBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class NoteItem(ItemBase):
    """One line about the conversation. ``level`` ``info``, ``warning`` or ``error``."""

    text: str
    level: Literal["info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True)
class ModelItem(ItemBase):
    """The answers from here on are from ``model`` (``provider/id``)."""

    model: str


@dataclass(frozen=True, slots=True)
class UsageItem(ItemBase):
    """Figures of one answer or summary, for totals; shown nowhere by itself."""

    usage: Usage


Item: TypeAlias = (
    UserItem
    | AnswerItem
    | ThinkingItem
    | ToolItem
    | ShellItem
    | DividerItem
    | CustomItem
    | NoteItem
    | ModelItem
    | UsageItem
)


def diff_of(details: object) -> str | None:
    """The diff a tool stored with its result, in the forms of the family."""
    view = stored_view(details)
    if view.get("kind") == "diff" and isinstance(view.get("body"), str):
        return str(view["body"])
    diff = as_text((as_object(details) or {}).get("diff")) or ""
    return diff if diff.strip() else None


def stored_view(details: object) -> Mapping[str, Any]:
    """How a result was shown on the screen, as stored; empty when it was not."""
    return as_object((as_object(details) or {}).get("view")) or {}
