"""The demo as a provider: chosen when nothing is configured, needs no key and no network."""

from musepi_tui.base.clock import Clock, SystemClock
from musepi_tui.providers.demo.project import ScratchProject
from musepi_tui.providers.demo.scene import read_scene
from musepi_tui.providers.demo.script import reply_to
from musepi_tui.providers.demo.stream import DemoStream, Pace
from musepi_tui.providers.types import AssistantStream, Credentials, Model, ProviderSpec, Request

CONTEXT_WINDOW = 9_200
"""Tokens. The automatic threshold is then 7,820. With system prompt and tools (about 1,400; up to 2,500 works
too) and turns of 2,200 to 2,600 tokens the third turn passes it and the first two never do; what a compaction
leaves is under four fifths of it (see tests/providers/test_demo.py)."""

DEMO_MODEL = Model(
    provider="demo",
    id="demo",
    api="demo",
    base_url="",
    name="Demo (a script, no model)",
    context_window=CONTEXT_WINDOW,
    max_tokens=4_096,
    input=("text",),
    reasoning=True,
    source="demo",
)


def make_provider(*, pace: Pace | None = None, clock: Clock | None = None) -> ProviderSpec:
    """A demo with a scratch project of its own. ``pace`` and ``clock`` decide how fast it speaks."""
    scratch = ScratchProject()
    chosen_pace = pace or Pace()
    chosen_clock = clock or SystemClock()

    def stream(model: Model, credentials: Credentials, request: Request) -> AssistantStream:
        del credentials  # none needed
        tools = tuple(tool.name for tool in request.tools)
        return DemoStream(
            model,
            request,
            lambda: reply_to(read_scene(request), scratch, tools),
            pace=chosen_pace,
            clock=chosen_clock,
        )

    return ProviderSpec("demo", stream, extra_roots=lambda: (scratch.folder(),), close=scratch.remove)


PROVIDER = make_provider()
