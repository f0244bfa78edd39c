"""Which models there are, which can be used, and with which key (providers 9, 10; contract 3, 5)."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.base.known_secrets import KnownSecrets, find_secrets
from musepi_tui.providers.apis import DEMO_API, supported_apis
from musepi_tui.providers.auth import load_stored_keys
from musepi_tui.providers.catalogue import Vendor, load_vendors
from musepi_tui.providers.demo.spec import DEMO_MODEL
from musepi_tui.providers.keyring import FlagKey, KeyRing, plain_headers
from musepi_tui.providers.overlay import Overlay, ProviderRow, load_overlay
from musepi_tui.providers.rows import Defaults, merge_row, read_row, unlisted_model
from musepi_tui.providers.types import Credentials, Model, ThinkingLevel

AD_HOC_API = "openai-completions"
AD_HOC_PROVIDER = "custom"


@dataclass(frozen=True, slots=True)
class AdHoc:
    """The model flags of the command line, None where not given (contract 3)."""

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = None


@dataclass(frozen=True, slots=True)
class Selector:
    """``provider/model[:level]`` taken apart."""

    provider: str | None
    model_id: str
    level: ThinkingLevel | None = None


class ModelRegistry:
    """The table: built-in rows < ``models.json`` < command line (providers 9.2)."""

    def __init__(self, config_dir: Path, environ: Mapping[str, str], flags: AdHoc) -> None:
        self._config_dir = config_dir
        self._environ = environ
        self._flags = flags
        self._overlay = Overlay()
        self._defaults: dict[str, Defaults] = {}
        self._models: tuple[Model, ...] = ()
        self.problems: tuple[str, ...] = ()
        self.reload()

    @classmethod
    def load(
        cls, config_dir: Path, environ: Mapping[str, str], *, flags: AdHoc | None = None
    ) -> "ModelRegistry":
        """The table as the files of ``config_dir`` and the environment say. Blocking; never raises."""
        return cls(config_dir, environ, flags or AdHoc())

    def reload(self) -> None:
        """Reads the files again. A broken models.json changes nothing but ``problems``."""
        overlay = load_overlay(self._config_dir)
        if not overlay.is_broken:
            self._overlay = overlay
        stored = load_stored_keys(self._config_dir)
        stored_problem = (stored.problem,) if stored.problem else ()
        self.problems = (*overlay.problems, *stored_problem)
        self._build()
        self._keys = KeyRing(stored, self._overlay.providers, self._environ, self._flag_key())

    @property
    def models(self) -> tuple[Model, ...]:
        """Every row, the demo's last."""
        return self._models

    @property
    def providers(self) -> tuple[str, ...]:
        """Every provider that is known, the demo left out."""
        return tuple(self._defaults)

    def find(self, provider: str | None, model_id: str) -> Model:
        """The model of that name. Raises ProviderError NOT_FOUND that names near ones.

        Without a provider the id is looked up in all of them, those with a key first; a unique part of an id
        is enough. A known provider may have models the table does not list: they get its defaults and
        the source ``unlisted``.
        """
        if provider is not None:
            return self._find_at(provider, model_id)
        exact = [model for model in self._models if model_id in (model.id, model.key)]
        if exact:
            return next((model for model in exact if self._is_usable(model)), exact[0])
        lowered = model_id.lower()
        similar = [model for model in self._models if lowered and lowered in model.key.lower()]
        usable = [model for model in similar if self._is_usable(model)]
        for found in (usable, similar):
            if len(found) == 1:
                return found[0]
        raise self._not_found(model_id, similar)

    def find_text(self, text: str) -> tuple[Model, ThinkingLevel | None]:
        """The model of ``[provider/]model[:level]``, and the level. Raises ProviderError NOT_FOUND."""
        selector = self.parse_selector(text)
        return self.find(selector.provider, selector.model_id), selector.level

    def parse_selector(self, text: str) -> Selector:
        """``text`` taken apart. The first part is a provider only when one has that name, the last part
        a level only when it is one: ids may contain ``/`` and ``:``."""
        head, colon, tail = text.rpartition(":")
        level = ThinkingLevel(tail) if colon and tail in set(ThinkingLevel) else None
        name = head if level is not None else text
        provider, slash, model_id = name.partition("/")
        if slash and (provider in self._defaults or provider == DEMO_MODEL.provider):
            return Selector(provider, model_id, level)
        return Selector(None, name, level)

    def available(self) -> tuple[Model, ...]:
        """The models that can be used now: a key is there, or none is needed; the demo is one of them."""
        return tuple(model for model in self._models if self._is_usable(model))

    def credentials(self, model: Model) -> Credentials:
        """What authorises a request to ``model``; key commands are only named, not run.

        Raises ProviderError AUTH that names where a key could come from.
        """
        return self._keys.credentials(model)

    def known_secrets(self) -> KnownSecrets:
        """What must be masked in anything that leaves: keys in use and stored, secret variables. Blocks."""
        key = self._flags.api_key
        return find_secrets(self._config_dir, self._environ, (key,) if key else ())

    def startup_model(self, wanted: str | None) -> Model | None:
        """The model to begin with (providers 9.2): ``wanted``, the flags', else the recommended one of the
        first provider with a key, else the first of the user's own. None leaves the demo.

        Raises ProviderError NOT_FOUND when ``wanted`` or the flags name no model.
        """
        if wanted is not None:
            return self.find_text(wanted)[0]
        flagged = self.flag_model()
        if flagged is not None:
            return flagged
        usable = [model for model in self._models if self._is_usable(model) and model.api != DEMO_API]
        vendors = load_vendors()
        with_key = [model for model in usable if model.provider in vendors]
        for model in with_key:
            if model.recommended or not any(
                other.recommended for other in with_key if other.provider == model.provider
            ):
                return model
        return usable[0] if usable else None

    def flag_model(self) -> Model | None:
        """The model of ``--provider``, ``--model`` and ``--base-url``; None when no flag names one.

        Raises ProviderError NOT_FOUND for an unknown provider without an address.
        """
        flags = self._flags
        if flags.model is None:
            if flags.provider is None and flags.base_url is None:
                return None
            return self._first_of(flags.provider or AD_HOC_PROVIDER)
        if flags.provider is None and flags.base_url is None:
            return self.find_text(flags.model)[0]
        selector = self.parse_selector(flags.model)
        model_id = selector.model_id if selector.provider in (None, flags.provider) else flags.model
        return self.find(flags.provider or AD_HOC_PROVIDER, model_id)

    def _build(self) -> None:
        vendors = load_vendors()
        self._defaults = {}
        rows: list[Model] = []
        for name in [*vendors, *(name for name in self._overlay.providers if name not in vendors)]:
            rows.extend(self._rows_of(name, vendors.get(name), self._overlay.providers.get(name)))
        rows.extend(self._flag_rows(rows))
        self._models = (*rows, DEMO_MODEL)

    def _rows_of(self, name: str, vendor: Vendor | None, user: ProviderRow | None) -> list[Model]:
        user = user or ProviderRow()
        base_url = self._base_url(vendor, user, name)
        api = user.api or (vendor.api if vendor is not None else None)
        if not base_url or api is None:
            if vendor is None:
                self.problems += (f"models.json: providers.{name}: a new provider needs baseUrl and api",)
            return []
        headers = {**(vendor.headers if vendor else {}), **plain_headers(user)}
        defaults = Defaults(name, api, base_url, "builtin", headers, user.compat)
        self._defaults[name] = defaults
        own = {row["id"]: row for row in user.models}
        rows: list[Model] = []
        for row in vendor.models if vendor is not None else ():
            if row["id"] not in own:
                change = user.overrides.get(row["id"], {})
                source = "models.json" if change else "builtin"
                rows.append(read_row(merge_row(row, change), replace(defaults, source=source)))
        for model_id, row in own.items():
            merged = merge_row(row, user.overrides.get(model_id, {}))
            rows.append(read_row(merged, replace(defaults, source="models.json")))
        return rows

    def _base_url(self, vendor: Vendor | None, user: ProviderRow, name: str) -> str:
        if self._flags.base_url is not None and self._flags.provider == name:
            return self._flags.base_url
        if user.base_url:
            return user.base_url
        if vendor is None:
            return ""
        from_environment = self._environ.get(vendor.base_url_env or "", "")
        return _complete_url(from_environment, vendor) if from_environment else vendor.base_url

    def _flag_rows(self, rows: Iterable[Model]) -> list[Model]:
        """The row of ``--base-url`` for a provider nobody has, and unlisted ``--model`` names."""
        flags = self._flags
        name = flags.provider or (AD_HOC_PROVIDER if flags.base_url else None)
        if name is None:
            return []
        if name not in self._defaults:
            if flags.base_url is None:
                return []
            self._defaults[name] = Defaults(name, AD_HOC_API, flags.base_url, "flags")
        if flags.model is None or any(row.provider == name and row.id == flags.model for row in rows):
            return []
        model_id = self.parse_selector(flags.model)
        wanted = model_id.model_id if model_id.provider in (None, name) else flags.model
        if any(row.provider == name and row.id == wanted for row in rows):
            return []
        return [unlisted_model(wanted, replace(self._defaults[name], source="flags"))]

    def _flag_key(self) -> FlagKey | None:
        """``--api-key`` and the provider it is meant for: it is never sent to another one."""
        flags = self._flags
        if not flags.api_key:
            return None
        if flags.provider is not None or flags.base_url is not None:
            return FlagKey(flags.api_key, flags.provider or AD_HOC_PROVIDER)
        if flags.model is None:
            return FlagKey(flags.api_key, None)
        selector = self.parse_selector(flags.model)
        owners = [model.provider for model in self._models if model.id == selector.model_id]
        return FlagKey(flags.api_key, selector.provider or (owners[0] if owners else None))

    def _find_at(self, provider: str, model_id: str) -> Model:
        own = [model for model in self._models if model.provider == provider]
        for model in own:
            if model.id == model_id:
                return model
        defaults = self._defaults.get(provider)
        if defaults is None:
            near = difflib.get_close_matches(provider, self._defaults, n=3, cutoff=0.5)
            hint = f" Similar: {', '.join(near)}." if near else ""
            raise _not_found_error(
                f"No provider is called {provider!r}.{hint} musepi models list shows them; "
                "--base-url adds one for this run, models.json for good"
            )
        return unlisted_model(model_id, replace(defaults, source="unlisted"))

    def _first_of(self, provider: str) -> Model:
        own = [model for model in self._models if model.provider == provider]
        chosen = next((model for model in own if model.recommended), own[0] if own else None)
        if chosen is None:
            raise _not_found_error(f"Which model of {provider}? Name one with --model")
        return chosen

    def _not_found(self, model_id: str, similar: "list[Model]") -> ProviderError:
        keys = [model.key for model in similar]
        ids = {model.id: model.key for model in self._models}
        keys = keys or [ids[near] for near in difflib.get_close_matches(model_id, ids, n=3, cutoff=0.4)]
        hint = f" Similar: {', '.join(keys[:5])}." if keys else ""
        return _not_found_error(
            f"No model is called {model_id!r}.{hint} musepi models list shows all of them"
        )

    def _is_usable(self, model: Model) -> bool:
        if model.api == DEMO_API:
            return True
        return model.api in supported_apis() and self._keys.has_key(model)


def _complete_url(written: str, vendor: Vendor) -> str:
    """An address of the environment as a base URL: ``OLLAMA_HOST`` may be a bare ``host[:port]``."""
    url = written.strip().rstrip("/")
    if "://" in url:
        return url
    if vendor.ports and ":" not in url:
        url = f"{url}:{vendor.ports[0]}"
    return f"http://{url}/v1"


def _not_found_error(text: str) -> ProviderError:
    return ProviderError(text, kind=ErrorKind.NOT_FOUND)
