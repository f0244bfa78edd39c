"""Where things are kept: config, data and state folders, names of session files (session-format 1)."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import platformdirs

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SessionError
from musepi_tui.session.entries import SessionHeader

NAME_BYTES = 200
KEPT_BYTES = 180
"""Folder names over ``NAME_BYTES`` keep this much: most file systems stop at 255, and a hash is added."""


@dataclass(frozen=True, slots=True)
class ToolRoot:
    """Where another tool keeps its sessions: what the glob ``pattern`` finds below ``folder``, or that.

    ``tool`` is ``pi musepi omp veyyon claude`` or ``codex``.
    """

    tool: str
    folder: Path
    pattern: str = ""

    def roots(self) -> tuple[Path, ...]:
        """The sessions roots that exist now."""
        try:
            found = sorted(self.folder.glob(self.pattern)) if self.pattern else [self.folder]
            return tuple(path for path in found if path.is_dir())
        except OSError:
            return ()


@dataclass(frozen=True, slots=True)
class Paths:
    """The three folders of the program, and where other tools keep their sessions (only ever read)."""

    config: Path
    data: Path
    state: Path
    tools: tuple[ToolRoot, ...] = ()

    @property
    def sessions(self) -> Path:
        """The root of musepi's own session files."""
        return self.data / "sessions"

    @property
    def own_ranks(self) -> Path | None:
        """The person's own ranks of ``cl100k_base``, for counting tokens; None when there is no such file."""
        ranks = self.data / "tokenizers" / "cl100k_base.tiktoken"
        return ranks if ranks.is_file() else None


def find_paths(environ: Mapping[str, str]) -> Paths:
    """The folders: all under ``MUSEPI_HOME`` when that is set, else the platform's user folders.

    Raises ``SessionError`` for the home folder of somebody unknown.
    """
    tools = find_tool_roots(environ)
    home = environ.get("MUSEPI_HOME")
    if home:
        root = expand_home(home).absolute()
        return Paths(config=root, data=root, state=root / "state", tools=tools)
    return Paths(
        config=platformdirs.user_config_path("musepi", appauthor=False),
        data=platformdirs.user_data_path("musepi", appauthor=False),
        state=platformdirs.user_state_path("musepi", appauthor=False),
        tools=tools,
    )


def find_tool_roots(environ: Mapping[str, str]) -> tuple[ToolRoot, ...]:
    """Where other tools keep their sessions, with the variables that move them. Looks at no disk."""
    home = _home(environ)
    if home is None:
        return ()

    def named(variable: str, usual: str) -> Path:
        """What a variable says, a name without a slash below the home folder; else the usual place."""
        value = environ.get(variable, "").strip()
        if value == "~" or value.startswith("~/"):
            return home / value[2:]
        return home / (value or usual)

    found = [
        ToolRoot("pi", named("PI_CODING_AGENT_DIR", ".pi/agent") / "sessions"),
        ToolRoot("musepi", named("MUSEPI_CODING_AGENT_DIR", ".musepi/agent") / "sessions"),
        ToolRoot("omp", named("OMP_CODING_AGENT_DIR", ".omp/agent") / "sessions"),
        ToolRoot("omp", home / ".omp" / "profiles", "*/agent/sessions"),
        ToolRoot("veyyon", named("VEYYON_CONFIG_DIR", ".veyyon") / "profiles", "*/agent/sessions"),
        ToolRoot("claude", named("CLAUDE_CONFIG_DIR", ".claude") / "projects"),
        ToolRoot("codex", named("CODEX_HOME", ".codex") / "sessions"),
    ]
    if environ.get("VEYYON_CODING_AGENT_DIR"):
        found.insert(4, ToolRoot("veyyon", named("VEYYON_CODING_AGENT_DIR", "") / "sessions"))
    flat = (("pi", "PI_CODING_AGENT_SESSION_DIR"), ("musepi", "MUSEPI_CODING_AGENT_SESSION_DIR"))
    found += [ToolRoot(tool, named(variable, "")) for tool, variable in flat if environ.get(variable)]
    return tuple(found)


def tool_of_path(paths: Paths, path: Path) -> str | None:
    """The other tool in whose folders a file lies; None for musepi's own folder and for all other places."""
    if path.is_relative_to(paths.sessions):
        return None
    return next((root.tool for root in paths.tools if path.is_relative_to(root.folder)), None)


