from pathlib import Path

import pytest

from musepi_tui.tui.place import find_place, read_branch


@pytest.mark.parametrize(
    ("cwd", "path"),
    [
        ("/home/ada", "~"),
        ("/home/ada/code/x", "~/code/x"),
        ("/srv/x", "/srv/x"),
        ("/home/adam", "/home/adam"),
    ],
)
def test_path_begins_with_a_tilde_inside_home_only(cwd, path):
    assert find_place(Path(cwd), Path("/home/ada")).path == path


def test_branch_is_read_from_a_folder_above(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/feature/x\n")
    (tmp_path / "src").mkdir()
    assert read_branch(tmp_path / "src") == "feature/x"


def test_detached_head_is_a_short_hash(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("0123456789abcdef0123456789abcdef01234567\n")
    assert read_branch(tmp_path) == "0123456"


def test_worktree_names_its_real_folder(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    (real / "HEAD").write_text("ref: refs/heads/side\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".git").write_text("gitdir: ../real\n")
    assert read_branch(tmp_path / "tree") == "side"


def test_hostile_branch_name_is_made_safe(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/a\x1b]52;c;x\x07b\n")
    assert find_place(tmp_path, Path("/nowhere")).branch == "ab"


def test_folder_without_repository_has_no_branch(tmp_path):
    assert read_branch(tmp_path) is None
