"""A provider failure as one line for a person: the cause first, then the remedy (safety 16)."""

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.base.secrets import mask
from musepi_tui.base.text import cut, duration
from musepi_tui.providers.keyring import key_places
from musepi_tui.providers.types import Credentials, Model

MAX_WORDS_CHARS = 500
"""How much of the server's own words is shown (safety 16)."""

_BY_CAUSE = {
    "html": "Check the base URL (baseUrl in models.json, --base-url) and any proxy in between.",
    "address": "Set baseUrl in models.json, or --base-url, to an address like https://host/v1.",
    "redirect": "Set baseUrl in models.json, or --base-url, to the new address if you trust it.",
    "refused": "Is the server running? Check the base URL (--base-url, baseUrl in models.json).",
    "dns": "Check the base URL and the network connection; HTTPS_PROXY names a proxy.",
    "tls": "Add the authority with SSL_CERT_FILE, SSL_CERT_DIR or the setting network.caFile.",
    "proxy": "Check HTTP_PROXY, HTTPS_PROXY and NO_PROXY.",
    "offline": "Unset MUSEPI_OFFLINE, or choose a model on this machine.",
    "plain_http": "Use an https base URL.",
    "timeout": "Try again; network.firstEventTimeoutSeconds and network.idleTimeoutSeconds set the limits.",
    "cut": "Try again; what was received is kept. network.idleTimeoutSeconds sets the time-out.",
    "api": "",
}
_AGAIN = "Try again; retry.requestRetries and network.idleTimeoutSeconds set how long it is tried."
_BY_KIND = {
    ErrorKind.OVERFLOW: "Use /compact, or a model with a larger context window (/model).",
    ErrorKind.PAYLOAD: "Remove large images or files from the request, or use /compact.",
    ErrorKind.ABORTED: "",
    ErrorKind.QUOTA: "Check billing and limits of your account there, or choose another model (/model).",
    ErrorKind.OVERLOADED: _AGAIN,
    ErrorKind.SERVER: _AGAIN,
    ErrorKind.TRANSPORT: _AGAIN,
    ErrorKind.CONFLICT: _AGAIN,
    ErrorKind.REFUSAL: "Word the request differently, or choose another model (/model).",
    ErrorKind.NOT_FOUND: "musepi models list shows the models; check the name and the base URL.",
    ErrorKind.INVALID_REQUEST: "Another model or thinking level may accept it (/model).",
}


def explain(error: ProviderError, model: Model | None = None, credentials: Credentials | None = None) -> str:
    """What happened and what to do about it, in one line without keys."""
    secrets = [credentials.key] if credentials is not None and credentials.key else []
    words = " ".join(mask(str(error), secrets).split())
    words = cut(words, MAX_WORDS_CHARS)
    cause = words if model is None or model.key in words else f"{model.key}: {words}"
    remedy = _remedy(error, model, credentials)
    if not remedy or remedy in words:
        return cause
    return f"{cause}{'' if cause.endswith(('.', '!', '?')) else '.'} {remedy}"


def _remedy(error: ProviderError, model: Model | None, credentials: Credentials | None) -> str:
    if error.cause == "key" and "--api-key" in str(error):
        return ""  # the registry's text already names every place
    if error.kind is ErrorKind.AUTH:
        provider = model.provider if model is not None else "the provider"
        used = f" The key in use came from {credentials.source}." if credentials and credentials.key else ""
        places = key_places(provider)
        return f"{places[0].upper()}{places[1:]}.{used}"
    if error.cause in _BY_CAUSE:
        return _BY_CAUSE[error.cause]
    if error.kind is ErrorKind.RATE_LIMIT:
        hint = error.retry_after_s
        return f"It may be tried again in {duration(hint)}." if hint else "Wait a minute, then try again."
    return _BY_KIND[error.kind]
