import pytest

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.apis import load_provider, supported_apis


@pytest.mark.parametrize("api", ["anthropic-messages", "openai-completions", "demo"])
def test_provider_is_found_by_its_api(api):
    assert load_provider(api).api == api


def test_supported_apis_are_those_with_a_wire_format():
    assert supported_apis() == ("anthropic-messages", "openai-completions")


@pytest.mark.parametrize("api", ["openai-responses", "google-generative-ai", "nonsense"])
def test_api_that_is_not_spoken_gives_one_error_with_a_remedy(api):
    with pytest.raises(ProviderError) as caught:
        load_provider(api)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert api in str(caught.value)
    assert "musepi models list" in str(caught.value)
