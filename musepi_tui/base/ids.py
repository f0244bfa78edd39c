"""Ids of entries and sessions (session-format 3, 10).

The random bytes come from ``os``: the module ``secrets`` gets them there too, but is slow to import.
"""

import os
import time
from collections.abc import Container


def new_entry_id(taken: Container[str]) -> str:
    """Eight lower-case hex digits that are not in ``taken``."""
    while True:
        candidate = os.urandom(4).hex()
        if candidate not in taken:
            return candidate


def new_session_id() -> str:
    """A UUID of version 7, so that ids sort by the time of their making (to the millisecond)."""
    unix_ms = time.time_ns() // 1_000_000
    random_bits = int.from_bytes(os.urandom(10)) >> 6
    value = (unix_ms & (2**48 - 1)) << 80 | 0x7 << 76 | (random_bits >> 62) << 64 | 0b10 << 62
    value |= random_bits & (2**62 - 1)
    digits = f"{value:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
