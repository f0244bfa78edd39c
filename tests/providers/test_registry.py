import json
import os
import subprocess
import sys

import pytest

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.registry import AdHoc, ModelRegistry
from musepi_tui.providers.types import ThinkingLevel


def load(folder, environ=None, **flags):
    return ModelRegistry.load(folder, environ or {}, flags=AdHoc(**flags) if flags else None)


def write_models(folder, providers):
    text = providers if isinstance(providers, str) else json.dumps({"providers": providers})
    (folder / "models.json").write_text(text)


def write_auth(folder, value, mode=0o600):
    path = folder / "auth.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    path.chmod(mode)
    return path


LOCAL = {
    "baseUrl": "http://127.0.0.1:9000/v1",
    "api": "openai-completions",
    "apiKey": "x",
    "models": [{"id": "m1"}],
}


def test_built_in_table_has_the_known_figures(tmp_path):
    registry = load(tmp_path)
    model = registry.find("anthropic", "claude-opus-4-8")
    assert (model.context_window, model.max_tokens, model.reads_images) == (1_000_000, 128_000, True)
    assert (model.prices.input, model.prices.cache_write) == (5, 6.25)
    assert model.source == "builtin"
    assert len(registry.models) > 50
    assert registry.models[-1].api == "demo"
    assert registry.problems == ()
    recommended = [row.provider for row in registry.models if row.recommended]
    assert len(recommended) == len(set(recommended))


def test_every_key_has_one_row(tmp_path):
    keys = [model.key for model in load(tmp_path).models]
    assert len(keys) == len(set(keys))


def test_nothing_but_the_demo_is_available_without_a_key(tmp_path):
    registry = load(tmp_path)
    assert {model.provider for model in registry.available()} <= {
        "demo",
        "ollama",
        "lmstudio",
        "llamacpp",
        "vllm",
    }
    assert registry.startup_model(None) is None


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, "anthropic"),
        ({"DEEPSEEK_API_KEY": "k", "OPENAI_API_KEY": "k"}, "openai"),
        ({"GEMINI_API_KEY": "k", "GROQ_API_KEY": "k"}, "groq"),
        ({"GEMINI_API_KEY": "k"}, None),
        ({"OPENAI_API_KEY": ""}, None),
    ],
    ids=["first of the table", "table order", "api not spoken is skipped", "only that", "empty variable"],
)
def test_start_takes_the_recommended_model_of_the_first_provider_with_a_key(tmp_path, environ, expected):
    found = load(tmp_path, environ).startup_model(None)
    assert (found and found.provider) == expected
    assert found is None or found.recommended


def test_start_takes_the_users_own_model_when_no_vendor_has_a_key(tmp_path):
    write_models(tmp_path, {"local": LOCAL})
    assert load(tmp_path).startup_model(None).key == "local/m1"


def test_start_takes_what_was_wanted(tmp_path):
    registry = load(tmp_path, {"ANTHROPIC_API_KEY": "k"})
    assert registry.startup_model("openai/gpt-5.4:high").key == "openai/gpt-5.4"
    with pytest.raises(ProviderError) as caught:
        registry.startup_model("gtp-5.4")
    assert caught.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("text", "provider", "model_id", "level"),
    [
        ("anthropic/claude-opus-5:high", "anthropic", "claude-opus-5", ThinkingLevel.HIGH),
        ("anthropic/claude-opus-5", "anthropic", "claude-opus-5", None),
        ("openrouter/z-ai/glm-5.3", "openrouter", "z-ai/glm-5.3", None),
        ("z-ai/glm-5.3", None, "z-ai/glm-5.3", None),
        ("qwen3:8b", None, "qwen3:8b", None),
        ("ollama/qwen3:8b:low", "ollama", "qwen3:8b", ThinkingLevel.LOW),
        ("demo/demo", "demo", "demo", None),
    ],
)
def test_selector_is_taken_apart(tmp_path, text, provider, model_id, level):
    found = load(tmp_path).parse_selector(text)
    assert (found.provider, found.model_id, found.level) == (provider, model_id, level)


def test_find_prefers_rows_with_a_key_and_takes_a_unique_part(tmp_path):
    registry = load(tmp_path, {"OPENROUTER_API_KEY": "k"})
    assert registry.find(None, "glm-5.3").key == "openrouter/z-ai/glm-5.3"
    assert registry.find(None, "OPUS-4-5").key == "anthropic/claude-opus-4-5"
    assert registry.find(None, "anthropic/claude-opus-5").id == "claude-opus-5"


