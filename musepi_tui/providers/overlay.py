"""The user's ``models.json`` laid over the built-in table (providers 9.3, contract 5)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from musepi_tui.base.files import read_regular
from musepi_tui.settings.jsonc import BrokenJson, find_line, parse_object

MODELS_FILE = "models.json"
MAX_MODELS_BYTES = 16_000_000
APIS = ("anthropic-messages", "openai-completions", "openai-responses", "google-generative-ai")

_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_NOT_A_LINE_BREAK = re.compile(r"[^\n]")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """One provider of the file, checked. ``models`` and ``overrides`` are rows as written."""

    base_url: str | None = None
    api: str | None = None
    api_key: str | None = None
    headers: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    auth_header: bool | None = None
    compat: Mapping[str, Any] = field(default_factory=dict[str, Any])
    models: tuple[Mapping[str, Any], ...] = ()
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])


@dataclass(frozen=True, slots=True)
class Overlay:
    """What the file says. ``problems`` are lines for people; ``is_broken``: nothing of it can be used."""

    providers: Mapping[str, ProviderRow] = field(default_factory=dict[str, ProviderRow])
    problems: tuple[str, ...] = ()
    is_broken: bool = False


def load_overlay(config_dir: Path) -> Overlay:
    """The file of ``config_dir``; empty when there is none. Never raises: a bad row is left out and told."""
    path = config_dir / MODELS_FILE
    try:
        data = read_regular(path, MAX_MODELS_BYTES)
    except FileNotFoundError:
        return Overlay()
    except OSError as error:
        return Overlay(problems=(f"{path} cannot be read: {error.strerror or error}",), is_broken=True)
    try:
        values, _ = parse_object(_without_extras(data))
    except BrokenJson as error:
        where = f"{path}:{error.line}:{error.column}"
        text = f"{where}: {error.reason}. Mend it; until then only what was read from it before is used"
        return Overlay(problems=(text,), is_broken=True)
    return _Checker(path, data).check(cast("Row", values))


def _without_extras(data: bytes) -> bytes:
    """The text with comments and trailing commas blanked; every other character keeps its place."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data
    text = _STRING_OR_COMMENT.sub(lambda match: _keep_string(match[0]), text)
    return _STRING_OR_COMMA.sub(lambda match: _keep_string(match[0]), text).encode()


def _keep_string(text: str) -> str:
    return text if text.startswith('"') else _NOT_A_LINE_BREAK.sub(" ", text)


class _Checker:
    """Reads the rows and collects what cannot be used, each with its place in the file."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._path = path
        self._data = data
        self._problems: list[str] = []

    def check(self, values: Row) -> Overlay:
        providers = values.get("providers", {})
        if not isinstance(providers, dict):
            self._note("providers", "must be an object of providers")
            providers = {}
        found: dict[str, ProviderRow] = {}
        for name, row in cast("Row", providers).items():
            if isinstance(row, dict):
                found[name] = self._read_provider(name, cast("Row", row))
            else:
                self._note(f"providers.{name}", "must be an object")
        return Overlay(found, tuple(self._problems))

    def _read_provider(self, name: str, row: Row) -> ProviderRow:
        key = f"providers.{name}"
        auth_header = row.get("authHeader")
        return ProviderRow(
            base_url=self._text(row, "baseUrl", key),
            api=self._api(row, key),
            api_key=self._text(row, "apiKey", key),
            headers=self._headers(row, key),
            auth_header=auth_header if isinstance(auth_header, bool) else None,
            compat=self._object(row, "compat", key),
            models=self._models(row, key),
            overrides={
                model_id: cast("Row", change)
                for model_id, change in self._object(row, "modelOverrides", key).items()
                if isinstance(change, dict)
                and self._is_good_row(cast("Row", change), f"{key}.modelOverrides")
            },
        )

    def _models(self, row: Row, key: str) -> tuple[Row, ...]:
        models = row.get("models", [])
        if not isinstance(models, list):
            self._note(f"{key}.models", "must be a list")
            return ()
        good: list[Row] = []
        for model in cast("list[object]", models):
            if not isinstance(model, dict) or not isinstance(cast("Row", model).get("id"), str):
                self._note(f"{key}.models", 'every model needs an "id"; one was left out')
                continue
            if self._is_good_row(cast("Row", model), f"{key}.models"):
                good.append(cast("Row", model))
        return tuple(good)

    def _is_good_row(self, row: Row, key: str) -> bool:
        before = len(self._problems)
        label = f"{row['id']}: " if isinstance(row.get("id"), str) else ""
        for name, check, wanted in _FIELDS:
            if name in row and not check(row[name]):
                self._note(f"{key}.{name}", f"{label}{name} must be {wanted}; the row was left out")
        if "api" in row and row["api"] not in APIS:
            self._note(f"{key}.api", f"{label}api must be one of {', '.join(APIS)}; the row was left out")
        return len(self._problems) == before

    def _text(self, row: Row, name: str, key: str) -> str | None:
        value = row.get(name)
        if value is None or isinstance(value, str) and value:
            return value
        self._note(f"{key}.{name}", f"{name} must be a text")
        return None

    def _api(self, row: Row, key: str) -> str | None:
        api = self._text(row, "api", key)
        if api is None or api in APIS:
            return api
        self._note(f"{key}.api", f"api {api!r} is unknown; it must be one of {', '.join(APIS)}")
        return None

    def _object(self, row: Row, name: str, key: str) -> Row:
        value = row.get(name, {})
        if isinstance(value, dict):
            return cast("Row", value)
        self._note(f"{key}.{name}", f"{name} must be an object")
        return {}

    def _headers(self, row: Row, key: str) -> Mapping[str, str | None]:
        headers = self._object(row, "headers", key)
        return {name: value for name, value in headers.items() if value is None or isinstance(value, str)}

    def _note(self, key: str, text: str) -> None:
        line = find_line(self._data, key)
        place = f":{line}" if line else ""
        self._problems.append(f"{self._path}{place}: {key}: {text}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_text_list(value: object) -> bool:
    return isinstance(value, list) and all(item in ("text", "image") for item in cast("list[object]", value))


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


_FIELDS = (
    ("contextWindow", _is_count, "a number of tokens above 0"),
    ("maxTokens", _is_count, "a number of tokens above 0"),
    ("input", _is_text_list, 'a list of "text" and "image"'),
    ("reasoning", _is_bool, "true or false"),
    ("cost", _is_object, "an object"),
    ("headers", _is_object, "an object"),
    ("compat", _is_object, "an object"),
    ("thinkingLevelMap", _is_object, "an object"),
)
