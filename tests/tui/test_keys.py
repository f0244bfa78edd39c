import json

import pytest

from musepi_tui.tui.keys import KEYS, UNBOUND, find_clashes, load_keymap, parse_key, show_key


def test_no_two_default_keys_clash():
    assert find_clashes() == ()


def test_ids_are_unique_and_every_action_is_explained():
    assert len({row.id for row in KEYS}) == len(KEYS)
    assert all(row.help for row in KEYS)


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("ctrl+o", "ctrl+o"),
        ("shift+ctrl+p", "ctrl+shift+p"),
        ("pageUp", "pageup"),
        ("alt+-", "alt+minus"),
        ("ctrl+]", "ctrl+right_square_bracket"),
        ("esc", "escape"),
        ("f12", "f12"),
        ("f25", None),
        ("hyper+x", None),
        ("ctrl+", None),
        ("", None),
        ("xx", None),
    ],
)
def test_parse_key_reads_what_people_write(written, key):
    assert parse_key(written) == key


def test_shown_key_can_be_written_again():
    for row in KEYS:
        for key in row.keys.split(","):
            if key != UNBOUND and not key.endswith(("+P", "+O")):
                assert parse_key(show_key(key)) == key


def test_keymap_takes_one_key_several_or_none(tmp_path):
    path = tmp_path / "keybindings.json"
    path.write_text(
        json.dumps(
            {"app.tools.expand": "f2", "editor.undo": ["ctrl+-", "f3"], "app.redraw": "x", "app.retry": []}
        )
    )
    keymap = load_keymap(path)
    assert keymap.changes == {"app.tools.expand": "f2", "editor.undo": "ctrl+minus,f3", "app.retry": UNBOUND}
    assert keymap.keys_of("app.retry") == ()
    assert keymap.keys_of("editor.undo") == ("ctrl+-", "f3")
    assert keymap.keys_of("app.interrupt") == ("esc",)
    assert keymap.notices == ('keybindings.json: there is no action "app.redraw" (/hotkeys lists them)',)


def test_keymap_names_bad_keys_and_clashes_and_keeps_the_rest(tmp_path):
    path = tmp_path / "keybindings.json"
    path.write_text(json.dumps({"app.tools.expand": ["f2", "foo", 7], "app.thinking.toggle": "f2"}))
    keymap = load_keymap(path)
    assert keymap.changes["app.tools.expand"] == "f2"
    assert keymap.notices == (
        'keybindings.json: "foo" for app.tools.expand is no key',
        'keybindings.json: "7" for app.tools.expand is no key',
        "keybindings.json: f2 is used by both app.tools.expand and app.thinking.toggle",
    )


@pytest.mark.parametrize("content", ["{", "[]", "\ufeff7"])
def test_broken_keymap_file_changes_nothing_and_says_so(tmp_path, content):
    path = tmp_path / "keybindings.json"
    path.write_text(content, encoding="utf-8")
    keymap = load_keymap(path)
    assert keymap.changes == {}
    assert len(keymap.notices) == 1


def test_absent_keymap_file_is_nothing_to_tell(tmp_path):
    assert load_keymap(tmp_path / "keybindings.json").notices == ()