def test_unknown_model_names_near_ones_and_the_list(tmp_path):
    registry = load(tmp_path)
    with pytest.raises(ProviderError) as caught:
        registry.find(None, "claude-opus-9")
    assert "claude-opus" in str(caught.value)
    assert "musepi models list" in str(caught.value)
    with pytest.raises(ProviderError, match="anthropic"):
        registry.find("antropic", "x")


def test_unlisted_model_of_a_known_provider_gets_its_defaults(tmp_path):
    model = load(tmp_path).find("anthropic", "claude-next")
    assert (model.source, model.api, model.context_window) == ("unlisted", "anthropic-messages", 128_000)


def test_overlay_adds_replaces_and_overrides(tmp_path):
    write_models(
        tmp_path,
        {
            "local": {
                **LOCAL,
                "headers": {"x-team": "a"},
                "compat": {"supportsStore": True},
                "models": [
                    {
                        "id": "m1",
                        "contextWindow": 8192,
                        "maxTokens": 1024,
                        "reasoning": True,
                        "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0},
                        "contextPromotionTarget": "local/m2",
                        "compat": {"thinkingFormat": "qwen"},
                        "headers": {"x-model": "b"},
                    },
                    {"id": "m2", "api": "anthropic-messages"},
                ],
            },
            "anthropic": {
                "baseUrl": "https://proxy.example",
                "models": [{"id": "claude-opus-5", "contextWindow": 5000}],
                "modelOverrides": {"claude-haiku-4-5": {"cost": {"input": 9}, "name": "Mine"}},
            },
        },
    )
    registry = load(tmp_path)
    assert registry.problems == ()
    m1 = registry.find("local", "m1")
    assert (m1.context_window, m1.max_tokens, m1.reasoning, m1.context_promotion_target) == (
        8192,
        1024,
        True,
        "local/m2",
    )
    assert dict(m1.compat) == {"supportsStore": True, "thinkingFormat": "qwen"}
    assert dict(m1.headers) == {"x-team": "a", "x-model": "b"}
    assert m1.source == "models.json"
    m2 = registry.find("local", "m2")
    assert (m2.api, m2.context_window, m2.max_tokens, m2.input) == (
        "anthropic-messages",
        128_000,
        16_384,
        ("text",),
    )
    replaced = registry.find("anthropic", "claude-opus-5")
    assert (replaced.context_window, replaced.base_url, replaced.reasoning) == (
        5000,
        "https://proxy.example",
        False,
    )
    changed = registry.find("anthropic", "claude-haiku-4-5")
    assert (changed.prices.input, changed.prices.output, changed.name) == (9, 5, "Mine")
    assert registry.find("anthropic", "claude-fable-5").base_url == "https://proxy.example"


def test_comments_and_trailing_commas_are_read(tmp_path):
    write_models(
        tmp_path,
        """{ // mine
          "providers": { /* local
             one */ "local": {"baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions",
               "apiKey": "a//b,}", "models": [{"id": "m1",}, ],
             },
          },
        }""",
    )
    registry = load(tmp_path)
    assert registry.problems == ()
    assert registry.credentials(registry.find("local", "m1")).key == "a//b,}"


def test_broken_file_is_told_with_its_place_and_keeps_the_last_good_state(tmp_path):
    write_models(tmp_path, {"local": LOCAL})
    registry = load(tmp_path)
    write_models(tmp_path, '{"providers": {\n  "local": {"baseUrl" 5}}}')
    registry.reload()
    assert registry.find("local", "m1").source == "models.json"
    (problem,) = registry.problems
    assert "models.json:2:" in problem
    write_models(tmp_path, {})
    registry.reload()
    assert registry.problems == ()
    assert "local" not in registry.providers


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"id": "bad", "contextWindow": "big"}, "contextWindow must be a number"),
        ({"id": "bad", "input": ["sound"]}, 'a list of "text" and "image"'),
        ({"id": "bad", "api": "smoke-signals"}, "api must be one of"),
        ({"name": "no id"}, 'needs an "id"'),
    ],
)
def test_bad_row_is_left_out_and_told_and_the_rest_is_used(tmp_path, row, words):
    write_models(tmp_path, {"local": {**LOCAL, "models": [row, {"id": "m1"}]}})
    registry = load(tmp_path)
    assert [model.id for model in registry.models if model.provider == "local"] == ["m1"]
    (problem,) = registry.problems
    assert words in problem
    assert "models.json" in problem


