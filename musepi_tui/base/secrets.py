"""Masking of keys in logs, errors and exports (SAF-101 to 103)."""

import base64
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

MIN_SECRET_CHARS = 8
"""Shorter values are never masked: they would blank ordinary words."""

_LENGTH_CLASSES = (64, 32, 16, MIN_SECRET_CHARS)
_MASKED = re.compile(r"(?s:.{2})…\(\d+\+\)")
_KEY_CHARS = r"[A-Za-z0-9_\-]"

_SHAPES: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (("sk-",), re.compile(rf"\b(?P<secret>sk-{_KEY_CHARS}{{16,}})")),
    (("ghp_", "gho_", "ghs_", "ghu_"), re.compile(r"\b(?P<secret>gh[posu]_[A-Za-z0-9]{16,})")),
    (("github_pat_",), re.compile(r"\b(?P<secret>github_pat_[A-Za-z0-9_]{16,})")),
    (("AKIA",), re.compile(r"\b(?P<secret>AKIA[A-Z0-9]{12,})")),
    (("AIza",), re.compile(rf"\b(?P<secret>AIza{_KEY_CHARS}{{20,}})")),
    (("xox",), re.compile(r"\b(?P<secret>xox[abp]-[A-Za-z0-9\-]{10,})")),
    (("eyJ",), re.compile(rf"\b(?P<secret>eyJ{_KEY_CHARS}{{8,}}\.{_KEY_CHARS}{{8,}}\.{_KEY_CHARS}*)")),
    (("-----BEGIN",), re.compile(r"-----BEGIN [A-Z ]+-----(?P<secret>[^-]{8,})(?:-----END|\Z)")),
    (("://",), re.compile(r"://[^\s/:@]{0,256}:(?P<secret>[^\s/@]{1,256})@")),
    (
        ("uthorization", "UTHORIZATION"),
        re.compile(
            r"(?:uthorization|UTHORIZATION)[\"']?\s*[:=]\s*[\"']?(?:(?i:bearer|basic)\s+)?"
            r"(?P<secret>[^\s\"',;]{8,})"
        ),
    ),
    (
        ("pi-key", "pi-Key", "PI-KEY"),
        re.compile(r"(?:pi-key|pi-Key|PI-KEY)[\"']?\s*[:=]\s*[\"']?(?P<secret>[^\s\"',;]{8,})"),
    ),
    (("key=", "token="), re.compile(r"(?:key|token)=(?P<secret>[^\s&\"'#]{8,})")),
)
"""Words that must occur for a shape to be worth looking for, and the shape. Plain substring tests first keep
clean text above 50 MB/s; no pattern repeats inside a repetition."""


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with each of ``secrets`` and everything shaped like a key made unreadable.

    Values are also found in their URL-, JSON- and base64-encoded forms. What stays of a secret are its first
    two characters and a length class: ``sk…(32+)``.
    """
    for form in _forms(frozenset(secrets)):
        if form in text:
            text = text.replace(form, masked(form))
    for hints, pattern in _SHAPES:
        for hint in hints:  # spelled out: this runs for every text of an export
            if hint in text:
                text = pattern.sub(_mask_match, text)
                break
    return text


def may_hold_secret(line: bytes, secrets: frozenset[str]) -> bool:
    """Whether a line of JSON has to be looked at more closely: false only when nothing in it can be masked.

    Much faster than taking the line apart. Escapes that could hide a word are reason enough.
    """
    return any(hint in line for hint in _byte_hints(secrets))


@lru_cache(maxsize=16)
def _byte_hints(secrets: frozenset[str]) -> tuple[bytes, ...]:
    words = [hint for hints, _ in _SHAPES for hint in hints]
    texts = [*words, *_forms(secrets), "\\u", "\\/"]
    return tuple(text.encode("utf-8", "surrogatepass") for text in texts)


@lru_cache(maxsize=16)
def _forms(secrets: frozenset[str]) -> tuple[str, ...]:
    """Every spelling to look for, longest first so that a prefix never hides the rest of a longer one."""
    forms: set[str] = set()
    for secret in secrets:
        if len(secret) < MIN_SECRET_CHARS:
            continue
        encoded = base64.b64encode(secret.encode("utf-8", "replace")).decode("ascii").rstrip("=")
        escaped = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
        forms |= {secret, quote(secret, safe="", errors="replace"), encoded} | escaped
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _mask_match(match: re.Match[str]) -> str:
    secret = match["secret"]
    if _MASKED.fullmatch(secret):
        return match[0]
    start, end = match.start("secret") - match.start(), match.end("secret") - match.start()
    return match[0][:start] + masked(secret) + match[0][end:]


def masked(secret: str) -> str:
    """What is shown instead of a secret: its first two characters and a length class."""
    if len(secret) < MIN_SECRET_CHARS:
        return "…"
    length_class = next(size for size in _LENGTH_CLASSES if len(secret) >= size)
    return f"{secret[:2]}…({length_class}+)"
