"""Chooses the door: a subcommand, one answer, events, a server, or the screen.

Nothing heavy is imported before it is known which door it is.
"""

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from musepi_tui.base.errors import MusepiError, UsageError
from musepi_tui.cli.options import SUBCOMMANDS


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit code (contract 7). Never raises for what a user can do wrong."""
    sys.excepthook = _on_bug
    _fill_closed_streams()
    _replace_unencodable()
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except UsageError as error:
        return _fail(str(error), 2)
    except MusepiError as error:
        return _fail(str(error), 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _silence_stdout()
        return 1
    except OSError as error:
        return _fail_with(error)


def _run(arguments: list[str]) -> int:
    if arguments and arguments[0] in SUBCOMMANDS:
        return _run_subcommand(arguments[0], arguments[1:])
    from musepi_tui.cli.options import parse_options

    options = parse_options(arguments)
    from musepi_tui.cli.launch import launch  # deferred: --help and the session commands need none of it

    return launch(options, os.environ)


def _run_subcommand(name: str, arguments: list[str]) -> int:
    # Deferred: each group loads only its own part; the session commands must start in 300 ms (contract 4.1).
    if name == "sessions":
        from musepi_tui.cli.sessions import main as run
    elif name == "compact":
        from musepi_tui.cli.compact import main as run
    elif name == "models":
        from musepi_tui.cli.models import main as run
    elif name == "config":
        from musepi_tui.cli.config import main as run
    else:
        from musepi_tui.cli.doctor import main as run
    return run(arguments, os.environ)


def _on_bug(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """What a user sees of a bug: one line. The log has the rest; exit code 1."""
    log = _log(error.with_traceback(traceback))
    _fail(f"musepi: something went wrong ({kind.__name__}); details in {log}", 1)


def _log(error: BaseException) -> Path:
    """Puts the traceback into the log, for a bug report; where that is."""
    import logging  # deferred: only a failure needs these

    from musepi_tui.base.log import configure, log_path
    from musepi_tui.storage.paths import find_paths

    state = find_paths(os.environ).state
    logger = logging.getLogger("musepi")
    if not logger.handlers:
        configure(state)  # a subcommand; without a handler the logging module prints the traceback itself
    logger.critical("unexpected error", exc_info=error)
    return log_path(state)


def _fill_closed_streams() -> None:
    """Puts ``/dev/null`` where a parent closed stdin, stdout or stderr.

    Otherwise the next file that is opened takes that number: the session file would be stdout. Writing to it
    fails, as writing to a closed stream does.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def _replace_unencodable() -> None:
    """Prints ``?`` for what the encoding of the terminal or the pipe lacks: a divider in Latin-1 must not end
    the program."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)  # a stream that took its place may have none
    if reconfigure is not None and sys.stdout.errors == "strict":
        reconfigure(errors="replace")


def _fail_with(error: OSError) -> int:
    """The system refused something nobody expected: a full disk behind stdout, a working folder gone."""
    _log(error)
    _silence_stdout()  # what could not be flushed would fail again at exit
    if error.errno == errno.EBADF:
        return 1  # a closed stdout ends quietly (contract 4.1)
    gone = None if error.filename else _gone_folder()
    if gone is not None:
        where = f", {gone}," if gone else ""
        return _fail(
            f"musepi: the folder it runs in{where} does not exist any more; go to another one first", 1
        )
    name = f"{error.filename}: " if error.filename else ""
    return _fail(f"musepi: {name}{error.strerror or error}", 1)


def _gone_folder() -> str | None:
    """The name of the working folder when it was removed, empty when nobody knows it; None when it is
    there."""
    try:
        Path.cwd()
    except OSError:
        return os.environ.get("PWD", "")
    return None


def _fail(message: str, code: int) -> int:
    from musepi_tui.base.safe_text import display_safe  # deferred: only a failure needs it

    sys.stderr.write(display_safe(message.rstrip("\n")) + "\n")
    return code


def _silence_stdout() -> None:
    # The reader of stdout is gone; without this the interpreter complains again when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
