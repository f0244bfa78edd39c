"""What a runtime is opened with."""

from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from musepi_tui.base.clock import Clock, SystemClock
from musepi_tui.base.dataclass import dataclass
from musepi_tui.providers.apis import load_provider
from musepi_tui.providers.types import ProviderSpec
from musepi_tui.settings.load import LoadedSettings
from musepi_tui.storage.paths import Paths

if TYPE_CHECKING:
    from musepi_tui.providers.registry import ModelRegistry


@dataclass(frozen=True, slots=True)
class SessionChoice:
    """Which session: ``open`` the file at ``path``, a ``new`` one (at ``path``, or where new ones belong), or
    one in ``memory`` only."""

    kind: Literal["new", "open", "memory"] = "new"
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """Everything a runtime needs to know from outside.

    ``registry`` may be a function: then it is built after ``begin``, in a thread. ``model`` is
    ``provider/id`` and ``thinking`` a level; None takes the session's own or the default. ``mode`` None takes
    ``permissions.mode``. ``interactive``: a person can answer approvals; otherwise what would ask is refused.
    ``approval_timeout_s`` None waits for ever. ``allow_demo`` lets the demo model be chosen when nothing is
    configured. ``tools`` None offers every tool. ``extensions`` are paths or module names given by
    hand; ``only_named_extensions`` leaves out the others. ``find_provider`` gives the wire format of an api.

    ``on_busy`` says what happens to a session that may not be written: it is refused, or shown to be read.
    ``force`` writes to a session of a newer format all the same. ``name`` is given to the first session.
    ``remember`` is called in a thread with the path of each session that is opened.
    """

    paths: Paths
    cwd: Path
    settings: LoadedSettings
    registry: "ModelRegistry | Callable[[], ModelRegistry]"
    session: SessionChoice = SessionChoice()
    model: str | None = None
    thinking: str | None = None
    mode: str | None = None
    interactive: bool = True
    approval_timeout_s: float | None = None
    allow_demo: bool = False
    tools: tuple[str, ...] | None = None
    extensions: tuple[str, ...] = ()
    only_named_extensions: bool = False
    on_busy: Literal["refuse", "read_only"] = "refuse"
    force: bool = False
    name: str | None = None
    remember: Callable[[Path], None] | None = None
    find_provider: Callable[[str], ProviderSpec] = load_provider
    clock: Clock = field(default_factory=SystemClock)
