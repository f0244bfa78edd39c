"""An argument parser whose complaints are one line (contract 3)."""

import argparse
from typing import NoReturn

from musepi_tui.base.errors import UsageError


class Parser(argparse.ArgumentParser):
    """Parses one command; its sub-commands get parsers of the same class."""

    def error(self, message: str) -> NoReturn:
        """Raises ``UsageError`` instead of printing the usage and ending the process."""
        raise UsageError(f"{self.prog}: {message}. See {self.prog} --help.")
