"""The scratch project the demo works on: a small real program with a real bug and real tests."""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

README = "README.md"
LEDGER = "tally/ledger.py"
REPORT = "tally/report.py"
LEDGER_TESTS = "tests/test_ledger.py"
REPORT_TESTS = "tests/test_report.py"
EXPORT = "tally/export.py"
EXPORT_TESTS = "tests/test_export.py"

_AT_START = (README, LEDGER, REPORT, LEDGER_TESTS, REPORT_TESTS)
_PACKAGES = ("tally", "tests")

BUG = "    share = total_cents // people\n    return [share] * people\n"
"""The bug: what is left of the division is lost."""

FIX = (
    "    share, rest = divmod(total_cents, people)\n"
    "    return [share + 1 if place < rest else share for place in range(people)]\n"
)


class ScratchProject:
    """A temporary folder (mode 0700) with the project. It is made when first needed, and made again when it
    is gone; ``remove`` and the end of the process delete it. Every method may block on the disk."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def folder(self) -> Path:
        """The folder, made if need be. Raises ``OSError``."""
        if self._folder is None or not self._folder.is_dir():
            self._folder = _make_folder()
        for name in _AT_START:
            if not self.path(name).is_file():
                self._write(name)
        return self._folder

    def path(self, name: str) -> Path:
        """The absolute path of a file of the project."""
        return (self._folder or self.folder()) / name

    def put_bug_back(self) -> bool:
        """Undoes an earlier fix; false when the file is as it was at the start."""
        self.folder()
        if self.path(LEDGER).read_text(encoding="utf-8") == sample_text(LEDGER):
            return False
        self._write(LEDGER)
        return True

    def remove_additions(self) -> bool:
        """Removes what the demo added in an earlier turn; false when there is nothing."""
        self.folder()
        added = [self.path(name) for name in (EXPORT, EXPORT_TESTS) if self.path(name).exists()]
        for path in added:
            path.unlink()
        return bool(added)

    def remove(self) -> None:
        """Deletes the folder."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _write(self, name: str) -> None:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(sample_text(name), encoding="utf-8")


@cache
def sample_text(name: str) -> str:
    """A file of the project at the start. Python files are packed as ``.txt``: they are data here."""
    packed = files("musepi_tui.providers.demo") / "sample" / (f"{name}.txt" if name.endswith(".py") else name)
    return packed.read_text(encoding="utf-8")


def tests_command(folder: Path) -> str:
    """The shell command that runs the tests of the project, from any working folder.

    One plain command, so that allowing it for the session covers the second run. ``-B``: an edit in the same
    second as a run would otherwise meet byte code of the old text. ``-I``: the user's own folder stays out.
    """
    return f"{shlex.quote(_find_python())} -IB -m unittest discover -s {shlex.quote(os.fspath(folder))}"


def _make_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="musepi-demo-")).resolve()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for package in _PACKAGES:
        (folder / package).mkdir()
        (folder / package / "__init__.py").touch()
    return folder


def _find_python() -> str:
    """``python3`` where there is one, else the path of the interpreter musepi runs on.

    The sample needs the standard library alone, so any of them will do, and a plain name reads best.
    """
    return "python3" if shutil.which("python3") else sys.executable
