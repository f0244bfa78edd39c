"""A name that was given before the session has a file."""

from collections.abc import Mapping, Sequence
from typing import Any


class PendingName:
    """Holds the name until the first message is stored: a session without one has no file (SAF-5)."""

    def __init__(self) -> None:
        self.text: str | None = None

    def take(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """The state entry to store now, if any; from then on it counts as stored."""
        text, self.text = self.text, None
        return () if text is None else (("session_info", {"name": text}),)
