"""``musepi compact``: a compaction of a closed session file, or what it would do (contract 3.1)."""

import argparse
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SettingsError, UsageError
from musepi_tui.base.log import configure
from musepi_tui.cli.launch import Place
from musepi_tui.cli.options import Options, parse_options
from musepi_tui.cli.parser import Parser
from musepi_tui.cli.tables import print_error
from musepi_tui.settings.load import load_settings
from musepi_tui.storage.paths import find_paths

STRATEGIES = ("summary", "snapcompact", "shake")

_DESCRIPTION = "Summarise the older history of a session file, or show what that would do."
_EPILOG = """\
--dry-run asks no model, needs no key and no network, and changes nothing.
Model and settings are chosen as for musepi itself: --provider, --model, --base-url, --api-key,
--set KEY=VALUE, --config FILE, --compaction-model, --compact-at, -e, --no-extensions, --offline, --verbose.
"""


@dataclass(frozen=True, slots=True)
class CompactOrder:
    """What is wanted. ``leaf_id`` None: the session's own leaf; ``strategy`` ``summary`` or ``shake``."""

    file: Path
    leaf_id: str | None
    strategy: str
    focus: str | None
    as_json: bool


def main(argv: Sequence[str], environ: MutableMapping[str, str]) -> int:
    """Runs the command; the exit code of contract 7. Raises ``UsageError`` and what a file can have wrong."""
    parsed, rest = _parser().parse_known_args(list(argv))
    options = parse_options(rest)
    _refuse_strangers(options)
    if parsed.strategy == "snapcompact":
        print_error("musepi compact: this version has no snapcompact strategy; use summary or shake.")
        return 1
    if parsed.strategy == "shake" and parsed.focus:
        raise UsageError("musepi compact: --focus is for a summary; --strategy shake writes none.")
    order = CompactOrder(
        parsed.file.resolve(), parsed.leaf, parsed.strategy or "summary", parsed.focus, parsed.json
    )
    if options.offline:
        environ["MUSEPI_OFFLINE"] = "1"
    place = _find_place(options, environ)
    if parsed.dry_run:
        from musepi_tui.cli.dry_run import dry_run  # deferred: loads no door and no transport

        return dry_run(order, options, place, environ)
    from musepi_tui.cli.compact_run import run  # deferred: asyncio and the runtime, only for this door

    configure(
        place.paths.state, verbose=options.verbose, secrets=[options.api_key] if options.api_key else []
    )
    return run(order, options, place, environ)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="musepi compact",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="session file")
    parser.add_argument("--leaf", metavar="ID", help="entry to go on from instead of the last one")
    parser.add_argument("--strategy", choices=STRATEGIES, help="default: summary")
    parser.add_argument("--focus", metavar="TEXT", help="what the summary shall heed")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done and change nothing")
    parser.add_argument("--json", action="store_true", help="for scripts")
    return parser


def _refuse_strangers(options: Options) -> None:
    """Flags of the main command that mean nothing here."""
    if options.prompts:
        raise UsageError(
            f"musepi compact: unrecognized argument: {options.prompts[0]}. One FILE is compacted."
        )
    chooses = options.continue_newest or options.resume is not None or options.session is not None
    if chooses or options.print_once or options.mode != "text":
        raise UsageError("musepi compact: the session is FILE, and there is no other mode than --json.")


def _find_place(options: Options, environ: Mapping[str, str]) -> Place:
    paths, cwd = find_paths(environ), (options.cwd or Path.cwd()).resolve()
    files = [path.resolve() for path in options.config_files]
    overrides = options.setting_overrides()
    loaded = load_settings(paths.config, None, overrides=overrides, extra_files=files, environ=environ)
    if loaded.broken:
        problem = next(problem for problem in loaded.problems if not problem.key)
        raise SettingsError(f"{problem.path}: {problem.message}")
    return Place(paths, cwd, loaded)
