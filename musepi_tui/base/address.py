"""Where a URL that somebody wrote points to."""

from urllib.parse import urlsplit

from musepi_tui.base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Address:
    """Where a URL points. ``host`` is "" when the URL names none; ``port`` None: the scheme's own."""

    scheme: str
    host: str
    port: int | None


NOWHERE = Address("", "", None)


def address_of(url: str) -> Address:
    """Scheme, host and port of a URL somebody wrote; ``NOWHERE`` for one that cannot be read.

    ``urlsplit`` raises for an unclosed bracket and a port over 65535; a typo must not end the program.
    """
    try:
        parts = urlsplit(url)
        return Address(parts.scheme, parts.hostname or "", parts.port)
    except ValueError:
        return NOWHERE


def is_web_address(url: str) -> bool:
    """Whether the URL names a host to be asked over http or https."""
    address = address_of(url)
    return address.scheme in ("http", "https") and bool(address.host)
