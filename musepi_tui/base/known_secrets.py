"""The values that must not leave this machine: where they are kept, and masking them (SAF-100, TUI-8.30)."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.files import read_regular
from musepi_tui.base.secrets import MIN_SECRET_CHARS, mask, masked, may_hold_secret

MAX_FILE_BYTES = 1_000_000
SECRETS_FILE = "secrets.json"

_KEY_FILES = ("auth.json", "models.json")
_WORDS = frozenset(
    ("KEY", "SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASS", "AUTH", "CREDENTIAL", "CREDENTIALS", "PRIVATE")
    + ("OAUTH", "BEARER", "COOKIE", "DSN")
)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_EXTRA_KEYS = frozenset({"access", "refresh"})
"""Names under which sign-in tokens are stored in ``auth.json``, besides the words above."""

_DULL = frozenset({"true", "false", "none", "null", "enabled", "disabled", "required", "localhost"})
_STRUCTURE = frozenset({"type", "id", "parentId", "timestamp"})
"""Fields of an entry the tree is made of: changing one would tear it."""


@dataclass(frozen=True, slots=True)
class KnownSecrets:
    """Values to mask wherever they stand, and patterns of the user's own. ``problems`` are sentences about
    files that could not be read, each once."""

    values: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()
    problems: tuple[str, ...] = ()

    def mask(self, text: str) -> str:
        """The text with the values, what the patterns match and everything shaped like a key masked."""
        text = mask(text, self.values)
        for pattern in self.patterns:
            text = pattern.sub(_masked_match, text)
        return text

    def may_occur_in(self, line: bytes) -> bool:
        """Whether a line of JSON may hold anything to mask; false only when it surely does not."""
        return bool(self.patterns) or may_hold_secret(line, self.values)

    def mask_json(self, value: object, *, is_entry: bool = False) -> object:
        """The same for every text inside a parsed JSON value; the value itself when nothing had to change.

        Pictures stay as they are. ``is_entry``: the fields that hold the tree together stay too.
        """
        if isinstance(value, str):
            return self.mask(value) if len(value) >= MIN_SECRET_CHARS else value
        if isinstance(value, list):
            items = cast("list[object]", value)
            cleaned = [self.mask_json(item) for item in items]
            return items if all(new is old for new, old in zip(cleaned, items, strict=True)) else cleaned
        if isinstance(value, dict):
            return self._mask_object(
                cast("dict[str, object]", value), _STRUCTURE if is_entry else frozenset()
            )
        return value

    def _mask_object(self, value: dict[str, object], kept: frozenset[str]) -> object:
        if value.get("type") == "image":
            kept = kept | {"data"}
        out: dict[str, object] = {}
        changed = False
        for key, item in value.items():
            name = self.mask(key) if len(key) >= MIN_SECRET_CHARS else key
            while name != key and (name in out or name in value):
                name += "…"
            out[name] = item if key in kept else self.mask_json(item)
            changed = changed or name != key or out[name] is not item
        return out if changed else value


def find_secrets(config: Path, environ: Mapping[str, str], keys: Iterable[str] = ()) -> KnownSecrets:
    """Everything known to be secret: variables, stored keys, ``secrets.json`` of the user, ``keys`` in use.

    ``config`` is the folder of the settings. Unreadable files are named in ``problems``. Blocks.
    """
    found = {value for value in keys if len(value) >= MIN_SECRET_CHARS}
    found |= environment_secrets(environ)
    patterns: list[re.Pattern[str]] = []
    problems: list[str] = []
    for name in (*_KEY_FILES, SECRETS_FILE):
        try:
            stored = _read_json(config / name)
        except (OSError, ValueError, RecursionError) as error:
            problems.append(f"{config / name} could not be read, so what it holds is not masked: {error}")
            continue
        if name == SECRETS_FILE:
            found |= {value for value in _plain_values(stored) if len(value) >= MIN_SECRET_CHARS}
            patterns += _compile(_patterns(stored), config / name, problems)
        else:
            found |= {value for value in _values_under_keys(stored) if _is_literal(value)}
    return KnownSecrets(frozenset(found), tuple(patterns), tuple(problems))


def environment_secrets(environ: Mapping[str, str]) -> frozenset[str]:
    """The values of variables whose name says that they are secret, dull ones left out."""
    dull = _DULL | {environ.get(name, "") for name in ("USER", "LOGNAME", "HOME", "HOSTNAME", "PWD")}
    return frozenset(
        value
        for name, value in environ.items()
        if names_secret(name)
        and len(value) >= MIN_SECRET_CHARS
        and value.lower() not in dull
        and value not in dull
        and not value.isdigit()
        and not (value.startswith(("/", "~", ".")) and os.path.exists(os.path.expanduser(value)))  # noqa: PTH110, PTH111 - never raise
    )


def names_secret(name: str) -> bool:
    """Whether a word of a name stands for a secret: ``MY_API_KEY`` and ``apiKey`` do, ``AUTHOR`` does not."""
    return any(part.upper() in _WORDS for part in _PARTS.findall(name))


def _read_json(path: Path) -> object:
    try:
        return json.loads(read_regular(path, MAX_FILE_BYTES))
    except FileNotFoundError:
        return None


def _values_under_keys(value: object) -> Iterator[str]:
    """Every text whose key names a secret."""
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            if isinstance(item, str):
                if names_secret(key) or key in _EXTRA_KEYS:
                    yield item
            else:
                yield from _values_under_keys(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _values_under_keys(item)


def _is_literal(value: str) -> bool:
    """Whether a stored key is the key itself and not the name of a variable or a command."""
    return len(value) >= MIN_SECRET_CHARS and not value.startswith(("!", "$"))


def _plain_values(value: object) -> Iterator[str]:
    """Every text of the user's own list but its patterns."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            if key not in ("regex", "name", "type"):
                yield from _plain_values(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _plain_values(item)


def _patterns(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            if key == "regex" and isinstance(item, str):
                yield item
            else:
                yield from _patterns(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _patterns(item)


def _compile(written: Iterable[str], path: Path, problems: list[str]) -> Iterator[re.Pattern[str]]:
    for text in written:
        try:
            yield re.compile(text)
        except re.error as error:
            problems.append(f"{path}: {text!r} is no pattern: {error}")


def _masked_match(match: re.Match[str]) -> str:
    return masked(match[0]) if match[0] else ""
