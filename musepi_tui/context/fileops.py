"""Which files the agent read and changed, told to the model after a summary (compaction 7)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from musepi_tui.context.selectors import split_selector
from musepi_tui.session.entries import CompactionEntry, Entry
from musepi_tui.session.messages import AssistantMessage, Message, ToolCallBlock

SHOWN_FILES = 20
"""Files in one block (compaction 7.2); the rest is counted. More would crowd out the summary."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE | re.ASCII)
_BLOCKS = re.compile(r"<(files|read-files|modified-files)>.*?</\1>\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FileOps:
    """Paths that were read and paths that were written or edited, as the model spelled them."""

    read: frozenset[str] = frozenset()
    modified: frozenset[str] = frozenset()

    @property
    def read_files(self) -> tuple[str, ...]:
        """Files that were only read, by code point."""
        return tuple(sorted(self.read - self.modified))

    @property
    def modified_files(self) -> tuple[str, ...]:
        """Files that were changed, by code point."""
        return tuple(sorted(self.modified))

    def __or__(self, other: "FileOps") -> "FileOps":
        return FileOps(self.read | other.read, self.modified | other.modified)


@dataclass(frozen=True, slots=True)
class FileHistory:
    """What earlier compactions of the path recorded. ``base_id``: the newest of them, None to start over."""

    ops: FileOps = FileOps()
    base_id: str | None = None


@dataclass(slots=True)
class _Folder:
    files: list[str] = field(default_factory=list[str])
    folders: "dict[str, _Folder]" = field(default_factory=dict[str, "_Folder"])


def collect_file_ops(messages: Iterable[Message]) -> FileOps:
    """The files the read, write and edit calls of these messages name; addresses (``x://``) are left out."""
    read: set[str] = set()
    modified: set[str] = set()
    for message in messages:
        if not isinstance(message, AssistantMessage):
            continue
        for call in message.content:
            if isinstance(call, ToolCallBlock) and (path := _file_of(call)) is not None:
                (read if call.name == "read" else modified).add(path)
    return FileOps(frozenset(read), frozenset(modified))


def resolve_file_history(path: Sequence[Entry], compaction: CompactionEntry | None) -> FileHistory:
    """The union of the file lists recorded by ``compaction`` and the chain of compactions it builds on.

    A link must name an earlier compaction of the path; the walk ends at one that does not, at a record of
    full lists (older files) and at one written by an extension, whose lists mean nothing here.
    """
    positions = {entry.id: index for index, entry in enumerate(path) if isinstance(entry, CompactionEntry)}
    ops = FileOps()
    base_id: str | None = None
    current = compaction
    while current is not None:
        details = _details_of(current)
        if details is None:
            break
        base_id = base_id or current.id
        ops |= recorded_file_ops(details)
        if "readFiles" in details or "modifiedFiles" in details:
            break
        current = _earlier(path, positions, current.id, details.get("base"))
    return FileHistory(ops, base_id)


def recorded_file_ops(details: object) -> FileOps:
    """The lists an entry holds, whole ones and those of what was added; none where there are no lists."""
    if not isinstance(details, Mapping):
        return FileOps()
    lists = cast("Mapping[str, Any]", details)
    return FileOps(
        _paths(lists, "readFilesAdded", "readFiles"), _paths(lists, "modifiedFilesAdded", "modifiedFiles")
    )


def delta_details(history: FileHistory, new: FileOps) -> dict[str, Any]:
    """What a new compaction stores: only files the chain before it does not have yet (compaction 7.4)."""
    details: dict[str, Any] = {} if history.base_id is None else {"base": history.base_id}
    details["readFilesAdded"] = sorted(new.read - history.ops.read)
    details["modifiedFilesAdded"] = sorted(new.modified - history.ops.modified)
    return details


def render_files(ops: FileOps) -> str:
    """The ``<files>`` block: a folded tree with a mark on each file, or "" without files."""
    lines = _tree_lines(ops)
    if not lines:
        return ""
    body = "\n".join(line.replace("</", "<\\/") for line in lines)
    return f"<files>\n{body}\n</files>"


def upsert_files(text: str, block: str) -> str:
    """The text with exactly this block at its end, or none when ``block`` is ""; older blocks are removed."""
    base, removed = _BLOCKS.subn("", text)
    while removed:
        base, removed = _BLOCKS.subn("", base)
    base = base.rstrip()
    if not base or not block:
        return base or block
    return f"{base}\n\n{block}"


def _file_of(call: ToolCallBlock) -> str | None:
    path: object = call.arguments.get("path")
    if call.name not in ("read", "write", "edit") or not isinstance(path, str) or not path:
        return None
    if _SCHEME.search(path):
        return None
    return split_selector(path)[0] if call.name == "read" else path


def _details_of(compaction: CompactionEntry) -> Mapping[str, Any] | None:
    """The stored lists, or None where there are none that can be relied on."""
    if compaction.from_extension or not isinstance(compaction.details, Mapping):
        return None
    details = cast("Mapping[str, Any]", compaction.details)
    names = ("readFilesAdded", "modifiedFilesAdded", "readFiles", "modifiedFiles")
    return details if any(isinstance(details.get(name), list) for name in names) else None


def _paths(details: Mapping[str, Any], *names: str) -> frozenset[str]:
    found: set[str] = set()
    for name in names:
        value: object = details.get(name)
        if isinstance(value, list):
            items = cast("list[object]", value)
            found.update(
                item for item in items if isinstance(item, str) and item and not _SCHEME.search(item)
            )
    return frozenset(found)


def _earlier(
    path: Sequence[Entry], positions: Mapping[str, int], compaction_id: str, base: object
) -> CompactionEntry | None:
    if not isinstance(base, str) or base not in positions:
        return None
    index = positions[base]
    entry = path[index]
    earlier = index < positions.get(compaction_id, len(path))
    return entry if earlier and isinstance(entry, CompactionEntry) else None


def _tree_lines(ops: FileOps) -> list[str]:
    paths = sorted(ops.read | ops.modified)
    root = _Folder()
    for path in paths[:SHOWN_FILES]:
        *folders, name = path.replace("\\", "/").split("/")
        folder = root
        for part in folders:
            folder = folder.folders.setdefault(part, _Folder())
        folder.files.append(f"{name} ({_mark(path, ops)})")
    lines = _folder_lines(root)
    if len(paths) > SHOWN_FILES:
        lines.append(f"[…{len(paths) - SHOWN_FILES} files elided…]")
    return [" ".join(line.splitlines()) for line in lines]


def _folder_lines(root: _Folder) -> list[str]:
    """Files first, then folders; a folder that holds only one folder shares its line."""
    lines = list(root.files)
    waiting = [(name, folder, 1) for name, folder in reversed(root.folders.items())]
    while waiting:
        name, folder, depth = waiting.pop()
        while not folder.files and len(folder.folders) == 1:
            part, folder = next(iter(folder.folders.items()))
            name = f"{name}/{part}"
        lines.append(f"{'#' * depth} {name}/")
        lines.extend(folder.files)
        waiting.extend((inner, child, depth + 1) for inner, child in reversed(folder.folders.items()))
    return lines


def _mark(path: str, ops: FileOps) -> str:
    if path not in ops.modified:
        return "Read"
    return "RW" if path in ops.read else "Write"
