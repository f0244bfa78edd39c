import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.errors import UsageError
from musepi_tui.settings.jsonc import set_path
from musepi_tui.settings.load import check_value, flatten, known_keys, load_settings
from musepi_tui.settings.schema import Settings


def _user(tmp_path, text):
    (tmp_path / "settings.json").write_text(text if isinstance(text, str) else json.dumps(text))
    return tmp_path


def _project(tmp_path, *, local=None, **values):
    folder = tmp_path / "project"
    (folder / ".musepi").mkdir(parents=True)
    (folder / ".musepi" / "settings.json").write_text(json.dumps(values))
    if local is not None:
        (folder / ".musepi" / "settings.local.json").write_text(json.dumps(local))
    return folder


def test_without_files_everything_is_at_its_default(tmp_path):
    loaded = load_settings(tmp_path, None)
    assert loaded.values == Settings()
    assert (loaded.sources, loaded.problems, loaded.broken) == ({}, (), False)
    assert loaded.values.compaction.keep_recent_tokens == 10_000
    assert loaded.values.compaction.reserve_tokens is None


def test_later_sources_win_key_by_key(tmp_path):
    config = _user(tmp_path, {"theme": "light", "compaction": {"threshold": "50%", "keepRecentTokens": 1}})
    project = _project(tmp_path, compaction={"threshold": "60%"}, local={"editor": {"maxRows": 4}})
    extra = tmp_path / "extra.json"
    extra.write_text('{"theme": "ansi"}')
    loaded = load_settings(
        config,
        project,
        overrides=["compaction.threshold=6000"],
        extra_files=[extra],
        environ={"MUSEPI_MODEL": "test/model", "MUSEPI_APPROVAL_MODE": "yolo"},
    )
    values = loaded.values
    assert (values.theme, values.compaction.threshold, values.compaction.keep_recent_tokens) == (
        "ansi",
        6000,
        1,
    )
    assert (values.editor.max_rows, values.model_roles.default, values.permissions.mode) == (
        4,
        "test/model",
        "yolo",
    )
    assert loaded.sources == {
        "theme": f"config:{extra}",
        "compaction.threshold": "--set",
        "compaction.keepRecentTokens": "user",
        "editor.maxRows": "project-local",
        "modelRoles.default": "environment:MUSEPI_MODEL",
        "permissions.mode": "environment:MUSEPI_APPROVAL_MODE",
    }
    assert loaded.problems == ()


def test_arrays_replace_instead_of_growing(tmp_path):
    config = _user(tmp_path, {"permissions": {"allow": ["read", "ls"], "deny": ["bash(rm *)"]}})
    loaded = load_settings(config, None, overrides=['permissions.allow=["edit"]'])
    assert loaded.values.permissions.allow == ("edit",)
    assert loaded.values.permissions.deny == ("bash(rm *)",)


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("compaction.threshold=85%", "compaction.threshold", "85%"),
        ("compaction.threshold=6000", "compaction.threshold", 6000),
        ("display.animations=false", "display.animations", False),
        ("theme=", "theme", ""),
        ("modelRoles.default=a/b=c", "modelRoles.default", "a/b=c"),
        ('compaction.model=["a/b", "c/d"]', "compaction.model", ["a/b", "c/d"]),
        ("compaction.reserveTokens=null", "compaction.reserveTokens", None),
    ],
)
def test_an_override_is_json_or_a_string(tmp_path, text, key, expected):
    loaded = load_settings(tmp_path, None, overrides=[text])
    assert flatten(loaded.values)[key] == expected
    assert loaded.problems == ()


@pytest.mark.parametrize("text", ["theme", "=dark", "a..b=1", ".a=1"])
def test_an_override_without_a_key_is_a_usage_error(tmp_path, text):
    with pytest.raises(UsageError, match="--set"):
        load_settings(tmp_path, None, overrides=[text])


def test_a_missing_config_file_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="there is no file"):
        load_settings(tmp_path, None, extra_files=[tmp_path / "absent.json"])


