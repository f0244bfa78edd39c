"""Writing a session out: html, md, txt or jsonl, wholly or not at all (contract 3, SAF-8)."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SessionError, UsageError
from musepi_tui.base.files import replacing
from musepi_tui.base.known_secrets import KnownSecrets
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.blobs import BlobStore
from musepi_tui.storage.exporters.cleaning import Mask
from musepi_tui.storage.exporters.items import ExportSource
from musepi_tui.storage.exporters.jsonl import LineExport
from musepi_tui.storage.exporters.writer import ItemWriter
from musepi_tui.storage.loading import LoadedSession
from musepi_tui.storage.paths import artifact_folder

FORMATS = (".html", ".md", ".txt", ".jsonl")
"""What can be written, by the ending of the file. All but ``.jsonl`` show one path."""

FILE_MODE = 0o600
"""A conversation is private until its owner decides otherwise (SAF-105)."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How to export. ``secrets`` None masks nothing. ``inline`` puts blobs in their place in ``.jsonl``; the
    other forms always do. ``force`` allows a file to be replaced."""

    secrets: KnownSecrets | None
    force: bool = False
    inline: bool = False


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written. ``warnings`` are sentences for the person."""

    path: Path
    size_bytes: int
    warnings: tuple[str, ...] = ()


def source_of(loaded: LoadedSession, leaf_id: str | None = None) -> ExportSource:
    """A loaded file as something to export, with another leaf when one is given.

    Raises ``EntryNotFoundError``.
    """
    tree: SessionTree = loaded.tree if leaf_id is None else loaded.tree.with_leaf(leaf_id)
    return ExportSource(loaded.header, loaded.name, tree, loaded.bodies, loaded.path)


def format_of(target: Path) -> str:
    """The ending that says what to write. Raises ``UsageError`` naming the accepted ones."""
    suffix = target.suffix.lower()
    if suffix not in FORMATS:
        what = f"ends in {target.suffix}" if target.suffix else "has no ending"
        raise UsageError(f"{target} {what}; accepted are {', '.join(FORMATS)}.")
    return suffix


def export_session(source: ExportSource, target: Path, options: ExportOptions) -> Exported:
    """Writes the session to ``target``, synced. Blocks; a long session takes seconds and little memory.

    Raises ``UsageError`` for an ending nobody knows, ``SessionError`` for a target that is in the way or
    cannot be written; then nothing was changed.
    """
    suffix = format_of(target)
    _check_target(source, target, force=options.force)
    lines = LineExport(source, options.secrets, _blobs_of(source) if options.inline else None)
    pieces = lines.pieces() if suffix == ".jsonl" else _encoded(_writer(suffix, _mask(options)), source)
    size = 0
    try:
        with replacing(target, mode=_mode(target), only_new=not options.force) as file:
            for piece in pieces:
                size += file.write(piece)
    except FileExistsError as error:
        raise _taken(target) from error
    except OSError as error:
        raise SessionError(f"{target} could not be written: {error.strerror or error}") from error
    return Exported(target, size, tuple(_missing_blobs(lines.missing)))


_WriterType: TypeAlias = Callable[[Mask], ItemWriter]


def _writer(suffix: str, mask: Mask) -> ItemWriter:
    """Deferred imports: each form starts without the others."""
    make: _WriterType
    match suffix:
        case ".html":
            from musepi_tui.storage.exporters.html import HtmlWriter as make
        case ".md":
            from musepi_tui.storage.exporters.markdown import MarkdownWriter as make
        case _:
            from musepi_tui.storage.exporters.text import TextWriter as make
    return make(mask)


def _encoded(writer: ItemWriter, source: ExportSource) -> Iterator[bytes]:
    return (piece.encode("utf-8", "replace") for piece in writer.pieces(source))


def _mask(options: ExportOptions) -> Mask:
    return str if options.secrets is None else options.secrets.mask


def _blobs_of(source: ExportSource) -> BlobStore | None:
    return None if source.file is None else BlobStore.of_session(source.file)


def _missing_blobs(lines: int) -> Iterator[str]:
    if lines:
        what = "1 line names a blob" if lines == 1 else f"{lines:,} lines name blobs"
        yield f"{what} that could not be found; the references stayed as they are."


def _check_target(source: ExportSource, target: Path, *, force: bool) -> None:
    """Raises ``SessionError`` when something is in the way."""
    folder = target.parent
    if not folder.is_dir():
        what = "is no folder" if os.path.lexists(folder) else "does not exist"
        raise SessionError(f"{target} cannot be written: the folder {folder} {what}. Make it first.")
    if source.file is not None:
        if _is_same(source.file, target):
            raise SessionError(f"{target} is the session itself; choose another name.")
        if _is_same(artifact_folder(source.file), target.parent):
            raise SessionError(f"{folder} belongs to the session; choose another folder.")
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise SessionError(f"{target} cannot be written: {error.strerror}") from error
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) or target.is_dir():
        kind = "a folder" if target.is_dir() else "no regular file"
        raise SessionError(f"{target} is {kind}; name a file.")
    if not force:
        raise _taken(target)


def _is_same(first: Path, second: Path) -> bool:
    """Whether both names lead to the same thing, through links of any kind."""
    try:
        return first.samefile(second)
    except OSError:
        return False


def _mode(target: Path) -> int | None:
    """The permission bits of the result: those of the file it replaces, private for a new one."""
    return None if target.is_file() and not target.is_symlink() else FILE_MODE


def _taken(target: Path) -> SessionError:
    return SessionError(f"{target} exists; use --force to replace it, or choose another name.")
