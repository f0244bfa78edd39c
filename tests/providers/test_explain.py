import pytest

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.classify import classify_http
from musepi_tui.providers.explain import explain
from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.providers.types import Credentials, Model

MODEL = Model("anthropic", "claude-x", "anthropic-messages", "https://api.anthropic.com")


def failure(kind, cause=None, **fields):
    error = ProviderError("what happened", kind=kind, **fields)
    error.cause = cause
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (failure(ErrorKind.AUTH), ["ANTHROPIC_API_KEY", "auth.json", "--api-key"]),
        (failure(ErrorKind.QUOTA), ["billing"]),
        (failure(ErrorKind.RATE_LIMIT, retry_after_s=12.0), ["tried again in 12s"]),
        (failure(ErrorKind.RATE_LIMIT), ["try again"]),
        (failure(ErrorKind.OVERLOADED), ["Try again", "network.idleTimeoutSeconds"]),
        (failure(ErrorKind.SERVER), ["Try again", "network.idleTimeoutSeconds"]),
        (failure(ErrorKind.TRANSPORT, "timeout"), ["Try again", "network.idleTimeoutSeconds"]),
        (failure(ErrorKind.TRANSPORT, "cut"), ["Try again", "network.idleTimeoutSeconds"]),
        (failure(ErrorKind.OVERFLOW), ["/compact", "larger"]),
        (failure(ErrorKind.NOT_FOUND), ["musepi models list"]),
        (failure(ErrorKind.NOT_FOUND, "html"), ["proxy", "base URL"]),
        (failure(ErrorKind.TRANSPORT, "tls"), ["SSL_CERT_FILE", "SSL_CERT_DIR", "network.caFile"]),
        (failure(ErrorKind.TRANSPORT, "refused"), ["base URL", "Is the server running?"]),
        (failure(ErrorKind.TRANSPORT, "offline"), ["MUSEPI_OFFLINE"]),
    ],
)
def test_failure_comes_with_its_remedy_behind_the_cause(error, words):
    text = explain(error, MODEL)
    assert text.startswith("anthropic/claude-x: what happened. ")
    for word in words:
        assert word in text
    assert "\n" not in text


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_every_kind_is_explained(kind):
    assert "what happened" in explain(failure(kind))


def test_key_is_masked_and_its_source_named():
    key = "sk-secret-0123456789abcdef"
    error = classify_http(401, {}, f'{{"error": {{"message": "bad key {key}"}}}}'.encode())
    text = explain(error, MODEL, Credentials(key, "auth.json"))
    assert key not in text
    assert "came from auth.json" in text


def test_servers_words_are_cut():
    error = classify_http(400, {}, b'{"error": {"message": "' + b"x" * 5000 + b'"}}')
    assert len(explain(error, MODEL)) < 700


def test_missing_key_is_not_explained_twice(tmp_path):
    registry = ModelRegistry.load(tmp_path, {})
    model = registry.find("anthropic", "claude-opus-5")
    with pytest.raises(ProviderError) as caught:
        registry.credentials(model)
    assert explain(caught.value, model).count("auth.json") == 1
