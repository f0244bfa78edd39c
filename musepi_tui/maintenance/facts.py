"""What the policy knows: plain numbers and flags (architecture 4)."""

from dataclasses import dataclass

from musepi_tui.base.errors import MusepiError
from musepi_tui.context.threshold import Threshold
from musepi_tui.maintenance.notices import NoticeText


@dataclass(frozen=True, slots=True)
class Facts:
    """The session as it is at this moment; tokens are context tokens.

    ``context_tokens`` is the decision figure (the larger of billed and local count), measured anew after a
    pass. ``threshold`` and ``window`` are None when the window of the model is unknown; ``other_tokens`` are
    the system prompt and tool schemas, which no pass can shrink. ``automatic``: the settings allow passes
    nobody asked for. ``dead_end``: the last pass could not free enough and nothing has changed since.
    ``setting_notices`` tell of settings that are not honoured as written.
    """

    context_tokens: int
    other_tokens: int
    window: int | None
    threshold: Threshold | None
    automatic: bool
    dead_end: bool = False
    setting_notices: tuple[NoticeText, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended."""

    ok: bool
    error: MusepiError | None = None
    cancelled: bool = False
