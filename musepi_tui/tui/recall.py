"""Going back through earlier prompts (TUI-3.4). Pure."""

from collections.abc import Sequence

MAX_PROMPTS = 100


class Recall:
    """Earlier prompts, oldest first, and the place in them. Editing what was recalled changes none."""

    def __init__(self, prompts: Sequence[str] = ()) -> None:
        self._prompts = list(prompts)[-MAX_PROMPTS:]
        self._index: int | None = None
        self._draft = ""

    def extend_older(self, prompts: Sequence[str]) -> None:
        """Puts prompts of earlier runs before those of this one."""
        self._prompts = [*prompts, *self._prompts][-MAX_PROMPTS:]
        self._index = None

    def add(self, text: str) -> bool:
        """Remembers a prompt unless it repeats the last one; whether it was remembered."""
        self._index = None
        if not text.strip() or (self._prompts and self._prompts[-1] == text):
            return False
        self._prompts.append(text)
        del self._prompts[:-MAX_PROMPTS]
        return True

    def older(self, current: str) -> str | None:
        """The prompt before the one shown; ``current`` is kept as the draft. None at the oldest one."""
        index = len(self._prompts) if self._index is None else self._index
        if index == 0:
            return None
        if self._index is None:
            self._draft = current
        self._index = index - 1
        return self._prompts[self._index]

    def newer(self) -> str | None:
        """The prompt after the one shown, at last the draft; None when nothing was recalled."""
        if self._index is None:
            return None
        if self._index + 1 < len(self._prompts):
            self._index += 1
            return self._prompts[self._index]
        self._index = None
        return self._draft

    def leave(self) -> None:
        """Forgets the place: the text was edited or sent."""
        self._index = None