@pytest.mark.parametrize(
    "value",
    [
        "[]",
        "5",
        '{"providers": []}',
        '{"providers": {"a": 3}}',
        '{"providers": {"a": {"models": {}}}}',
        "\xff",
        "{",
    ],
)
def test_file_of_another_shape_never_stops_the_program(tmp_path, value):
    (tmp_path / "models.json").write_bytes(value.encode("latin-1"))
    registry = load(tmp_path)
    assert registry.problems
    assert registry.find("anthropic", "claude-opus-5")


def test_new_provider_without_an_address_is_told(tmp_path):
    write_models(tmp_path, {"mine": {"models": [{"id": "m"}]}})
    registry = load(tmp_path)
    assert "needs baseUrl and api" in registry.problems[0]
    assert "mine" not in registry.providers


def test_later_apis_are_valid_in_the_file_but_not_available(tmp_path):
    write_models(tmp_path, {"local": {**LOCAL, "api": "openai-responses"}})
    registry = load(tmp_path)
    assert registry.problems == ()
    assert registry.find("local", "m1").api == "openai-responses"
    assert "local" not in {model.provider for model in registry.available()}


def test_keys_are_taken_in_order(tmp_path):
    write_models(tmp_path, {"openai": {"apiKey": "from-models"}})
    environ = {"OPENAI_API_KEY": "from-environment"}
    flags = {"provider": "openai", "api_key": "from-flag"}
    for place, source, key in [
        (load(tmp_path), "models.json", "from-models"),
        (load(tmp_path, environ), "OPENAI_API_KEY", "from-environment"),
    ]:
        found = place.credentials(place.find("openai", "gpt-5.4"))
        assert (found.source, found.key) == (source, key)
    write_auth(tmp_path, {"openai": {"type": "api_key", "key": "from-auth"}})
    registry = load(tmp_path, environ)
    assert registry.credentials(registry.find("openai", "gpt-5.4")).key == "from-auth"
    registry = load(tmp_path, environ, **flags)
    assert registry.credentials(registry.find("openai", "gpt-5.4")).key == "from-flag"


def test_flag_key_is_sent_to_its_own_provider_only(tmp_path):
    environ = {"OPENAI_API_KEY": "theirs"}
    registry = load(tmp_path, environ, model="claude-opus-5", api_key="secret")
    assert registry.credentials(registry.find("anthropic", "claude-opus-5")).key == "secret"
    assert registry.credentials(registry.find("openai", "gpt-5.4")).key == "theirs"


def test_missing_key_names_every_place(tmp_path):
    registry = load(tmp_path)
    with pytest.raises(ProviderError) as caught:
        registry.credentials(registry.find("anthropic", "claude-opus-5"))
    assert caught.value.kind is ErrorKind.AUTH
    for words in ("ANTHROPIC_API_KEY", "auth.json", "--api-key"):
        assert words in str(caught.value)


def test_token_of_the_environment_is_a_bearer(tmp_path):
    registry = load(tmp_path, {"ANTHROPIC_AUTH_TOKEN": "t"})
    found = registry.credentials(registry.find("anthropic", "claude-opus-5"))
    assert (found.key, found.bearer) == ("t", True)


@pytest.mark.parametrize(
    ("written", "environ", "key", "command"),
    [
        ("literal", {}, "literal", None),
        ("$MINE", {"MINE": "v"}, "v", None),
        ("a${MINE}b", {"MINE": "v"}, "avb", None),
        ("$$x$!y", {}, "$x!y", None),
        ("!pass show key", {}, None, "pass show key"),
    ],
)
def test_value_of_a_key_is_resolved(tmp_path, written, environ, key, command):
    write_models(tmp_path, {"local": {**LOCAL, "apiKey": written}})
    registry = load(tmp_path, environ)
    found = registry.credentials(registry.find("local", "m1"))
    assert found.key == key
    assert found.commands.get("") == command


