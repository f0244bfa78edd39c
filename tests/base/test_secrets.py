import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.secrets import mask


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key sk-ant-api03-abcdefghijklmnop.", "key sk…(16+)."),
        ("sk-short", "sk-short"),
        ("ghp_abcdefghijklmnopqrst", "gh…(16+)"),
        ("github_pat_11ABCDEFG0abcdefghijklmnop", "gi…(32+)"),
        ("AKIAIOSFODNN7EXAMPLE", "AK…(16+)"),
        ("AIzaSyA-abcdefghijklmnopqrstuvwx", "AI…(32+)"),
        ("xoxb-123456789012-abc", "xo…(16+)"),
        ("https://user:hunter2secret@host/x", "https://user:hu…(8+)@host/x"),
        ("https://user:pw@host", "https://user:…@host"),
        ("Authorization: Bearer abcdefgh1234", "Authorization: Bearer ab…(8+)"),
        ('{"authorization": "Basic dXNlcjpwYXNz"}', '{"authorization": "Basic dX…(8+)"}'),
        ("X-Api-Key: 0123456789", "X-Api-Key: 01…(8+)"),
        ("GET /v1?key=abcdefgh12&x=1", "GET /v1?key=ab…(8+)&x=1"),
        ("-----BEGIN PRIVATE KEY-----\nMIIabcdefgh\n-----END", "-----BEGIN PRIVATE KEY-----\nM…(8+)-----END"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig-nature", "ey…(32+)"),
        (
            "the author went to http://host:80/ with monkey=1",
            "the author went to http://host:80/ with monkey=1",
        ),
    ],
)
def test_what_is_shaped_like_a_key_is_masked(text, expected):
    assert mask(text) == expected


def test_known_values_are_masked_in_every_spelling():
    secret = 'p"ss/wörd 1234'
    spellings = (
        secret,
        quote(secret, safe=""),
        json.dumps(secret)[1:-1],
        base64.b64encode(secret.encode()).decode(),
    )
    for spelling in spellings:
        assert "1234" not in mask(f"<{spelling}>", [secret])
        assert spelling.rstrip("=") not in mask(f"<{spelling}>", [secret])


def test_a_longer_value_is_masked_before_its_own_beginning():
    assert mask("abcdefgh-ijklmnop", ["abcdefgh", "abcdefgh-ijklmnop"]) == "ab…(16+)"


def test_short_values_are_left_alone():
    assert mask("true story", ["true"]) == "true story"


@given(st.text(max_size=80), st.lists(st.text(min_size=8, max_size=20), max_size=3))
def test_masking_twice_changes_nothing_more(text, secrets):
    once = mask(text, secrets)
    assert mask(once) == once or "…" in once


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=8, max_size=30), st.text(max_size=20))
def test_no_known_value_survives(secret, around):
    assert secret not in mask(f"{around}{secret}{around}", [secret])
