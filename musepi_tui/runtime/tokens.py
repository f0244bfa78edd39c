"""Counting tokens for the runtime: an estimate until the tokenizer is loaded (compaction 3.2)."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from musepi_tui.base.tokenizer import byte_estimate, load_tokenizer
from musepi_tui.base.types import Tokenizer
from musepi_tui.context.estimate import Estimator, compact_json
from musepi_tui.providers.types import ToolSpec
from musepi_tui.runtime.threads import Checkpoint, run_stoppable
from musepi_tui.session.messages import Message


class TokenService:
    """The tokenizer, loaded in a thread when first needed, and what is counted with it.

    ``warn`` gets a line for the person when the wanted tokenizer cannot be had. ``user_ranks`` is the
    person's own ``cl100k_base.tiktoken``, None when there is no such file. ``live_messages`` gives what is
    counted most: it is counted in the thread too, so that the first figure does not hold up the screen.
    """

    def __init__(self, estimator: str, user_ranks: Path | None, warn: Callable[[str], None]) -> None:
        self.live_messages: Callable[[], Sequence[Message]] = tuple
        self._wanted = estimator
        self._user_ranks = user_ranks
        self._warn = warn
        self._lock = asyncio.Lock()
        self._is_exact = False
        self._estimator = Estimator(byte_estimate)
        self._system = ""
        self._tools: tuple[ToolSpec, ...] = ()
        self._files: tuple[tuple[str, str], ...] = ()
        self._overhead: tuple[Tokenizer, int, int] | None = None

    @property
    def count(self) -> Tokenizer:
        """The loaded tokenizer, or the byte estimate until it is."""
        return self._estimator.count

    @property
    def estimate(self) -> Estimator:
        """Tokens of a message, remembered by identity."""
        return self._estimator

    @property
    def is_exact(self) -> bool:
        """Whether the wanted tokenizer is loaded; figures counted before that are shown with ``~``."""
        return self._is_exact

    async def ready(self) -> None:
        """Waits until the tokenizer is loaded. Decisions (threshold, cut point, guards) need it."""
        async with self._lock:
            if self._is_exact:
                return
            loaded = await asyncio.to_thread(load_tokenizer, self._wanted, self._user_ranks)
            estimator = Estimator(loaded.count)
            messages = tuple(self.live_messages())
            await run_stoppable(lambda check: _count_all(estimator, messages, check))
            self._estimator = estimator
            self._is_exact = True
        if loaded.warning is not None:
            self._warn(loaded.warning)

    def set_overhead(
        self, system: str, tools: tuple[ToolSpec, ...], files: tuple[tuple[str, str], ...] = ()
    ) -> None:
        """Tells what every request holds besides its messages. ``files`` are the instruction files within the
        system prompt: path and text."""
        self._system = system
        self._tools = tools
        self._files = files
        self._overhead = None

    def non_message_tokens(self) -> int:
        """Tokens of the system prompt and the tool schemas."""
        return sum(self.overhead_tokens())

    def overhead_tokens(self) -> tuple[int, int]:
        """Tokens of the system prompt, and those of the tool schemas."""
        count = self.count
        if self._overhead is None or self._overhead[0] is not count:
            self._overhead = (count, count(self._system), sum(map(self._count_tool, self._tools)))
        return self._overhead[1:]

    def tool_tokens(self) -> tuple[tuple[str, int], ...]:
        """Each tool with the tokens of its schema."""
        return tuple((tool.name, self._count_tool(tool)) for tool in self._tools)

    def file_tokens(self) -> tuple[tuple[str, int], ...]:
        """Each instruction file with its tokens. May take a while."""
        return tuple((path, self.count(text)) for path, text in self._files)

    def _count_tool(self, tool: ToolSpec) -> int:
        return self.count(f"{tool.name}\n{tool.description}\n{compact_json(tool.parameters)}")


def _count_all(estimator: Estimator, messages: Sequence[Message], check: Checkpoint) -> None:
    for message in messages:
        check()
        estimator(message)
        estimator(message, exclude_encrypted=True)
