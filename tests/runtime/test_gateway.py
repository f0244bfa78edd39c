from pathlib import Path

import pytest

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.providers.types import Model, ThinkingLevel
from musepi_tui.runtime.gateway import ModelGateway, split_level
from musepi_tui.settings.load import load_settings
from tests.support.fake_provider import FakeProvider

PLAIN = Model("local", "m1", "openai-completions", "http://127.0.0.1:9/v1")
THINKER = Model("local", "m2", "openai-completions", "http://127.0.0.1:9/v1", reasoning=True)


def gateway(tmp_path: Path, *overrides: str) -> ModelGateway:
    settings = load_settings(tmp_path, None, overrides=overrides).values
    return ModelGateway(settings, ModelRegistry.load(tmp_path, {}), FakeProvider().find)


def types(entries) -> list[str]:
    return [entry_type for entry_type, _ in entries]


def test_a_new_session_opens_with_its_model_and_level(tmp_path: Path):
    door = gateway(tmp_path)
    door.choose(THINKER, ThinkingLevel.HIGH)
    entries = door.opening_entries()
    assert entries[0] == ("model_change", {"provider": "local", "modelId": "m2", "model": "local/m2"})
    assert entries[1] == ("thinking_level_change", {"thinkingLevel": "high"})
    assert door.opening_entries() == []


def test_a_level_is_named_only_when_the_model_reasons_and_it_is_not_off(tmp_path: Path):
    door = gateway(tmp_path)
    door.choose(PLAIN, ThinkingLevel.HIGH)
    assert types(door.opening_entries()) == ["model_change"]
    assert (door.thinking, door.wanted_thinking) == (ThinkingLevel.OFF, ThinkingLevel.HIGH)
    door.choose(THINKER, ThinkingLevel.OFF)
    assert types(door.opening_entries()) == ["model_change"]


def test_what_the_file_says_already_is_not_repeated(tmp_path: Path):
    door = gateway(tmp_path)
    door.note_recorded("local/m2", "high")
    door.choose(THINKER, ThinkingLevel.HIGH)
    assert door.opening_entries() == []
    door.choose(THINKER, ThinkingLevel.LOW)
    assert types(door.opening_entries()) == ["thinking_level_change"]


def test_a_session_that_goes_on_begins_with_the_model_and_level_of_this_one(tmp_path: Path):
    door = gateway(tmp_path)
    assert door.standing_entries() == ()
    door.note_recorded("local/m2", "high")
    door.choose(THINKER, ThinkingLevel.OFF)
    entries = (
        ("model_change", {"provider": "local", "modelId": "m2", "model": "local/m2"}),
        ("thinking_level_change", {"thinkingLevel": "off"}),
    )
    assert door.standing_entries() == entries
    assert types(door.opening_entries()) == ["thinking_level_change"]
    door.promote(PLAIN)
    assert door.standing_entries() == entries


def test_requests_carry_the_limits_of_the_settings(tmp_path: Path):
    door = gateway(tmp_path, "network.idleTimeoutSeconds=7", "retry.requestRetries=4", "cacheRetention=long")
    request = door.request("system", ())
    assert (request.timeouts.idle_s, request.request_retries, request.cache_retention) == (7, 4, "long")
    assert request.retry_after_cap_s == 60


def test_no_model_is_a_line_with_the_remedy(tmp_path: Path):
    with pytest.raises(ProviderError, match="ANTHROPIC_API_KEY") as caught:
        gateway(tmp_path).require_model()
    assert caught.value.kind is ErrorKind.AUTH


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("local/m1:high", ("local/m1", ThinkingLevel.HIGH), id="level"),
        pytest.param("local/m1", ("local/m1", None), id="none"),
        pytest.param("ollama/qwen:7b", ("ollama/qwen:7b", None), id="part of the id"),
    ],
)
def test_a_level_is_split_off_only_when_it_is_one(text, expected):
    assert split_level(text) == expected
