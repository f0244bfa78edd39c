import os
from pathlib import Path

import pytest

from musepi_tui.base.errors import ToolError
from musepi_tui.tools.paths import Freshness, Workspace, digest_of, open_regular, printable_name


@pytest.fixture
def workspace(project, tmp_path):
    (tmp_path / "home").mkdir()
    return Workspace(project, home=tmp_path / "home", own_folders=[tmp_path / "own"])


def test_relative_path_is_joined_with_the_cwd(workspace, project):
    resolved = workspace.resolve("src/../src/a.py")
    assert (resolved.path, resolved.shown, resolved.relative) == (
        project / "src/a.py",
        "src/a.py",
        "src/a.py",
    )


@pytest.mark.parametrize("text", ["file://{}/a.py", "file://localhost{}/a.py", "{}/a.py", "@a.py", "./a.py"])
def test_notations_of_a_path_mean_the_same(workspace, project, text):
    assert workspace.resolve(text.format(project)).path == project / "a.py"


def test_percent_signs_of_a_url_are_decoded(workspace, project):
    assert workspace.resolve(f"file://{project}/a%20b").path == project / "a b"


def test_at_sign_of_an_existing_folder_stays(workspace, project):
    (project / "@types").mkdir()
    assert workspace.resolve("@types/x.ts").path == project / "@types/x.ts"


def test_tilde_is_the_own_home_only(workspace, tmp_path):
    assert workspace.resolve("~/x").path == tmp_path / "home/x"
    assert workspace.resolve("~other/x").inside


@pytest.mark.parametrize("text", ["", "  ", "a\0b", "a\nb", "file://host/x", "file:///a%0ab"])
def test_text_that_is_no_path_is_refused(workspace, text):
    with pytest.raises(ToolError):
        workspace.resolve(text)


@pytest.mark.parametrize("text", ["..", "../x", "/etc/passwd", "a/../../x"])
def test_path_outside_is_outside(workspace, text):
    assert not workspace.resolve(text).inside


def test_folder_whose_name_starts_like_the_root_is_outside(workspace, project):
    assert not workspace.resolve(f"{project}-2/x").inside


def test_link_that_leads_outside_is_outside_also_when_dangling(workspace, project, tmp_path):
    (project / "out").symlink_to(tmp_path)
    (project / "dangling").symlink_to(tmp_path / "nothing")
    (project / "in").symlink_to(project / "real")
    assert not workspace.resolve("out/x").inside
    assert not workspace.resolve("dangling").inside
    assert workspace.resolve("in/x").path == project / "real/x"


def test_kernel_interfaces_are_outside_even_below_the_root():
    workspace = Workspace(Path("/"))
    assert workspace.resolve("/etc/passwd").inside
    assert not workspace.resolve("/proc/self/environ").inside


def test_further_root_is_inside(project, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    resolved = Workspace(project, [other]).resolve(str(other / "a"))
    assert (resolved.relative, resolved.shown) == ("a", str(other / "a"))


def test_hard_links_are_counted(workspace, project):
    (project / "a").write_text("x")
    os.link(project / "a", project / "b")
    assert workspace.resolve("a").other_names == 1


def test_the_one_file_that_ends_in_the_text_is_found_and_said(workspace, project):
    (project / "src").mkdir()
    (project / "src" / "unique.py").write_text("x")
    resolved, note = workspace.find("unique.py")
    assert resolved.shown == "src/unique.py"
    assert "src/unique.py" in note


def test_several_candidates_are_suggested(workspace, project):
    for name in ("a", "b"):
        (project / name).mkdir()
        (project / name / "same.py").write_text("x")
    with pytest.raises(ToolError, match=r"Did you mean: a/same.py, b/same.py\?"):
        workspace.find("same.py")


def test_guess_never_ends_at_a_secret_file(workspace, project):
    (project / "conf").mkdir()
    (project / "conf" / ".env").write_text("x")
    with pytest.raises(ToolError, match="does not exist"):
        workspace.find(".env")


def test_look_alike_characters_of_a_name_are_retried(workspace, project):
    (project / "Shot 1.02\u202fPM.txt").write_text("x")
    assert workspace.find("Shot 1.02 PM.txt")[0].path.name == "Shot 1.02\u202fPM.txt"


def test_existing_only_suggests(workspace, project):
    (project / "src").mkdir()
    (project / "src" / "unique.py").write_text("x")
    with pytest.raises(ToolError, match=r"Did you mean src/unique.py\?"):
        workspace.existing("unique.py")


def test_name_that_is_no_utf8_is_shown_with_escapes_that_work(workspace, project):
    raw = os.fsencode(project) + b"/caf\xe9.txt"
    os.close(os.open(raw, os.O_CREAT | os.O_WRONLY))
    shown = printable_name(os.fsdecode(b"caf\xe9.txt"))
    assert shown == r"caf\xe9.txt"
    assert os.fsencode(workspace.resolve(shown).path) == raw


def test_files_of_the_program_are_known(workspace, tmp_path):
    own = workspace.resolve(str(tmp_path / "own/auth.json"))
    assert workspace.is_own(own)
    assert workspace.is_own_secret(own)
    assert not workspace.is_own_secret(workspace.resolve(str(tmp_path / "own/settings.json")))


def test_project_inside_a_folder_of_the_program_is_no_part_of_it(tmp_path):
    project = tmp_path / "own" / "demo"
    project.mkdir(parents=True)
    workspace = Workspace(project, own_folders=[tmp_path / "own"])
    assert not workspace.is_own(workspace.resolve("a.py"))
    assert workspace.is_own(workspace.resolve("../settings.json"))


def test_freshness_follows_content_not_only_time(workspace, project):
    file = project / "a"
    file.write_bytes(b"one")
    assert workspace.freshness(file) is Freshness.UNREAD
    workspace.note_read(file, digest_of(b"one"))
    os.utime(file, ns=(1, 1))
    assert workspace.freshness(file) is Freshness.FRESH
    file.write_bytes(b"two")
    assert workspace.freshness(file) is Freshness.CHANGED
    file.unlink()
    assert workspace.freshness(file) is Freshness.CHANGED


async def test_one_path_has_one_lock(workspace, project):
    lock = workspace.lock_for(project / "a")
    assert workspace.lock_for(project / "a") is lock
    assert workspace.lock_for(project / "b") is not lock


def test_only_regular_files_are_opened_and_nothing_waits(workspace, project):
    os.mkfifo(project / "pipe")
    (project / "folder").mkdir()
    for text, message in (("pipe", "no regular file"), ("folder", "is a folder"), ("none", "does not exist")):
        with pytest.raises(ToolError, match=message):
            open_regular(workspace.resolve(text))


def test_link_swapped_in_after_the_check_is_not_followed(workspace, project, tmp_path):
    (project / "a").write_text("mine")
    resolved = workspace.resolve("a")
    (project / "a").unlink()
    (project / "a").symlink_to(tmp_path)
    with pytest.raises(ToolError):
        open_regular(resolved)