def _home(environ: Mapping[str, str]) -> Path | None:
    given = environ.get("HOME")
    if given:
        return Path(given)
    try:
        return Path.home()
    except RuntimeError:  # nobody knows this user
        return None


def session_dir_override(environ: Mapping[str, str], setting: str | None = None) -> Path | None:
    """The folder that replaces the sessions root: ``MUSEPI_SESSION_DIR``, else the setting, else None.

    Raises ``SessionError`` for the home folder of somebody unknown.
    """
    chosen = environ.get("MUSEPI_SESSION_DIR") or setting
    return expand_home(chosen).absolute() if chosen else None


def expand_home(text: str) -> Path:
    """The path a person typed, ``~`` spelled out. Raises ``SessionError`` for somebody unknown."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise SessionError(f"{text}: nobody knows whose home folder that is") from error


def resolve_path(path: Path) -> Path:
    """The absolute path, links followed. Raises ``SessionError`` for links that lead in a circle."""
    try:
        return path.resolve()
    except RuntimeError as error:
        raise SessionError(f"{path}: its symbolic links lead in a circle") from error
    except ValueError as error:
        raise SessionError(f"{str(path)!r}: {error}") from error


def session_folder(paths: Paths, cwd: Path, override: Path | None = None) -> Path:
    """The folder for sessions of ``cwd``; ``override`` holds the files of all folders flat."""
    return override if override is not None else paths.sessions / encode_cwd(cwd.resolve())


def session_path(folder: Path, header: SessionHeader) -> Path:
    """The file of a session: its time and its id."""
    stamp = header.timestamp.replace(":", "-").replace(".", "-")
    return folder / f"{stamp}_{header.id}.jsonl"


def artifact_folder(path: Path) -> Path:
    """The folder of what belongs to a session file: its path without the ending."""
    return path.with_suffix("") if path.suffix == ".jsonl" else path.with_name(path.name + ".d")


def encode_cwd(cwd: Path) -> str:
    """The folder name for an absolute path, in the spelling of pi."""
    text = _dashed(_without_root(str(cwd)))
    if len(f"--{text}--".encode("utf-8", "surrogateescape")) > NAME_BYTES:
        raw = str(cwd).encode("utf-8", "surrogateescape")
        kept = text.encode("utf-8", "surrogateescape")[: KEPT_BYTES - 2].decode("utf-8", "ignore")
        text = f"{kept}-{_digest(raw)[:12]}"
    return f"--{text}--"


def folders_of(root: Path, cwd: Path) -> Iterator[Path]:
    """Existing folders below ``root`` that may hold sessions of ``cwd``, under every spelling in use."""
    resolved = cwd.resolve()
    names = [encode_cwd(resolved), encode_cwd(cwd.absolute()), *_short_names(resolved)]
    digest = _digest(str(resolved).encode("utf-8", "surrogateescape"))
    for name in dict.fromkeys(names):
        if _is_folder(root / name):
            yield root / name
    if _is_folder(root):
        yield from (folder for folder in root.glob(f"*-{digest}") if _is_folder(folder))


def _is_folder(path: Path) -> bool:
    """Whether there is such a folder. A name that is too long for one is none, and so is what nobody may
    look at."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _digest(data: bytes) -> str:
    """SHA-256 in hex digits."""
    import hashlib  # deferred: the start needs no digest

    return hashlib.sha256(data).hexdigest()


def _short_names(cwd: Path) -> Iterator[str]:
    """The spellings relative to the home and temporary folders."""
    for prefix, base in (("-", Path.home()), ("-tmp", Path(tempfile.gettempdir()))):
        try:
            relative = cwd.relative_to(base.resolve())
        except ValueError:
            continue
        text = "" if relative == Path() else _dashed(str(relative))
        separator = "-" if text and prefix != "-" else ""
        yield f"{prefix}{separator}{text}"


def _without_root(text: str) -> str:
    return text[1:] if text[:1] in ("/", "\\") else text


def _dashed(text: str) -> str:
    return text.replace("/", "-").replace("\\", "-").replace(":", "-")


def same_folder(stored: str, cwd: Path) -> bool:
    """Whether a header's ``cwd`` names the folder ``cwd``."""
    if not stored:
        return False
    return stored in (str(cwd), str(cwd.absolute())) or os.path.realpath(stored) == str(cwd.resolve())
