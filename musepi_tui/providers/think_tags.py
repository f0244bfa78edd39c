"""Reasoning that a server left in the content as ``<think>…</think>`` (providers 11)."""

_OPEN = "<think>"
_CLOSE = "</think>"


class ThinkTags:
    """Splits content deltas into ``(is_thinking, text)`` pieces; tags may be split over deltas.

    Only a reply that starts with the tag is split. With ``opened`` the template put the opening tag into the
    prompt, so the reply starts inside.
    """

    __slots__ = ("_held", "_state")

    def __init__(self, *, opened: bool = False) -> None:
        self._state = "inside" if opened else "start"
        self._held = ""

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """The pieces that are certain now; what may be the start of a tag is held back."""
        self._held += text
        if self._state == "start":
            self._leave_start()
        if self._state == "inside":
            return self._take_inside()
        if self._state == "start" or not self._held:
            return []
        held, self._held = self._held, ""
        return [(False, held)]

    def finish(self) -> list[tuple[bool, str]]:
        """What was held back when the reply ended."""
        held, self._held = self._held, ""
        return [(self._state == "inside", held)] if held else []

    def _leave_start(self) -> None:
        head = self._held.lstrip()
        if head.startswith(_OPEN):
            self._held = head[len(_OPEN) :]
            self._state = "inside"
        elif not _OPEN.startswith(head):
            self._state = "outside"

    def _take_inside(self) -> list[tuple[bool, str]]:
        thinking, tag, rest = self._held.partition(_CLOSE)
        if tag:
            self._state = "outside"
            self._held = ""
            rest = rest.lstrip("\n")
            pieces = [(True, thinking), (False, rest)]
            return [piece for piece in pieces if piece[1]]
        keep = _overlap(self._held, _CLOSE)
        certain, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return [(True, certain)] if certain else []


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of ``text`` may be the start of ``tag``."""
    for size in range(min(len(text), len(tag) - 1), 0, -1):
        if text.endswith(tag[:size]):
            return size
    return 0