def test_comments_are_read_and_strings_with_slashes_kept(tmp_path):
    config = _user(tmp_path, '\ufeff{ // the theme\n  "theme": "a//b" // kept\n}\n')
    loaded = load_settings(config, None)
    assert (loaded.values.theme, loaded.problems) == ("a//b", ())


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{\n  "theme": dark\n}', 2, 12),
        ('{"theme": "dark" // why\n  "x": 1}', 2, 3),
        ("[1]", 1, 1),
        ('{"a":' * 3000, 1, 1),
        ('{"a":' * 250 + "1" + "}" * 250, 1, 1),
    ],
)
def test_a_file_that_is_no_json_object_leaves_defaults_and_says_where(tmp_path, text, line, column):
    loaded = load_settings(_user(tmp_path, text), None)
    assert loaded.broken
    assert loaded.values == Settings()
    (problem,) = loaded.problems
    assert (problem.path, problem.line, problem.column) == (str(tmp_path / "settings.json"), line, column)
    assert f"line {line}, column {column}" in problem.message


def test_bytes_that_are_no_text_are_located(tmp_path):
    (tmp_path / "settings.json").write_bytes(b'{\n"theme": "\xff"}')
    (problem,) = load_settings(tmp_path, None).problems
    assert (problem.line, problem.column) == (2, 11)


def test_a_folder_in_place_of_the_file_is_told(tmp_path):
    (tmp_path / "settings.json").mkdir()
    loaded = load_settings(tmp_path, None)
    assert loaded.broken
    assert "cannot be read" in loaded.problems[0].message


def test_a_broken_project_file_keeps_the_users_settings(tmp_path):
    config = _user(tmp_path, {"theme": "light"})
    project = _project(tmp_path)
    (project / ".musepi" / "settings.json").write_text("{")
    loaded = load_settings(config, project)
    assert loaded.broken
    assert loaded.values.theme == "light"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("compaction.reserveTokens", 0),
        ("compaction.keepRecentTokens", "many"),
        ("compaction.enabled", "yes"),
        ("compaction.strategy", 3),
        ("display.animations", 1),
        ("theme", 5),
        ("permissions.allow", "edit"),
        ("permissions.allow", ["edit", 3]),
        ("compaction", 5),
        ("permissions.mode", "wild"),
    ],
)
def test_a_bad_value_keeps_its_default_and_is_named(tmp_path, key, value):
    tree = value
    for name in reversed(key.split(".")):
        tree = {name: tree}
    loaded = load_settings(_user(tmp_path, {"quietStartup": True, **tree}), None)
    assert loaded.values == Settings(quiet_startup=True)
    assert not loaded.broken
    problem = loaded.problems[-1]
    assert problem.key == key
    assert problem.line == 1
    assert "the default is used" in problem.message


def test_the_line_of_a_bad_value_is_found(tmp_path):
    text = '{\n  "retry": {"maxRetries": 3},\n  "compaction": {\n    "keepRecentTokens": -1\n  }\n}'
    (problem,) = load_settings(_user(tmp_path, text), None).problems
    assert (problem.key, problem.line) == ("compaction.keepRecentTokens", 4)


def test_unknown_keys_are_told_once_with_the_nearest_name(tmp_path):
    loaded = load_settings(_user(tmp_path, {"hideThinkingblock": True, "mine": {"x": 1}}), None)
    assert [problem.key for problem in loaded.problems] == ["hideThinkingblock", "mine.x"]
    assert "hideThinkingBlock" in loaded.problems[0].message
    assert loaded.sources == {}


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("permissions.mode", {"permissions": {"mode": "yolo"}}),
        ("permissions.mode", {"permissions": {"mode": "auto-edit"}}),
        ("session.dir", {"session": {"dir": "/elsewhere"}}),
        ("shellPath", {"shellPath": "./evil"}),
    ],
)
def test_a_project_cannot_loosen_what_protects_from_it(tmp_path, key, values):
    loaded = load_settings(tmp_path, _project(tmp_path, **values))
    assert loaded.values == Settings()
    assert [problem.key for problem in loaded.problems] == [key]


def test_retired_keys_are_folded_source_by_source(tmp_path):
    config = _user(tmp_path, {"compaction": {"threshold": "80%"}})
    project = _project(tmp_path, compaction={"thresholdTokens": 5000})
    loaded = load_settings(config, project)
    assert loaded.values.compaction.threshold == 5000
    assert loaded.sources["compaction.threshold"] == "project"
    assert loaded.problems[0].key == "compaction.thresholdTokens"


