"""The garbage collector stays out of the way of the start.

What is imported and loaded then lives as long as the program: looking through it again and again finds
nothing and costs a tenth of the start, later a pause in the middle of typing.
"""

import gc


def pause_collector() -> None:
    """Collects nothing until ``resume_collector``."""
    gc.disable()


def resume_collector() -> None:
    """Collects again, but never looks at what exists by now. Does nothing unless it was paused."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
