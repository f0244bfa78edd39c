"""The command ``musepi`` and ``python -m musepi_tui``."""

import os
import sys


def main() -> None:
    """Runs the program and exits with its code. The version is told without loading anything else."""
    if sys.argv[1:] in (["--version"], ["-v"]):
        from musepi_tui import __version__

        sys.stdout.write(f"musepi {__version__}\n")
        return
    from musepi_tui.cli.main import main as run  # deferred: see above

    sys.exit(run())


def _forget_working_folder() -> None:
    """Stops ``python -m`` from importing the user's own ``json.py`` or ``textual/`` instead of ours."""
    try:
        names = ("", os.getcwd())  # noqa: PTH109 - pathlib is not loaded yet
    except OSError:  # it is gone
        names = ("",)
    if sys.path and sys.path[0] in names:
        del sys.path[0]


if __name__ == "__main__":
    _forget_working_folder()
    main()
