"""Sources of extensions that more than one hook is tried with."""

EXTENSION_HEADER = "from musepi_tui.extensions.api import *\n"
"""What every source begins with, so that it can use all names."""


def waiting_at(hook: str) -> str:
    """An extension that waits at a hook until it is told to stop, and says when it began and ended."""
    return f"""
def activate(api):
    api.on("{hook}", wait)

async def wait(event, ctx):
    ctx.notify("thinking")
    try:
        await event.signal.wait()
    finally:
        ctx.notify("given up")
"""


def failing_at(*hooks: str) -> str:
    """An extension whose every handler raises."""
    return f"""
def activate(api):
    for hook in {hooks!r}:
        api.on(hook, fail)

async def fail(event, ctx):
    raise ValueError("no such luck")
"""
