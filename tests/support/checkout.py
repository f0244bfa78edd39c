"""The checkout the tests run from."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "musepi_tui"


def sources() -> list[Path]:
    """Every Python file of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def own_files() -> list[Path]:
    """Every file of the checkout that is not ignored or made by a tool."""
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().split()}
    skipped = {".git", "__pycache__", *(name for name in ignored if "*" not in name)}
    found: list[Path] = []
    folders = [ROOT]
    while folders:
        for path in folders.pop().iterdir():
            if path.name in skipped or path.name.endswith(".egg-info"):
                continue
            if path.is_dir():
                folders.append(path)
            else:
                found.append(path)
    return sorted(found)
