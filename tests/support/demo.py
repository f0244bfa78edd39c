"""A conversation with the demo through the real tools, without runtime and screen."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ParamSpec, TypeVar

from musepi_tui.base.errors import ToolError
from musepi_tui.providers.demo.spec import DEMO_MODEL
from musepi_tui.providers.types import (
    Credentials,
    ProviderSpec,
    Request,
    StreamDone,
    StreamEvent,
    ThinkingLevel,
    ToolSpec,
)
from musepi_tui.runtime.project.system_prompt import render_system_prompt
from musepi_tui.session.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
    tool_calls_of,
)
from musepi_tui.storage.artifacts import ArtifactStore
from musepi_tui.tools.paths import Workspace
from musepi_tui.tools.registry import ToolRegistry
from musepi_tui.tools.validate import parse_arguments

P = ParamSpec("P")
T = TypeVar("T")

NO_KEY = Credentials(None, "none needed")


class DemoTalk:
    """Messages, the real system prompt and tools, and a way to say something to the demo.

    ``refused`` names tools whose calls are answered as if a person had denied them.
    """

    def __init__(
        self, provider: ProviderSpec, folder: Path, *, refused: frozenset[str] = frozenset()
    ) -> None:
        self.provider = provider
        self.refused = refused
        self.messages: list[Message] = []
        self.events: list[StreamEvent] = []
        self.registry = ToolRegistry.discover()
        self.system = render_system_prompt(folder, self.registry.names, (), 1_750_000_000_000)
        self.specs = tuple(
            ToolSpec(tool.name, tool.description, tool.parameters) for tool in self.registry.specs()
        )
        self._context = _Context(
            Workspace(folder, provider.extra_roots()), ArtifactStore(folder / "artifacts")
        )

    async def say(self, text: str) -> str:
        """Sends a prompt and runs the turn to its end. Returns the final text."""
        self.messages.append(UserMessage((TextBlock(text),)))
        for _ in range(20):
            answer = await self.ask()
            self.messages.append(answer)
            calls = tool_calls_of(answer)
            if not calls:
                return text_of(answer.content)
            self.messages += [await self._run(call) for call in calls]
        raise AssertionError("the turn does not end")

    async def ask(self) -> AssistantMessage:
        """One answer to the messages as they are; it is not appended."""
        request = Request(self.system, tuple(self.messages), self.specs, thinking=ThinkingLevel.MEDIUM)
        async for event in self.provider.stream(DEMO_MODEL, NO_KEY, request):
            self.events.append(event)
        last = self.events[-1]
        assert isinstance(last, StreamDone), last
        return last.message

    async def _run(self, call: ToolCallBlock) -> ToolResultMessage:
        tool = self.registry.get(call.name)
        assert tool is not None
        if call.name in self.refused:
            return _result(call, "The user denied this call.", is_error=True)
        arguments, note = parse_arguments(tool, call.arguments)
        assert note is None
        try:
            outcome = await tool.run(arguments, self._context)
        except ToolError as error:
            return _result(call, str(error), is_error=True)
        return _result(call, outcome.text, is_error=outcome.is_error)


class _Context:
    """A ``ToolContext`` that shows nothing."""

    def __init__(self, workspace: Workspace, artifacts: ArtifactStore) -> None:
        self.workspace = workspace
        self.artifacts = artifacts
        self.environment: Mapping[str, str] = {}

    def progress(self, text: str) -> None:
        """Nobody looks."""

    async def in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs blocking work in a thread."""
        return await asyncio.to_thread(function, *args, **kwargs)


def _result(call: ToolCallBlock, text: str, *, is_error: bool) -> ToolResultMessage:
    return ToolResultMessage(call.id, call.name, (TextBlock(text),), is_error=is_error)
