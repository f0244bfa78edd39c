"""The garbage collector stays out of the way of the start, and of the making of many objects at once.

What is imported and loaded at the start lives as long as the program: looking through it again and again
finds nothing and costs a tenth of the start, later a pause in the middle of typing.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager


def pause_collector() -> None:
    """Collects nothing until ``resume_collector``."""
    gc.disable()


def resume_collector() -> None:
    """Collects again, but never looks at what exists by now. Does nothing unless it was paused."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


@contextmanager
def collector_paused() -> Generator[None]:
    """Keeps the collector from looking through the objects of a bulk load again and again: half of its time.

    Pauses may overlap, in other threads too; the first one that ends lets the collector run again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
