"""Times of session files as numbers."""

from datetime import UTC, datetime


def unix_ms(timestamp: str) -> int | None:
    """Unix milliseconds of an ISO 8601 time, UTC when it names no zone; None when it cannot be read."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def iso_text(time_ms: int) -> str:
    """The time as session files spell it: ISO 8601, UTC, milliseconds, ``Z``."""
    moment = datetime.fromtimestamp(time_ms // 1000, tz=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"
