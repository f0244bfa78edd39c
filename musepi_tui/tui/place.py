"""Where the session works, as the footer says it: the folder and its git branch; git is never started."""

from pathlib import Path

from musepi_tui.base.safe_text import display_safe
from musepi_tui.tui.footer import Place

MAX_PARENTS = 40
"""Folders looked at upwards for a repository; a path deeper than that has none."""


def find_place(cwd: Path, home: Path) -> Place:
    """The place of a folder; its path begins with ``~`` inside ``home``."""
    text = str(cwd)
    if cwd == home or home in cwd.parents:
        text = f"~/{cwd.relative_to(home).as_posix()}" if cwd != home else "~"
    branch = read_branch(cwd)
    return Place(display_safe(text), display_safe(branch) if branch else None)


def read_branch(cwd: Path) -> str | None:
    """The branch of the repository ``cwd`` lies in, a short hash when detached, None outside of one."""
    for folder in (cwd, *list(cwd.parents)[:MAX_PARENTS]):
        git = folder / ".git"
        try:
            if git.is_file():  # a worktree or submodule: the file names the real folder
                git = (folder / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()).resolve()
            head = (git / "HEAD").read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
        return head.removeprefix("ref:").strip().removeprefix("refs/heads/") if ":" in head else head[:7]
    return None
