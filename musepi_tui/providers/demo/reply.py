"""What the demo says in one answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call the demo makes."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: thinking, then text, then calls; empty parts are left out."""

    text: str
    thinking: str = ""
    calls: tuple[Call, ...] = ()
