"""Places nobody writes or reads without being asked (SAF-75, SAF-76). Names only, the disk is not read."""

import re
from collections.abc import Sequence
from pathlib import Path

_PROTECTED_FOLDERS = frozenset(
    {
        ".git",
        ".musepi",
        ".claude",
        ".codex",
        ".gemini",
        ".cursor",
        ".vscode",
        ".idea",
        ".husky",
        ".devcontainer",
    }
)
"""Whatever lies in them is run or obeyed by some program as soon as the folder is opened."""

_PROTECTED_FILES = frozenset(
    {".mcp.json", ".envrc", ".npmrc", ".pypirc", ".netrc", ".gitmodules", ".gitattributes"}
)

_SHELL_PROFILES = frozenset(
    {
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bash_aliases",
        ".profile",
        ".zshrc",
        ".zprofile",
        ".zshenv",
        ".zlogin",
        ".zlogout",
        ".cshrc",
        ".tcshrc",
        ".kshrc",
        "config.fish",
    }
)

_SECRET_FILES = frozenset({".netrc", ".npmrc", ".pypirc"})
_SECRET_SUFFIXES = frozenset({".pem", ".key", ".p12", ".kdbx"})
_SECRET_HOME_PLACES = (".aws", ".ssh", ".gnupg", ".config/gcloud", ".kube/config")
_PRIVATE_KEY = re.compile(r"id_[a-z0-9_-]+(?:\.(?:bak|old|orig|backup|\d+))?")
"""Names ssh gives private keys. Not ``id_*`` with any ending: that would ask for every ``id_map.py``."""


def protected_reason(parts: Sequence[str], path: Path, home: Path) -> str | None:
    """Why writing here asks, or None. ``parts`` are those below the root, all of them for a path outside."""
    names = [part.casefold() for part in parts]
    folder = next((name for name in names if name in _PROTECTED_FOLDERS), None)
    if folder is not None:
        return f"{folder} holds files that other programs obey"
    if any(pair == (".github", "workflows") for pair in zip(names, names[1:], strict=False)):
        return ".github/workflows holds files that other programs obey"
    if names and names[-1] in _PROTECTED_FILES:
        return f"{names[-1]} is a file that other programs obey"
    if path.name.casefold() in _SHELL_PROFILES and (
        path.parent == home or path.is_relative_to(home / ".config")
    ):
        return f"{path.name} is run by every new shell"
    return None


def secret_reason(path: Path, home: Path) -> str | None:
    """Why reading this file asks, or None. A place in the home folder stands for everything below it."""
    name = path.name.casefold()
    if names_secret_file(name):
        return f"{path.name} may hold secrets"
    for place in _SECRET_HOME_PLACES:
        if path.is_relative_to(home / place):
            return f"~/{place} holds credentials"
    if path.parts[:2] == ("/", "proc") and name == "environ":
        return "the environment of a process holds secrets"
    return None


def names_secret_file(name: str) -> bool:
    """Whether a file of that name (any case, any folder) may hold secrets."""
    name = name.casefold()
    if name.startswith(".env") and name not in (".envrc", ".env.example"):
        return name == ".env" or name[4] in "._-"
    return (
        name in _SECRET_FILES
        or any(name.endswith(suffix) for suffix in _SECRET_SUFFIXES)
        or _PRIVATE_KEY.fullmatch(name) is not None
    )
