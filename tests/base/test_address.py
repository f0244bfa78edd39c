import pytest

from musepi_tui.base.address import NOWHERE, address_of, is_web_address


def test_address_names_scheme_host_and_port():
    address = address_of("http://[::1]:8080/v1")
    assert (address.scheme, address.host, address.port) == ("http", "::1", 8080)
    assert address_of("https://api.example.com/v1").port is None


@pytest.mark.parametrize("url", ["http://[::1", "http://127.0.0.1:99999/v1", "http://127.0.0.1:x/v1"])
def test_address_that_cannot_be_read_is_nowhere_and_no_crash(url):
    assert address_of(url) == NOWHERE
    assert not is_web_address(url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:8080/summaries", True),
        ("HTTPS://example.com", True),
        ("ftp://x", False),
        ("http://", False),
        ("example.com/summaries", False),
        ("", False),
    ],
)
def test_web_address_is_http_with_a_host(url, expected):
    assert is_web_address(url) is expected
