import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from musepi_tui.base.errors import SettingsError
from musepi_tui.base.files import locked
from musepi_tui.settings.load import load_settings
from musepi_tui.settings.write import migrate_file, set_key, unset_key


def _read(folder):
    return json.loads((folder / "settings.json").read_text())


def test_a_new_file_is_private_and_read_back(tmp_path):
    folder = tmp_path / "config"
    set_key(folder, "compaction.threshold", "85%")
    assert load_settings(folder, None).values.compaction.threshold == "85%"
    assert stat.S_IMODE((folder / "settings.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_unknown_keys_stay(tmp_path):
    (tmp_path / "settings.json").write_text('{"mine": {"x": [1, 2]}, "theme": "ü"}')
    set_key(tmp_path, "editor.maxRows", 5)
    assert _read(tmp_path) == {"mine": {"x": [1, 2]}, "theme": "ü", "editor": {"maxRows": 5}}
    assert "ü" in (tmp_path / "settings.json").read_text()


@pytest.mark.parametrize(("key", "value"), [("nope", 1), ("editor.maxRows", "x"), ("compaction", 3)])
def test_a_key_or_value_that_cannot_be_used_is_refused(tmp_path, key, value):
    with pytest.raises(SettingsError, match=key):
        set_key(tmp_path, key, value)
    assert not (tmp_path / "settings.json").exists()


def test_a_broken_file_is_never_written_over(tmp_path):
    (tmp_path / "settings.json").write_text('{"theme": ')
    for change in (lambda: set_key(tmp_path, "theme", "dark"), lambda: unset_key(tmp_path, "theme")):
        with pytest.raises(SettingsError, match="line 1, column"):
            change()
    assert (tmp_path / "settings.json").read_text() == '{"theme": '
    assert not migrate_file(tmp_path)


def test_a_file_with_comments_is_kept_beside(tmp_path):
    text = '{"theme": "dark" // mine\n}'
    (tmp_path / "settings.json").write_text(text)
    set_key(tmp_path, "theme", "light")
    assert (tmp_path / "settings.json.bak").read_text() == text
    assert _read(tmp_path) == {"theme": "light"}


def test_a_linked_file_is_written_at_its_place(tmp_path):
    real = tmp_path / "dotfiles" / "musepi.json"
    real.parent.mkdir()
    real.write_text("{}")
    (tmp_path / "settings.json").symlink_to(real)
    set_key(tmp_path, "theme", "light")
    assert (tmp_path / "settings.json").is_symlink()
    assert json.loads(real.read_text()) == {"theme": "light"}


def test_unset_removes_the_key_and_an_empty_group(tmp_path):
    set_key(tmp_path, "editor.maxRows", 5)
    set_key(tmp_path, "theme", "light")
    assert unset_key(tmp_path, "editor.maxRows")
    assert _read(tmp_path) == {"theme": "light"}
    assert not unset_key(tmp_path, "editor.maxRows")
    assert not unset_key(tmp_path / "absent", "theme")
    assert not (tmp_path / "absent").exists()


def test_changes_at_once_lose_no_key(tmp_path):
    keys = [f"mine.key{number}" for number in range(20)]
    (tmp_path / "settings.json").write_text(
        json.dumps({"mine": {key[5:]: 1 for key in keys}, "theme": "dark"})
    )
    with ThreadPoolExecutor(10) as pool:
        gone = list(pool.map(lambda key: unset_key(tmp_path, key), keys))
    assert (all(gone), _read(tmp_path)) == (True, {"theme": "dark"})


def test_a_settings_file_that_stays_locked_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("musepi_tui.base.files.LOCK_WAIT_S", 0.0)
    with locked(tmp_path / "settings.json"), pytest.raises(SettingsError, match="held by another process"):
        set_key(tmp_path, "theme", "dark")
    set_key(tmp_path, "theme", "dark")


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "config").write_text("a file")
    with pytest.raises(SettingsError, match="cannot be"):
        set_key(tmp_path / "config", "theme", "dark")


def test_retired_keys_are_rewritten_once_with_a_copy(tmp_path):
    old = '{"compaction": {"thresholdTokens": 5000}, "mine": 1}'
    (tmp_path / "settings.json").write_text(old)
    assert migrate_file(tmp_path)
    assert _read(tmp_path) == {"compaction": {"threshold": 5000}, "mine": 1}
    assert (tmp_path / "settings.json.bak").read_text() == old
    assert not migrate_file(tmp_path)


def test_an_unknown_strategy_stays_in_the_file(tmp_path):
    (tmp_path / "settings.json").write_text('{"compaction": {"strategy": "novel", "thresholdPercent": 70}}')
    assert migrate_file(tmp_path)
    assert _read(tmp_path) == {"compaction": {"strategy": "novel", "threshold": "70%"}}
