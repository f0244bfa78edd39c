import pytest

from musepi_tui.providers.compat import compat_of, find_vendor
from musepi_tui.providers.types import Model


@pytest.mark.parametrize(
    ("provider", "base_url", "vendor"),
    [
        ("deepseek", "https://proxy.example/v1", "deepseek"),
        ("mine", "https://api.deepseek.com/v1", "deepseek"),
        ("mine", "https://eu.api.mistral.ai/v1", "mistral"),
        ("mine", "http://localhost:11434/v1", "ollama"),
        ("mine", "http://127.0.0.1:8080/v1", "llamacpp"),
        ("mine", "http://10.0.0.1:8080/v1", None),
        ("mine", "https://notapi.deepseek.com.evil.example/v1", None),
        ("mine", "http://127.0.0.1:99999999/v1", None),
        ("mine", "", None),
    ],
)
def test_vendor_is_told_by_name_host_or_port(provider, base_url, vendor):
    found = find_vendor(provider, base_url)
    assert (found and found.id) == vendor


def test_flags_of_the_row_win_over_those_of_the_vendor():
    flags = {"requiresReasoningContent": False, "idleTimeoutMs": 5, "unknownFlag": 1, "supportsStore": "yes"}
    model = Model("deepseek", "m", "openai-completions", "https://api.deepseek.com", compat=flags)
    found = compat_of(model)
    assert (found.requires_reasoning_content, found.idle_timeout_ms) == (False, 5)
    assert found.supports_store is False
    assert found.thinking_format == "deepseek"


def test_unknown_server_gets_plain_defaults():
    found = compat_of(Model("mine", "m", "openai-completions", "https://x.example/v1"))
    assert found.max_tokens_field == "max_tokens"
    assert not found.supports_store
    assert not found.supports_strict_mode
    assert not found.supports_developer_role
