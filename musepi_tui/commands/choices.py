"""What the completion of command arguments may ask the screen for."""

from typing import Literal, Protocol


class Choices(Protocol):
    """The values there are, as far as they are known without waiting."""

    def choices(self, kind: Literal["model", "theme", "thinking", "command", "context"]) -> tuple[str, ...]:
        """The values of a kind: model keys, theme names, thinking levels of the model, command names;
        ``42% used`` for the context, nothing while that is unknown."""
        ...
