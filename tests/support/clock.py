"""A clock that moves only when it is told to, or when somebody sleeps on it."""

import asyncio


class FakeClock:
    """Implements ``Clock``. ``sleep`` returns at once after moving the time on; ``slept`` lists the delays.

    ``hold()`` makes sleepers wait until ``advance`` covers their delay.
    """

    def __init__(self, start_ms: int = 1_750_000_000_000) -> None:
        self._start_ms = start_ms
        self._elapsed_s = 0.0
        self._held = False
        self._sleepers: list[tuple[float, asyncio.Event]] = []
        self.slept: list[float] = []

    def now_ms(self) -> int:
        """Wall clock, Unix milliseconds."""
        return self._start_ms + round(self._elapsed_s * 1000)

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._elapsed_s

    async def sleep(self, delay_s: float) -> None:
        """Lets the others run once; then the delay is over, or waits for ``advance`` while held."""
        self.slept.append(delay_s)
        if not self._held:
            self._elapsed_s += delay_s
            await asyncio.sleep(0)
            return
        wake = asyncio.Event()
        self._sleepers.append((self._elapsed_s + delay_s, wake))
        await wake.wait()

    def hold(self) -> None:
        """From now on only ``advance`` moves the time."""
        self._held = True

    def advance(self, seconds: float) -> None:
        """Moves the time on and wakes the sleepers whose delay is over."""
        self._elapsed_s += seconds
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= self._elapsed_s]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > self._elapsed_s]
        for _, wake in due:
            wake.set()
