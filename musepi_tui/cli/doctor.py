"""``musepi doctor``: checks this machine's set-up and says what to do about what is missing."""

import locale
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from musepi_tui.base.log import log_path
from musepi_tui.base.process import find_program
from musepi_tui.cli.parser import Parser
from musepi_tui.cli.tables import print_json, print_line
from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.settings.load import load_settings
from musepi_tui.storage.paths import Paths, find_paths


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; ``remedy`` is empty when nothing has to be done."""

    check: str
    status: Literal["ok", "warning", "error"]
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the checks look at."""

    paths: Paths
    environ: Mapping[str, str]


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs every check; the exit code is 1 when one is an error."""
    parser = Parser(prog="musepi doctor", description="Check this machine's set-up.")
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args(arguments).json
    machine = Machine(find_paths(environ), environ)
    checks = [check(machine) for check in _CHECKS]
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        for check in checks:
            _print(check)
    return 1 if any(check.status == "error" for check in checks) else 0


def _print(check: Check) -> None:
    mark = {"ok": "ok     ", "warning": "warning", "error": "error  "}[check.status]
    print_line(f"{mark}  {check.check}: {check.detail}")
    if check.remedy:
        print_line(f"         {check.remedy}")


def _python(_: Machine) -> Check:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return Check("python", "ok", f"{version} at {sys.executable}")


def _terminal(machine: Machine) -> Check:
    term = machine.environ.get("TERM", "")
    if not term or term == "dumb":
        remedy = "Set TERM, for example to xterm-256color; musepi -p works without a screen."
        return Check("terminal", "warning", "TERM is dumb or unset", remedy)
    inside = " inside tmux" if machine.environ.get("TMUX") else ""
    return Check("terminal", "ok", f"{term}{inside}")


def _colors(machine: Machine) -> Check:
    if "NO_COLOR" in machine.environ:
        return Check("colours", "ok", "none, because NO_COLOR is set")
    if machine.environ.get("COLORTERM", "").lower() in {"truecolor", "24bit"}:
        return Check("colours", "ok", "24 bit")
    if "256" in machine.environ.get("TERM", ""):
        return Check("colours", "ok", "256; set COLORTERM=truecolor if the terminal can do more")
    return Check("colours", "ok", "16")


def _text(_: Machine) -> Check:
    encoding = locale.getpreferredencoding(False)  # noqa: FBT003 - the standard library's own signature
    if encoding.lower().replace("-", "") == "utf8":
        return Check("text", "ok", encoding)
    return Check("text", "warning", f"{encoding}, so plain signs are drawn", "Set LANG to a UTF-8 locale.")


def _ripgrep(_: Machine) -> Check:
    found = find_program("rg")
    if found:
        return Check("ripgrep", "ok", found)
    return Check("ripgrep", "warning", "not found; searching large projects is slower", "Install ripgrep.")


def _git(_: Machine) -> Check:
    found = find_program("git")
    return Check("git", "ok", found) if found else Check("git", "warning", "not found", "Install git.")


def _folders(machine: Machine) -> Check:
    for folder in (machine.paths.config, machine.paths.data, machine.paths.state):
        existing = _nearest(folder)
        if not os.access(existing, os.W_OK | os.X_OK):
            remedy = "Make it writable, or point MUSEPI_HOME at a folder that is."
            return Check("folders", "error", f"{existing} is not writable", remedy)
    return Check("folders", "ok", f"config {machine.paths.config}, data {machine.paths.data}")


def _nearest(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.exists())


def _settings(machine: Machine) -> Check:
    loaded = load_settings(machine.paths.config, None, environ=machine.environ)
    if not loaded.problems:
        return Check("settings", "ok", f"{len(loaded.sources)} changed from their defaults")
    status = "error" if loaded.broken else "warning"
    first = loaded.problems[0]
    return Check(
        "settings", status, f"{first.path}: {first.message}", "Mend the file; musepi config path names yours."
    )


def _models(machine: Machine) -> Check:
    registry = ModelRegistry.load(machine.paths.config, machine.environ)
    if registry.problems:
        return Check(
            "models", "error", registry.problems[0], "Mend the file; the built-in models stay usable."
        )
    usable = [model for model in registry.available() if model.provider != "demo"]
    if not usable:
        remedy = "Set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or add a server to models.json."
        return Check("models", "warning", "no key is configured; only the demo answers", remedy)
    providers = sorted({model.provider for model in usable})
    return Check("models", "ok", f"{len(usable)} usable, from {', '.join(providers)}")


def _log(machine: Machine) -> Check:
    return Check("log", "ok", str(log_path(machine.paths.state)))


_CHECKS: tuple[Callable[[Machine], Check], ...] = (
    _python,
    _terminal,
    _colors,
    _text,
    _ripgrep,
    _git,
    _folders,
    _settings,
    _models,
    _log,
)
