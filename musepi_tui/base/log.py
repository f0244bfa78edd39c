"""The log file: what a bug report needs, without secrets (SAF-102, 105)."""

import contextlib
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from musepi_tui.base.files import make_private_folder

LOGGER_NAME = "musepi"

MAX_LOG_BYTES = 5_000_000
"""A log larger than this is set aside at the next start, so that two of them are kept at most."""


def log_path(state_dir: Path) -> Path:
    """Where the log is."""
    return state_dir / "logs" / "musepi.log"


class _MaskingFormatter(logging.Formatter):
    """One line a record plus its traceback; no local variables, no secrets."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._secrets = frozenset(secrets)

    def format(self, record: logging.LogRecord) -> str:
        from musepi_tui.base.secrets import mask  # deferred: most runs log nothing

        return mask(super().format(record), self._secrets)


class _QuietFileHandler(logging.FileHandler):
    """A full disk must not write into the screen the program draws on."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def configure(
    state_dir: Path, *, verbose: bool = False, file: Path | None = None, secrets: Iterable[str] = ()
) -> None:
    """Sends the program's log to its file: warnings, with ``verbose`` everything.

    ``file`` replaces the usual place, ``secrets`` are masked. A place that cannot be written turns logging
    off: it never stops the start. A second call replaces the first.
    """
    logger = logging.getLogger(LOGGER_NAME)
    for handler in tuple(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    logger.propagate = False
    logger.setLevel(logging.DEBUG if verbose else logging.WARNING)
    handler = _open_handler(file or log_path(state_dir))
    handler.setFormatter(_MaskingFormatter(secrets))
    logger.addHandler(handler)


def _open_handler(path: Path) -> logging.Handler:
    try:
        make_private_folder(path.parent)
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size > MAX_LOG_BYTES:
                path.replace(path.with_suffix(".old.log"))
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
        return _QuietFileHandler(path, encoding="utf-8", errors="backslashreplace", delay=True)
    except OSError:
        return logging.NullHandler()
