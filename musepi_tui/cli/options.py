"""Arguments of the program (tui 9.2). Importing this costs argparse and json and nothing else."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from musepi_tui import __version__
from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import UsageError
from musepi_tui.cli.parser import Parser

SUBCOMMANDS = ("sessions", "compact", "models", "config", "doctor")
"""First words that are commands of their own; any other first word begins a prompt."""

PICK = ""
"""Value of ``--resume`` without an id: open the picker."""

_EPILOG = """\
commands:
  musepi sessions ...   list, inspect and print session files
  musepi compact FILE   summarise the older history of a session file
  musepi models list    the models that can be chosen
  musepi config ...     read and change settings
  musepi doctor         check this machine's set-up

examples:
  musepi                          start in this folder
  musepi -c                       go on with the newest session of this folder
  musepi -p "what does this do?"  answer once, print it, end
  musepi --provider demo --model demo
"""


@dataclass(frozen=True, slots=True)
class Options:
    """The parsed command line. ``resume`` None: not given; ``PICK``: choose from a list."""

    prompts: tuple[str, ...]
    print_once: bool
    mode: str
    continue_newest: bool
    resume: str | None
    session: Path | None
    fork: str | None
    no_session: bool
    takeover: bool
    force: bool
    name: str | None
    session_dir: Path | None
    provider: str | None
    model: str | None
    base_url: str | None
    api_key: str | None
    thinking: str | None
    compaction_model: str | None
    auto_compact: bool
    compact_at: str | None
    extensions: tuple[str, ...]
    no_extensions: bool
    approval_mode: str | None
    overrides: tuple[str, ...]
    config_files: tuple[Path, ...]
    cwd: Path | None
    offline: bool
    no_color: bool
    verbose: bool

    def setting_overrides(self) -> tuple[str, ...]:
        """``KEY=VALUE`` of ``--set``, then of the flags that stand for a setting."""
        flags = {
            "compaction.model": self.compaction_model,
            "compaction.enabled": None if self.auto_compact else False,
            "compaction.threshold": self.compact_at,
        }
        found = (f"{key}={json.dumps(value)}" for key, value in flags.items() if value is not None)
        return (*self.overrides, *found)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the main command; an unusable argument raises ``UsageError``."""
    parser = Parser(
        prog="musepi",
        description="A coding agent for the terminal whose long sessions stay usable.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("prompts", nargs="*", metavar="prompt", help="sent at once when given")
    parser.add_argument("-v", "--version", action="version", version=__version__)
    _add_mode_arguments(parser)
    _add_session_arguments(parser)
    _add_model_arguments(parser)
    _add_compaction_arguments(parser)
    _add_extension_arguments(parser)
    _add_setting_arguments(parser)
    return parser


def _add_mode_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("mode")
    group.add_argument(
        "-p", "--print", dest="print_once", action="store_true", help="answer on stdout and end"
    )
    group.add_argument(
        "--mode",
        choices=("text", "json", "rpc"),
        default="text",
        help="json: events of one prompt; rpc: a server",
    )


def _add_session_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("session")
    group.add_argument(
        "-c",
        "--continue",
        dest="continue_newest",
        action="store_true",
        help="the newest session of this folder",
    )
    group.add_argument(
        "-r", "--resume", nargs="?", const=PICK, metavar="ID", help="a session by id, or choose one"
    )
    group.add_argument("--session", type=_file_name, metavar="PATH", help="open or create exactly this file")
    group.add_argument(
        "--fork", metavar="ID|PATH", help="go on in a copy of that session; works while another musepi has it"
    )
    group.add_argument("--no-session", action="store_true", help="keep nothing on disk")
    group.add_argument("-n", "--name", metavar="TEXT", help="name the session")
    group.add_argument(
        "--takeover", action="store_true", help="write to the session or fail: never open it read-only"
    )
    group.add_argument(
        "--force", action="store_true", help="write to a session of a newer format than this musepi knows"
    )
    group.add_argument("--session-dir", type=Path, metavar="DIR", help="keep sessions there")
    group.add_argument("--cwd", type=Path, metavar="DIR", help="work in that folder")


def _file_name(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("it names no file")
    return Path(text)


def _add_model_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument("--provider", metavar="NAME")
    group.add_argument(
        "--model", metavar="ID", help="an id, or provider/id, with :level for the thinking level"
    )
    group.add_argument("--base-url", metavar="URL", help="replaces the provider's address")
    group.add_argument("--api-key", metavar="KEY")
    group.add_argument(
        "--thinking",
        choices=("off", "minimal", "low", "medium", "high", "xhigh", "max"),
        help="thinking level",
    )


def _add_compaction_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("compaction")
    group.add_argument(
        "--compaction-model", metavar="ID", help="who writes summaries: provider/id[:level], or several, a,b"
    )
    group.add_argument(
        "--no-auto-compact", dest="auto_compact", action="store_false", help="compact only when asked to"
    )
    group.add_argument(
        "--compact-at", type=_threshold, metavar="SIZE", help="where it starts: 85%%, 170000 or auto"
    )


def _threshold(text: str) -> str:
    from musepi_tui.context.threshold import ThresholdKind, parse_threshold  # deferred: see the module

    parsed = parse_threshold(text)
    if parsed.kind is ThresholdKind.AUTO and text.strip().lower() != "auto":
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither auto, a share such as 85%, nor a number of tokens"
        )
    return text


def _add_extension_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("extensions")
    group.add_argument(
        "-e",
        "--extension",
        dest="extensions",
        action="append",
        default=[],
        metavar="PATH|MODULE",
        help="an extension more, for this run",
    )
    group.add_argument("--no-extensions", action="store_true", help="no extensions but those of --extension")


def _add_setting_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("settings")
    group.add_argument(
        "--approval-mode",
        choices=("ask", "auto-edit", "yolo"),
        help="what runs without asking (default: ask)",
    )
    group.add_argument(
        "--yolo", dest="approval_mode", action="store_const", const="yolo", help="run everything"
    )
    group.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="one setting for this run",
    )
    group.add_argument(
        "--config",
        dest="config_files",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="more settings",
    )
    group.add_argument("--offline", action="store_true", help="no connection except to this machine")
    group.add_argument("--no-color", action="store_true", help="no colours")
    group.add_argument("--verbose", action="store_true", help="write more to the log file")


