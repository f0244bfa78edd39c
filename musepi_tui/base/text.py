"""Numbers, words and cutting for texts that people read. Characters here, never cells (``base/cells.py``)."""


def short_number(number: int) -> str:
    """Three significant places at most: ``999``, ``9.9k``, ``62k``, ``1.2M``, ``12M`` (TUI-1.10).

    Rounds down, so that a figure never seems to have reached a limit it is still below.
    """
    if number < 0:
        return f"-{short_number(-number)}"
    for unit, suffix in ((1_000_000, "M"), (1_000, "k")):
        if number >= 10 * unit:
            return f"{number // unit}{suffix}"
        if number >= unit:
            return f"{number // unit}.{number % unit * 10 // unit}{suffix}"
    return str(number)


def group_digits(number: int) -> str:
    """The number with a comma between thousands: ``231,785``."""
    return f"{number:,}"


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """``1 line``, ``2,000 lines``; ``nouns`` is the plural where an ``s`` does not make it."""
    word = noun if number == 1 else nouns or f"{noun}s"
    return f"{group_digits(number)} {word}"


def cut(text: str, chars: int) -> str:
    """The text in at most ``chars`` characters; an ellipsis is the last one when something was left out."""
    if len(text) <= chars:
        return text
    return f"{text[: chars - 1]}…" if chars > 0 else ""


def duration(seconds: float) -> str:
    """Whole units people say: ``0s``, ``12s``, ``2m 5s``, ``1h 4m``; a zero second unit is left out."""
    whole = int(max(0.0, seconds))
    if whole < 60:
        return f"{whole}s"
    big, small, names = (
        (whole // 60, whole % 60, "ms") if whole < 3600 else (whole // 3600, whole % 3600 // 60, "hm")
    )
    return f"{big}{names[0]}" + (f" {small}{names[1]}" if small else "")
