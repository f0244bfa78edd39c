"""Full outputs of tools, next to the session file (session-format 13)."""

import os
import re
from pathlib import Path

from musepi_tui.base.errors import ToolError
from musepi_tui.base.files import atomic_write, make_private_folder

_OTHER_CHARS = re.compile(r"[^A-Za-z0-9_-]+")
_NUMBERED = re.compile(r"(\d+)\.")
_NAME_CHARS = 64


class ArtifactStore:
    """The artifacts of one session: files ``<n>.<tool>.log`` in a folder that is made when first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, tool: str, text: str) -> str:
        """Stores the text, synced, and returns its id (digits). Raises ``OSError``."""
        artifact_id, path = self.create(tool)
        atomic_write(path, text.encode("utf-8", "surrogatepass"), mode=0o600)
        return artifact_id

    def create(self, tool: str) -> tuple[str, Path]:
        """A new empty file and its id, for output that is written while it comes. Raises ``OSError``."""
        make_private_folder(self._folder)
        number = max(self._numbers(), default=-1) + 1
        while True:
            path = self._folder / f"{number}.{_file_name(tool)}.log"
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except FileExistsError:
                number += 1
                continue
            os.close(descriptor)
            return str(number), path

    def find(self, artifact_id: str) -> Path:
        """The file of an id. Raises ``ToolError`` naming the existing ids."""
        if not re.fullmatch(r"[0-9]{1,9}", artifact_id):
            raise ToolError(f"artifact:// ID must be numeric, got: {artifact_id}")
        if not self._folder.is_dir():
            raise ToolError("No artifacts directory found")
        number = int(artifact_id)
        paths = (path for path in sorted(self._folder.iterdir()) if _number_of(path) == number)
        found = next(paths, None)
        if found is None:
            known = ", ".join(str(number) for number in sorted(self._numbers())) or "none"
            raise ToolError(f"There is no artifact {artifact_id}. Existing ids: {known}.")
        return found

    def _numbers(self) -> set[int]:
        if not self._folder.is_dir():
            return set()
        numbers = (_number_of(path) for path in self._folder.iterdir())
        return {number for number in numbers if number is not None}


def _number_of(path: Path) -> int | None:
    match = _NUMBERED.match(path.name)
    return int(match[1]) if match else None


def _file_name(tool: str) -> str:
    return _OTHER_CHARS.sub("_", tool).strip("_")[:_NAME_CHARS] or "tool"
