"""The standard streams at the end of the program."""

import os
import sys
from contextlib import suppress


def drop_unwritable() -> None:
    """Drops what stdout and stderr still hold when nobody takes it any more, as after a closed window.

    Python tries once more when it ends, and its exit code would be 120 in place of the program's own.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)
