"""Which key belongs to a model, and where one could come from (providers 10)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from musepi_tui.base.address import address_of
from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.base.http import is_loopback_host
from musepi_tui.providers.auth import StoredKeys, Value, read_value
from musepi_tui.providers.catalogue import load_vendors
from musepi_tui.providers.demo.spec import DEMO_MODEL
from musepi_tui.providers.overlay import ProviderRow
from musepi_tui.providers.types import Credentials, Model


@dataclass(frozen=True, slots=True)
class FlagKey:
    """The key of ``--api-key``; ``provider`` None: whichever is used."""

    key: str
    provider: str | None


class KeyRing:
    """Finds keys. Order: ``--api-key``, ``auth.json``, environment, ``models.json``."""

    def __init__(
        self,
        stored: StoredKeys,
        rows: Mapping[str, ProviderRow],
        environ: Mapping[str, str],
        flag: FlagKey | None,
    ) -> None:
        self._stored = stored
        self._rows = rows
        self._environ = environ
        self._flag = flag

    def has_key(self, model: Model) -> bool:
        """Whether a request to ``model`` could be authorised."""
        try:
            self.credentials(model)
        except ProviderError:
            return False
        return True

    def credentials(self, model: Model) -> Credentials:
        """What authorises a request to ``model``. Raises ProviderError AUTH when nothing does."""
        if model.api == DEMO_MODEL.api:
            return Credentials(None, "none needed")
        row = self._rows.get(model.provider, ProviderRow())
        headers, commands = self._secret_headers(model.provider)
        found = self._find_key(model, row)
        if found is None:
            if self._needs_key(model):
                raise self._no_key(model, row)
            return Credentials(None, "none needed", headers=headers, commands=commands)
        bearer = found.bearer or row.auth_header is True
        return replace(found, bearer=bearer, headers=headers, commands={**found.commands, **commands})

    def _find_key(self, model: Model, row: ProviderRow) -> Credentials | None:
        flag = self._flag
        if flag is not None and flag.provider in (None, model.provider):
            return self._from_value(read_value(flag.key, self._environ), "--api-key")
        stored = self._stored.keys.get(model.provider)
        if stored:
            found = self._from_value(read_value(stored, self._environ), "auth.json")
            if found is not None:
                return found
        vendor = load_vendors().get(model.provider)
        for name in vendor.key_variables if vendor is not None else ():
            if self._environ.get(name):
                is_bearer = vendor is not None and name in vendor.bearer_env
                return Credentials(self._environ[name].strip(), name, bearer=is_bearer)
        return (
            self._from_value(read_value(row.api_key, self._environ), "models.json") if row.api_key else None
        )

    def _from_value(self, value: Value, source: str) -> Credentials | None:
        if value.command is not None:
            return Credentials(None, source, commands={"": value.command})
        return Credentials(value.text.strip(), source) if value.text else None

    def _needs_key(self, model: Model) -> bool:
        """Servers on this machine and providers nobody named a key for may go without one."""
        if is_loopback_host(address_of(model.base_url).host):
            return False
        vendor = load_vendors().get(model.provider)
        row = self._rows.get(model.provider, ProviderRow())
        return row.api_key is not None or vendor is not None and bool(vendor.key_variables)

    def _no_key(self, model: Model, row: ProviderRow) -> ProviderError:
        places = key_places(model.provider)
        missing = read_value(row.api_key, self._environ).missing if row.api_key else ()
        unset = f" ({', '.join(missing)}, which models.json names, is not set)" if missing else ""
        stored = f" {self._stored.problem}." if self._stored.problem else ""
        error = ProviderError(f"No key for {model.provider}{unset}: {places}.{stored}", kind=ErrorKind.AUTH)
        error.cause = "key"
        return error

    def _secret_headers(self, provider: str) -> tuple[dict[str, str | None], dict[str, str]]:
        row = self._rows.get(provider, ProviderRow())
        headers: dict[str, str | None] = {}
        commands: dict[str, str] = {}
        for name, written in row.headers.items():
            if written is None or not is_secret(written):
                continue
            value = read_value(written, self._environ)
            if value.command is not None:
                commands[name.lower()] = value.command
            elif value.text is not None:
                headers[name.lower()] = value.text
        return headers, commands


def key_places(provider: str) -> str:
    """Where a key for ``provider`` can be put, for people: variable, auth.json, flag."""
    vendor = load_vendors().get(provider)
    names = vendor.key_variables if vendor is not None else ()
    variable = f"set {' or '.join(names[:2])}, " if names else ""
    entry = f'{{"{provider}": {{"type": "api_key", "key": "…"}}}}'
    return f"{variable}put it into auth.json as {entry}, or use --api-key"


def plain_headers(row: ProviderRow) -> dict[str, str | None]:
    """The headers without secrets in them; the others are resolved for each request."""
    return {name: value for name, value in row.headers.items() if value is None or not is_secret(value)}


def is_secret(written: str) -> bool:
    """Whether a value comes from a variable or a command: not for listings."""
    return written.startswith("!") or "$" in written
