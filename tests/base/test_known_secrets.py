import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.known_secrets import KnownSecrets, environment_secrets, find_secrets, names_secret
from musepi_tui.base.secrets import mask, may_hold_secret

VALUE = "hunter2-hunter2"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("OPENAI_API_KEY", True),
        ("MY_TOKEN_2", True),
        ("DATABASE_DSN", True),
        ("db_password", True),
        ("apiKey", True),
        ("AUTHOR", False),
        ("BYPASS", False),
        ("MONKEY", False),
        ("KEYBOARD_LAYOUT", False),
        ("PATH", False),
    ],
)
def test_names_that_stand_for_secrets(name, secret):
    assert names_secret(name) is secret
    assert (VALUE in environment_secrets({name: VALUE})) is secret


@pytest.mark.parametrize("value", ["short", "true", "disabled", "1234567890", "mina-user", "/", "localhost"])
def test_dull_values_are_left_alone(value):
    assert environment_secrets({"AUTH_X": value, "USER": "mina-user"}) == frozenset()


def test_existing_paths_are_no_secrets_and_missing_ones_may_be(tmp_path):
    found = environment_secrets({"SSH_AUTH_SOCK": str(tmp_path), "A_KEY": str(tmp_path / "gone")})
    assert found == {str(tmp_path / "gone")}
    assert environment_secrets({"MY_PASSWORD": "~nobody-has-that-name"}) == {"~nobody-has-that-name"}


def test_stored_keys_and_the_users_own_list_are_found(tmp_path):
    auth = {"anthropic": {"type": "oauth", "access": "access-1234", "refresh": "refresh-1234"}}
    auth |= {"openai": {"type": "api_key", "key": "stored-key-1"}, "x": {"key": "$SOME_VARIABLE"}}
    models = {"providers": {"own": {"apiKey": "literal-key-1", "baseUrl": "http://host/path"}}}
    (tmp_path / "auth.json").write_text(json.dumps(auth))
    (tmp_path / "models.json").write_text(json.dumps(models))
    (tmp_path / "secrets.json").write_text(
        json.dumps(["plain-secret", {"regex": "AB-[0-9]{4}"}, {"value": "in-object-1"}])
    )
    secrets = find_secrets(tmp_path, {"MY_KEY": "from-environ"}, ["--api-key-flag"])
    assert secrets.values == {
        "access-1234", "refresh-1234", "stored-key-1", "literal-key-1", "plain-secret", "in-object-1",
        "from-environ", "--api-key-flag",
    }  # fmt: skip
    assert secrets.problems == ()
    assert secrets.mask("plain-secret AB-1234 literal-key-1") == "pl…(8+) … li…(8+)"


def test_unreadable_files_are_named_and_the_rest_counts(tmp_path):
    (tmp_path / "auth.json").write_text("{broken")
    (tmp_path / "secrets.json").write_text('[{"regex": "("}, "plain-secret"]')
    secrets = find_secrets(tmp_path, {})
    assert secrets.values == {"plain-secret"}
    assert len(secrets.problems) == 2
    assert "auth.json" in secrets.problems[0]
    assert "is no pattern" in secrets.problems[1]


def test_object_keys_are_masked_without_losing_one():
    secrets = KnownSecrets(frozenset({"secret-one", "secret-two"}))
    found = secrets.mask_json({"secret-one": 1, "secret-two": 2, "plain": [3]})
    assert found == {"se…(8+)": 1, "se…(8+)…": 2, "plain": [3]}


def test_value_without_secrets_is_the_same_object():
    value = {"a": ["b", {"c": "d" * 50}], "e": None, "f": 1.5}
    assert KnownSecrets(frozenset({"secret-one"})).mask_json(value) is value


JSON = st.recursive(
    st.text(max_size=30)
    | st.sampled_from([f"x{VALUE}", "token=abcdefghi", "Authorization: Bearer abcdefgh12"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(JSON, st.booleans())
def test_quick_look_never_misses_what_would_be_masked(value, ascii_only):
    secrets = KnownSecrets(frozenset({VALUE, 'q"uöte-123'}))
    line = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "backslashreplace")
    if secrets.mask_json(value) is not value:
        assert may_hold_secret(line, secrets.values)


def test_escaped_spellings_of_a_value_are_masked():
    secret = 'a"ü\\b-1234'
    for ascii_only in (True, False):
        spelled = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        assert "1234" not in mask(f"x {spelled} y", [secret])
