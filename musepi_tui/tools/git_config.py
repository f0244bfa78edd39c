"""Whether a project's git configuration makes git run programs (safety 7.4). Reads one small file."""

import re
from pathlib import Path

_CONFIG_BYTES = 262_144
_SECTION = re.compile(r"\[\s*([\w.-]+)(?:\s+\"[^\"]*\")?\s*\]")
_KEY = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=\s*(.*))?")
_RUNNING_KEYS = frozenset(
    {
        "core.fsmonitor",
        "core.hookspath",
        "core.pager",
        "core.editor",
        "core.sshcommand",
        "diff.external",
        "diff.command",
        "diff.textconv",
        "filter.clean",
        "filter.smudge",
        "filter.process",
        "merge.driver",
        "credential.helper",
        "gpg.program",
        "include.path",
        "includeif.path",
    }
)
_HARMLESS_VALUES = frozenset({"true", "false", "1", "0", "yes", "no", "on", "off"})


def key_that_runs_programs(folder: Path) -> str | None:
    """The first such key of the repository git would use in ``folder``, None without one.

    A ``.git`` that is a file points to a configuration elsewhere, which is not followed: it counts as one.
    """
    for place in (folder, *folder.parents):
        repository = place / ".git"
        if not repository.exists():
            is_bare = (place / "HEAD").is_file() and (place / "objects").is_dir()
            if not is_bare:
                continue
            repository = place
        try:
            with (repository / "config").open("rb") as file:
                return _first_running_key(file.read(_CONFIG_BYTES).decode("utf-8", "replace"))
        except OSError:
            return f"{repository} cannot be looked into"
    return None


def _first_running_key(text: str) -> str | None:
    section = ""
    for line in text.replace("\\\n", " ").splitlines():
        header = _SECTION.match(line.strip())
        if header is not None:
            section = header[1].lower().split(".", 1)[0]
            line = line.strip()[header.end() :]  # a key may follow on the same line
        key = _KEY.match(line)
        if key is None:
            continue
        name, value = f"{section}.{key[1].lower()}", (key[2] or "").strip()
        if name in _RUNNING_KEYS and value.lower() not in _HARMLESS_VALUES:
            return name
        if section == "alias" and value.startswith(("!", '"!')):
            return name
    return None
