"""From parsed options to an open session behind one of the doors."""

import json
import os
import sys
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

from musepi_tui.base.address import is_web_address
from musepi_tui.base.collector import pause_collector
from musepi_tui.base.errors import SettingsError, UsageError
from musepi_tui.base.log import configure
from musepi_tui.cli.choosing import Place, ask_person, choose_session
from musepi_tui.cli.options import PICK, Options
from musepi_tui.runtime.options import RuntimeOptions
from musepi_tui.settings.load import load_settings
from musepi_tui.storage.paths import expand_home, find_paths

if TYPE_CHECKING:
    from musepi_tui.providers.registry import ModelRegistry

STDIN_LIMIT_BYTES = 10 * 1024 * 1024
"""Longest piped prompt (safety 14): more is hardly meant for a model and would only fail later."""


def launch(options: Options, environ: MutableMapping[str, str]) -> int:
    """Opens the door the options ask for; the exit code. Raises ``MusepiError`` for what a user can mend."""
    if options.offline:
        environ["MUSEPI_OFFLINE"] = "1"
    if options.no_color:
        environ["NO_COLOR"] = "1"
    place = _find_place(options, environ)
    _start_log(options, place, environ)
    if options.mode == "rpc":
        return _serve_rpc(options, place, environ)
    piped = _piped_text()
    if options.mode == "json" or options.print_once or piped is not None:
        return _answer_once(options, place, environ, piped)
    return _open_screen(options, place, environ)


def _find_place(options: Options, environ: MutableMapping[str, str]) -> Place:
    session_dir = options.session_dir.resolve() if options.session_dir else None
    if options.cwd is not None:
        if not options.cwd.is_dir():
            raise UsageError(f"musepi: --cwd {options.cwd}: there is no such folder.")
        os.chdir(options.cwd)
    cwd = Path.cwd()
    paths = find_paths(environ)
    overrides = list(options.setting_overrides())
    if session_dir is not None:
        overrides.append(f"session.dir={json.dumps(str(session_dir))}")
    files = [path.resolve() for path in options.config_files]
    # No project folder: what a project sets counts only once it is trusted, and nothing asks for that yet.
    loaded = load_settings(paths.config, None, overrides=overrides, extra_files=files, environ=environ)
    if loaded.problems and not loaded.broken:
        from musepi_tui.settings.write import migrate_file  # deferred: only where something is to be mended

        migrate_file(paths.config)
    return Place(paths, cwd, loaded)


def _start_log(options: Options, place: Place, environ: MutableMapping[str, str]) -> None:
    wanted = environ.get("MUSEPI_LOG")
    secrets = [options.api_key] if options.api_key else []
    file = expand_home(wanted) if wanted else None
    configure(place.paths.state, verbose=options.verbose, file=file, secrets=secrets)


def _piped_text() -> str | None:
    """What is piped into the program; None when stdin is a terminal, "" when nothing came."""
    if sys.stdin is None or sys.stdin.isatty():
        return None
    data = sys.stdin.buffer.read(STDIN_LIMIT_BYTES + 1)
    if len(data) > STDIN_LIMIT_BYTES:
        raise UsageError(
            "musepi: more than 10 MiB came on stdin; put it into a file and name that in the prompt."
        )
    return data.decode("utf-8", "replace")


def _answer_once(options: Options, place: Place, environ: MutableMapping[str, str], piped: str | None) -> int:
    prompts = list(options.prompts)
    if piped and piped.strip():
        prompts[:1] = ["\n\n".join([piped.rstrip("\n"), *prompts[:1]])]
    if not prompts:
        raise UsageError(
            'musepi: there is no prompt. Give one: musepi -p "text", or start musepi in a terminal.'
        )
    _refuse_broken_settings(place)
    from musepi_tui.cli import json_mode, print_mode  # deferred: asyncio, only for these doors

    runtime_options = make_runtime_options(options, place, environ, interactive=False)
    run = json_mode.run if options.mode == "json" else print_mode.run
    return run(runtime_options, tuple(prompts))