def test_loading_writes_nothing(tmp_path):
    config = _user(tmp_path, {"compaction": {"thresholdTokens": 5000}})
    before = (config / "settings.json").read_bytes()
    load_settings(config, None)
    assert [path.name for path in tmp_path.iterdir()] == ["settings.json"]
    assert (config / "settings.json").read_bytes() == before


def test_flatten_names_every_key_of_the_schema():
    flat = flatten(Settings())
    assert tuple(flat) == known_keys()
    assert flat["compaction.reserveTokens"] is None
    assert flat["permissions.allow"] == []


def test_check_value_tells_why():
    assert check_value("theme", "dark") is None
    assert "did you mean theme" in (check_value("teme", "dark") or "")
    assert "a whole number of at least 1" in (check_value("editor.maxRows", 0) or "")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "model"]), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(st.lists(st.tuples(st.sampled_from(known_keys()), _JSON), max_size=5))
def test_no_values_stop_the_load(tmp_path_factory, pairs):
    tree: dict[str, Any] = {}
    for key, value in pairs:
        set_path(tree, key, value)
    loaded = load_settings(_user(tmp_path_factory.getbasetemp(), json.dumps(tree)), None)
    assert tuple(flatten(loaded.values)) == known_keys()


def test_an_override_that_does_not_fit_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match=r'--set retry\.maxRetries: "many" cannot be used, .* at least 0'):
        load_settings(tmp_path, None, overrides=["retry.maxRetries=many"])


def test_a_value_in_the_place_of_a_group_is_told_once(tmp_path):
    loaded = load_settings(_user(tmp_path, '{"retry": 5}'), None)
    assert [problem.message for problem in loaded.problems] == [
        "retry: 5 cannot be used, it should be an object; the default is used."
    ]


def test_a_number_of_too_many_digits_breaks_the_file_not_the_program(tmp_path):
    loaded = load_settings(_user(tmp_path, '{"retry": {"maxRetries": ' + "9" * 5000 + "}}"), None)
    assert loaded.broken


@pytest.mark.parametrize("value", ["ftp://x", "example.com/summaries", "http://", "http://[::1", ""])
def test_an_endpoint_that_is_no_web_address_is_left_out_with_one_warning(tmp_path, value):
    loaded = load_settings(_user(tmp_path, {"compaction": {"remoteEndpoint": value}}), None)
    assert loaded.values.compaction.remote_endpoint is None
    (problem,) = loaded.problems
    assert problem.message == (
        f'compaction.remoteEndpoint: "{value}" cannot be used, it should be an http or https address; '
        "the default is used."
    )


@pytest.mark.parametrize("value", ["http://localhost:8080/summaries", "HTTPS://example.com", None])
def test_an_endpoint_on_the_web_is_taken(tmp_path, value):
    loaded = load_settings(_user(tmp_path, {"compaction": {"remoteEndpoint": value}}), None)
    assert (loaded.values.compaction.remote_endpoint, loaded.problems) == (value, ())


@pytest.mark.parametrize("value", ["~nobody-of-that-name/sessions", "", "a\0b"])
def test_a_path_that_can_name_nothing_is_left_out_with_one_warning(tmp_path, value):
    loaded = load_settings(_user(tmp_path, {"session": {"dir": value}}), None)
    assert loaded.values.session.dir is None
    (problem,) = loaded.problems
    assert problem.message == (
        f"session.dir: {json.dumps(value)} cannot be used, it should be the path of a file or folder; "
        "the default is used."
    )


@pytest.mark.parametrize("value", ["~/sessions", "/srv/sessions", "sessions", None])
def test_a_path_is_taken_as_it_is(tmp_path, value):
    loaded = load_settings(_user(tmp_path, {"session": {"dir": value}}), None)
    assert (loaded.values.session.dir, loaded.problems) == (value, ())


def test_the_retired_name_of_remote_is_told_once_and_the_new_one_taken_in_silence(tmp_path):
    old = load_settings(_user(tmp_path, {"compaction": {"remoteEnabled": False}}), None)
    assert [problem.message for problem in old.problems] == [
        "compaction.remoteEnabled is now called compaction.remote."
    ]
    new = load_settings(_user(tmp_path, {"compaction": {"remote": False}}), None)
    assert (new.values.compaction.remote, new.problems) == (False, ())
    assert Settings().compaction.remote
