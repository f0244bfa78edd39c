"""The app over a fake runtime, driven by keys."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from textual import events
from textual.pilot import Pilot

from musepi_tui.runtime.events import Event
from musepi_tui.runtime.intents import Intent
from musepi_tui.tui.app import MusepiApp
from tests.support.clock import FakeClock
from tests.support.fake_runtime import FakeRuntime
from tests.support.snapshot import screen_text

ENVIRON = {"LANG": "C.UTF-8", "COLORTERM": "truecolor", "TERM": "xterm-256color", "HOME": "/home/ada"}


@dataclass
class Stage:
    """The app while a test runs."""

    runtime: FakeRuntime
    app: MusepiApp
    pilot: Pilot[int]

    @property
    def clock(self) -> FakeClock:
        """The clock of the app."""
        return cast("FakeClock", self.runtime.options.clock)

    @property
    def text(self) -> str:
        """What the screen shows."""
        return screen_text(self.app)

    @property
    def draft(self) -> str:
        """What stands in the editor."""
        return self.app.main.composer.text

    @property
    def sent(self) -> list[Intent]:
        """The intents so far."""
        return self.runtime.sent

    async def press(self, *keys: str) -> None:
        """Presses keys one after the other, without waiting between them."""
        for key in keys:
            character = key if len(key) == 1 else None
            self.app.post_message(events.Key(key, character))
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Types text."""
        for char in text:
            self.app.post_message(events.Key("space" if char == " " else char, char))
        await self.pilot.pause()

    async def paste(self, text: str) -> None:
        """Pastes text."""
        self.app.post_message(events.Paste(text))
        await self.pilot.pause()

    async def tell(self, *events_: Event) -> None:
        """The runtime tells something."""
        self.runtime.emit(*events_)
        await self.settle()

    async def settle(self) -> None:
        """Waits until the screen shows what was told."""
        for _ in range(3):
            await self.pilot.pause()
        self.app.flush()
        await self.pilot.pause()

    async def shows(self, text: str) -> None:
        """Waits until the screen shows something; fails with the screen when it does not."""
        try:
            await self.until(lambda: self._flushed(text))
        except TimeoutError:
            raise AssertionError(f"{text!r} is not on the screen:\n{self.text}") from None

    def _flushed(self, text: str) -> bool:
        self.app.flush()
        return text in self.text

    async def until(self, condition: Callable[[], bool], within_s: float = 5.0) -> None:
        """Waits until something holds; fails when it does not in time."""
        async with asyncio.timeout(within_s):
            while not condition():
                await self.pilot.pause(0.02)


@asynccontextmanager
async def on_stage(
    home: Path,
    *entries: Any,
    size: tuple[int, int] = (80, 24),
    environ: dict[str, str] | None = None,
    prepare: Callable[[FakeRuntime], None] = lambda runtime: None,
    **fields: Any,
) -> AsyncIterator[Stage]:
    """The app over these entries, loaded."""
    runtime = FakeRuntime(home, *entries, **fields)
    prepare(runtime)
    app = MusepiApp(cast("Any", runtime), {**ENVIRON, **(environ or {})})
    async with app.run_test(size=size) as pilot:
        stage = Stage(runtime, app, pilot)
        await stage.until(lambda: runtime.begun)
        await stage.settle()
        yield stage
