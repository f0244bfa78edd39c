"""Time as an argument, so that tests need not wait."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def now_ms(self) -> int:
        """Wall clock, Unix milliseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Wait ``delay_s`` seconds."""
        ...


class SystemClock:
    """The machine's own time."""

    def now_ms(self) -> int:
        """Wall clock, Unix milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    async def sleep(self, delay_s: float) -> None:
        """Wait ``delay_s`` seconds."""
        await asyncio.sleep(delay_s)


def iso_time(unix_ms: int) -> str:
    """The time as session files spell it: ISO 8601, UTC, milliseconds, ``Z``."""
    moment = datetime.fromtimestamp(unix_ms / 1000, tz=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{unix_ms % 1000:03d}Z"