def _serve_rpc(options: Options, place: Place, environ: MutableMapping[str, str]) -> int:
    if options.prompts:
        raise UsageError("musepi: --mode rpc takes prompts on stdin, not as arguments.")
    _refuse_broken_settings(place)
    from musepi_tui.cli.rpc import run_rpc  # deferred: asyncio, only for this door

    return run_rpc(make_runtime_options(options, place, environ, interactive=True))


def _open_screen(options: Options, place: Place, environ: MutableMapping[str, str]) -> int:
    _require_terminal(environ)
    pause_collector()  # resumed by the app once the session is loaded
    from musepi_tui.cli.screen_mode import run_screen  # deferred: Textual, only for this door

    runtime_options = make_runtime_options(options, place, environ, interactive=True)
    return run_screen(runtime_options, environ, options.prompts, pick=options.resume == PICK)


def _require_terminal(environ: MutableMapping[str, str]) -> None:
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        raise UsageError('musepi: the screen needs a terminal. Without one: musepi -p "text".')
    if environ.get("TERM", "dumb") == "dumb":
        raise UsageError('musepi: TERM is dumb or unset, so no screen can be drawn. Try: musepi -p "text".')


def _refuse_broken_settings(place: Place) -> None:
    if not place.settings.broken:
        return  # what was left out of a readable file is told by the session, once
    problem = next(problem for problem in place.settings.problems if not problem.key)
    where = f":{problem.line}:{problem.column}" if problem.line is not None else ""
    raise SettingsError(f"{problem.path}{where}: {problem.message}")


def make_runtime_options(
    options: Options, place: Place, environ: MutableMapping[str, str], *, interactive: bool
) -> RuntimeOptions:
    """What the runtime is opened with.

    Raises ``SessionError`` when a named session cannot be found, ``UsageError`` for an extension that cannot.
    """
    _require_extensions(options)
    screen = interactive and options.mode == "text"
    values = place.settings.values
    timeout_s = values.permissions.rpc_timeout_ms / 1000 if interactive and not screen else None
    return RuntimeOptions(
        paths=place.paths,
        cwd=place.cwd,
        settings=place.settings,
        registry=_registry_builder(options, place, environ),
        session=choose_session(options, place, environ, ask_person if _may_ask(options) else None),
        model=_wanted_model(options),
        thinking=options.thinking,
        mode=options.approval_mode,
        extensions=options.extensions,
        only_named_extensions=options.no_extensions,
        interactive=interactive,
        approval_timeout_s=timeout_s,
        allow_demo=screen,
        on_busy="read_only" if interactive and not options.takeover else "refuse",
        force=options.force,
        name=options.name,
        remember=_memory(place, environ) if options.mode == "text" else None,
    )


def _require_extensions(options: Options) -> None:
    if not options.extensions:
        return
    from musepi_tui.extensions.discovery import find_extensions  # deferred: only where some are named

    find_extensions(Path(), options.extensions, only_named=True)


def _may_ask(options: Options) -> bool:
    """Whether a person sits there: not behind a protocol on stdin and stdout, and not behind a pipe."""
    return options.mode == "text" and sys.stdin.isatty() and sys.stderr.isatty()


def _memory(place: Place, environ: Mapping[str, str]) -> "Callable[[Path], None]":
    """Notes which session this terminal has open, for ``--continue``."""

    def remember(path: Path) -> None:
        from musepi_tui.storage.breadcrumbs import remember_terminal  # deferred: after the first frame

        remember_terminal(place.paths, environ, place.cwd, path)

    return remember


def _wanted_model(options: Options) -> str | None:
    if options.model is None:
        return f"{options.provider}/" if options.provider else None
    return f"{options.provider}/{options.model}" if options.provider else options.model


def _registry_builder(
    options: Options, place: Place, environ: MutableMapping[str, str]
) -> "Callable[[], ModelRegistry]":
    if options.base_url and not is_web_address(options.base_url):
        raise UsageError(
            f"musepi: --base-url {options.base_url}: an address starts with http:// or https:// and a host."
        )

    def load() -> "ModelRegistry":
        from musepi_tui.providers.registry import AdHoc, ModelRegistry  # deferred: after the first frame

        given = (options.provider, options.model, options.base_url, options.api_key)
        return ModelRegistry.load(place.paths.config, environ, flags=AdHoc(*given) if any(given) else None)

    return load