def parse_options(argv: Sequence[str]) -> Options:
    """The options of the main command. Raises ``UsageError`` with one line for anything unusable."""
    parsed = build_parser().parse_intermixed_args(argv)
    _refuse_contradictions(parsed)
    return Options(
        prompts=tuple(parsed.prompts),
        print_once=parsed.print_once,
        mode=parsed.mode,
        continue_newest=parsed.continue_newest,
        resume=parsed.resume,
        session=parsed.session,
        fork=parsed.fork,
        no_session=parsed.no_session,
        takeover=parsed.takeover,
        force=parsed.force,
        name=parsed.name,
        session_dir=parsed.session_dir,
        provider=parsed.provider,
        model=parsed.model,
        base_url=parsed.base_url,
        api_key=parsed.api_key,
        thinking=parsed.thinking,
        compaction_model=parsed.compaction_model,
        auto_compact=parsed.auto_compact,
        compact_at=parsed.compact_at,
        extensions=tuple(parsed.extensions),
        no_extensions=parsed.no_extensions,
        approval_mode=parsed.approval_mode,
        overrides=tuple(parsed.overrides),
        config_files=tuple(parsed.config_files),
        cwd=parsed.cwd,
        offline=parsed.offline,
        no_color=parsed.no_color,
        verbose=parsed.verbose,
    )


def _refuse_contradictions(parsed: argparse.Namespace) -> None:
    """Only one flag may say which session it is. Raises ``UsageError``."""
    chosen = [
        name
        for name, given in (
            ("--continue", parsed.continue_newest),
            ("--resume", parsed.resume is not None),
            ("--session", parsed.session is not None),
            ("--fork", parsed.fork is not None),
            ("--no-session", parsed.no_session),
        )
        if given
    ]
    if len(chosen) > 1:
        raise UsageError(f"musepi: {' and '.join(chosen)} exclude each other; give one of them.")
    if parsed.name is not None and not parsed.name.strip():
        raise UsageError("musepi: --name needs a text that is not blank.")
