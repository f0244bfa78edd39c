"""A runtime on a home of its own, driven by a test: intents in, events out."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.runtime.events import AgentSettled, EntryAppended, Event, IntentSettled, Notice, SessionReady
from musepi_tui.runtime.intents import Intent, SubmitPrompt
from musepi_tui.runtime.options import RuntimeOptions, SessionChoice
from musepi_tui.runtime.session import SessionRuntime
from musepi_tui.session.entries import MessageEntry
from musepi_tui.session.messages import Message, text_of
from musepi_tui.settings.load import load_settings
from musepi_tui.storage.paths import Paths, find_paths

E = TypeVar("E")
WAIT_S = 15.0
"""How long a test waits for an event; only a failing test waits that long."""
QUICK_RETRIES = ("retry.baseDelayMs=1", "retry.requestBaseDelayMs=1", "tokens.estimator=chars4")


class Harness:
    """What a test does with a runtime. ``events`` are all so far, in order."""

    def __init__(self, runtime: SessionRuntime) -> None:
        self.runtime = runtime
        self.events: list[Event] = []
        self._arrived = asyncio.Event()
        self._subscription = runtime.subscribe()
        self._all_collected = asyncio.Event()

    async def collect(self) -> None:
        """Takes events as they come; runs beside the test."""
        async for event in self._subscription:
            self.events.append(event)
            self._arrived.set()
        self._all_collected.set()

    async def collected(self) -> None:
        """Waits until the runtime has closed and every event is in ``events``."""
        async with asyncio.timeout(WAIT_S):
            await self._all_collected.wait()

    async def wait_for(
        self, kind: type[E], match: Callable[[E], bool] = lambda _: True, *, after: int = 0
    ) -> E:
        """The first event of that kind, from index ``after`` on, that ``match`` accepts."""
        async with asyncio.timeout(WAIT_S):
            while True:
                for event in self.events[after:]:
                    if isinstance(event, kind) and match(event):
                        return event
                self._arrived.clear()
                await self._arrived.wait()

    async def ready(self) -> SessionReady:
        """Waits until the session is loaded."""
        return await self.wait_for(SessionReady)

    async def settle(self, intent: Intent) -> IntentSettled:
        """Sends an intent and waits for its end."""
        intent_id = self.runtime.send(intent)
        return await self.wait_for(IntentSettled, lambda event: event.intent_id == intent_id)

    async def prompt(self, text: str, **fields: Any) -> int:
        """Sends a prompt and waits until all is done; how many events there were before."""
        before = len(self.events)
        self.runtime.send(SubmitPrompt(text, **fields))
        await self.wait_for(AgentSettled, after=before)
        return before

    def of(self, *kinds: type[E]) -> list[E]:
        """The events of these kinds."""
        return [event for event in self.events if isinstance(event, kinds)]

    def names(self, after: int = 0, *, without: Sequence[str] = ()) -> list[str]:
        """Class names of the events from index ``after`` on."""
        return [name for event in self.events[after:] if (name := type(event).__name__) not in without]

    def messages(self) -> list[Message]:
        """The stored messages in the order they were told."""
        return [
            event.entry.message for event in self.of(EntryAppended) if isinstance(event.entry, MessageEntry)
        ]

    def texts(self) -> list[str]:
        """The texts of the stored messages."""
        return [text_of(message.content) for message in self.messages() if hasattr(message, "content")]

    def notices(self, level: str | None = None) -> list[str]:
        """The texts of the notices."""
        return [event.text for event in self.of(Notice) if level is None or event.level == level]

    async def notice(self, part: str) -> Notice:
        """Waits for a notice with this text in it."""
        return await self.wait_for(Notice, lambda event: part in event.text)

    @property
    def file(self) -> Path:
        """Where the session is stored."""
        file = self.runtime.view().file
        assert file is not None
        return file


def home_paths(home: Path) -> Paths:
    """The folders of a home, made."""
    paths = find_paths({"MUSEPI_HOME": str(home)})
    paths.config.mkdir(parents=True, exist_ok=True)
    return paths


def write_models(home: Path, api: str, base_url: str, **row: Any) -> None:
    """A ``models.json`` with one provider ``local`` and one model ``m1``."""
    model = {"id": "m1", "contextWindow": 100_000, "maxTokens": 1000, "input": ["text"], "reasoning": False}
    provider = {"baseUrl": base_url, "api": api, "apiKey": "secret-key", "models": [model | row]}
    home.mkdir(parents=True, exist_ok=True)
    (home / "models.json").write_text(json.dumps({"providers": {"local": provider}}), encoding="utf-8")


def runtime_options(home: Path, cwd: Path, *overrides: str, **fields: Any) -> RuntimeOptions:
    """Options for a runtime on the model of ``write_models``, with quick retries and in yolo mode."""
    paths = home_paths(home)
    cwd.mkdir(parents=True, exist_ok=True)
    environ: Mapping[str, str] = {}
    options = RuntimeOptions(
        paths=paths,
        cwd=cwd,
        settings=load_settings(paths.config, None, overrides=(*QUICK_RETRIES, *overrides)),
        registry=lambda: ModelRegistry.load(paths.config, environ),
        model="local/m1",
        mode="yolo",
    )
    return replace(options, **fields)


@asynccontextmanager
async def running(options: RuntimeOptions) -> AsyncIterator[Harness]:
    """A started runtime; it is closed at the end of the block and every event is there afterwards."""
    async with asyncio.TaskGroup() as group, SessionRuntime.open(options) as runtime:
        harness = Harness(runtime)
        group.create_task(harness.collect())
        runtime.begin()
        await harness.ready()
        yield harness


def reopened(options: RuntimeOptions, path: Path) -> RuntimeOptions:
    """The same options for a session that is stored already."""
    return replace(options, session=SessionChoice("open", path), model=None)