def test_unset_variable_is_named(tmp_path):
    remote = {**LOCAL, "baseUrl": "https://x.example/v1", "apiKey": "$NOT_SET"}
    write_models(tmp_path, {"remote": remote})
    registry = load(tmp_path)
    with pytest.raises(ProviderError, match="NOT_SET"):
        registry.credentials(registry.find("remote", "m1"))


def test_secret_headers_are_resolved_for_the_request_and_not_in_the_table(tmp_path):
    headers = {"x-team": "$TEAM", "x-token": "!token", "x-plain": "p", "x-gone": None}
    write_models(tmp_path, {"local": {**LOCAL, "headers": headers, "authHeader": True}})
    registry = load(tmp_path, {"TEAM": "blue"})
    model = registry.find("local", "m1")
    assert dict(model.headers) == {"x-plain": "p", "x-gone": None}
    found = registry.credentials(model)
    assert dict(found.headers) == {"x-team": "blue"}
    assert dict(found.commands) == {"x-token": "token"}
    assert found.bearer


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_auth_file_that_others_can_read_is_refused_with_the_remedy(tmp_path):
    path = write_auth(tmp_path, {"anthropic": {"type": "api_key", "key": "k"}}, 0o644)
    registry = load(tmp_path)
    assert f"chmod 600 {path}" in registry.problems[0]
    with pytest.raises(ProviderError, match="chmod 600"):
        registry.credentials(registry.find("anthropic", "claude-opus-5"))


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"anthropic": 3}', '{"anthropic": {"type": "oauth", "key": "x"}}']
)
def test_unusable_auth_file_leaves_the_other_keys(tmp_path, text):
    write_auth(tmp_path, text)
    registry = load(tmp_path, {"ANTHROPIC_API_KEY": "k"})
    assert registry.credentials(registry.find("anthropic", "claude-opus-5")).source == "ANTHROPIC_API_KEY"


def test_address_alone_makes_a_chat_completions_model(tmp_path):
    registry = load(tmp_path, base_url="http://127.0.0.1:5/v1", model="tiny")
    model = registry.startup_model(None)
    assert (model.key, model.api, model.source) == ("custom/tiny", "openai-completions", "flags")
    assert (model.context_window, model.max_tokens) == (8192, 8192)
    assert registry.credentials(model).source == "none needed"
    assert model in registry.models


def test_address_with_a_new_name_keeps_the_name_and_the_key(tmp_path):
    registry = load(tmp_path, provider="mine", base_url="https://x.example/v1", model="a/b", api_key="k")
    model = registry.startup_model(None)
    assert (model.provider, model.id, model.context_window) == ("mine", "a/b", 128_000)
    assert registry.credentials(model).key == "k"


def test_address_replaces_that_of_a_known_provider(tmp_path):
    registry = load(tmp_path, provider="anthropic", base_url="http://127.0.0.1:5", model="claude-opus-5")
    model = registry.startup_model(None)
    assert (model.base_url, model.api, model.context_window) == (
        "http://127.0.0.1:5",
        "anthropic-messages",
        1_000_000,
    )
    assert registry.find("anthropic", "claude-fable-5").base_url == "http://127.0.0.1:5"


@pytest.mark.parametrize("flags", [{"provider": "nobody", "model": "m"}, {"base_url": "http://127.0.0.1:5"}])
def test_flags_that_name_no_model_say_what_is_missing(tmp_path, flags):
    with pytest.raises(ProviderError) as caught:
        load(tmp_path, **flags).startup_model(None)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert "--" in str(caught.value)


def test_provider_flag_alone_takes_its_recommended_model(tmp_path):
    assert load(tmp_path, provider="deepseek").startup_model(None).recommended


@pytest.mark.parametrize(
    ("name", "value", "provider", "expected"),
    [
        ("ANTHROPIC_BASE_URL", "https://p.example/", "anthropic", "https://p.example"),
        ("OLLAMA_HOST", "10.0.0.5", "ollama", "http://10.0.0.5:11434/v1"),
        ("OLLAMA_HOST", "box:99", "ollama", "http://box:99/v1"),
    ],
)
def test_address_of_the_environment_is_used(tmp_path, name, value, provider, expected):
    assert load(tmp_path, {name: value}).find(provider, "x").base_url == expected


def test_importing_the_registry_does_not_import_the_transport():
    code = (
        "import sys, musepi_tui.providers.registry; print(sorted({'httpx', 'truststore'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
