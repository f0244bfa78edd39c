"""What a worker works with in one session."""

from dataclasses import dataclass

from musepi_tui.runtime.idle import IdleClock
from musepi_tui.runtime.maintainer import Maintainer
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.workplace import Workplace


@dataclass(frozen=True, slots=True)
class Post:
    """The parts of a session its worker uses. A handoff moves a worker from one to the next, in the middle
    of what it is doing."""

    services: Services
    maintainer: Maintainer
    workplace: Workplace
    idle: IdleClock
