"""Large payloads outside the session files, named by the SHA-256 of their bytes (session-format 12)."""

import base64
import hashlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from musepi_tui.base.files import atomic_write, make_private_folder, read_regular
from musepi_tui.session.payload import IMAGE_PREFIX, PayloadForm, with_payloads
from musepi_tui.storage.paths import find_paths

MAX_IMAGE_BYTES = 20 * 1024 * 1024
"""Larger pictures are not decoded anywhere (SAF-144), so they are not read either."""

MAX_TEXT_BYTES = 256 * 1024 * 1024
"""As long as a line may be."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_FILE_MODE = 0o600


class BlobStore:
    """The blobs one session may refer to: those of the tool it belongs to, then our own.

    ``own`` gives our folder when it is first needed. Reading never creates anything.
    """

    def __init__(self, own: Callable[[], Path], session_path: Path | None = None) -> None:
        self._own = own
        self._session_path = session_path

    @classmethod
    def of_session(cls, path: Path) -> "BlobStore":
        """The store for a session file; our own folder is that of this process's user."""
        return cls(lambda: find_paths(os.environ).data / "blobs", path)

    def read(self, digest: str) -> bytes | None:
        """The bytes of a blob; None when no folder has them, or has others under this name."""
        return self._read(digest, MAX_TEXT_BYTES)

    def put(self, data: bytes) -> str:
        """Stores bytes in our own folder, durably, and returns the reference to write into the line.

        Raises ``OSError``; then the line must not be written with the reference.
        """
        digest = hashlib.sha256(data).hexdigest()
        folder = self._own()
        path = folder / digest
        if not path.is_file() or path.stat().st_size != len(data):
            make_private_folder(folder)
            atomic_write(path, data, mode=_FILE_MODE)
        else:
            os.utime(path)  # it is wanted again: what nobody mentions is deleted by its age
        return IMAGE_PREFIX + digest

    def resolve(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """A parsed line with the payloads in place of their references; missing ones stay references."""
        return with_payloads(fields, self._text)

    def _text(self, digest: str, form: PayloadForm) -> str | None:
        data = self._read(digest, MAX_IMAGE_BYTES if form is PayloadForm.BASE64 else MAX_TEXT_BYTES)
        if data is None:
            return None
        if form is PayloadForm.BASE64:
            return base64.b64encode(data).decode("ascii")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return None

    def _read(self, digest: str, limit_bytes: int) -> bytes | None:
        if _DIGEST.fullmatch(digest) is None:  # before it becomes a part of a path (SAF-79)
            return None
        for folder in self._folders():
            try:
                data = read_regular(folder / digest, limit_bytes)
            except OSError:
                continue
            if hashlib.sha256(data).hexdigest() == digest:
                return data
        return None

    def _folders(self) -> tuple[Path, ...]:
        beside = None if self._session_path is None else blob_folder_beside(self._session_path)
        own = self._own()
        return (own,) if beside is None or beside == own else (beside, own)


def blob_folder_beside(session_path: Path) -> Path | None:
    """The blob folder of the tool whose sessions root holds a file: ``blobs`` next to ``sessions``.

    A session of a sub-agent lies deeper; every folder above counts. None for a file that lies elsewhere.
    """
    for folder in session_path.absolute().parents:
        if folder.name == "sessions":
            return folder.parent / "blobs"
    return None
