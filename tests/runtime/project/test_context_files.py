from pathlib import Path

import pytest

from musepi_tui.runtime.project.context_files import (
    MAX_FILE_BYTES,
    MAX_TOTAL_BYTES,
    find_context_files,
    find_project_root,
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "config"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "src" / "deep").mkdir(parents=True)
    return folder


def found(config: Path, cwd: Path) -> list[tuple[str, str]]:
    return [(str(file.path), file.text) for file in find_context_files(config, cwd).files]


def test_files_come_from_the_user_then_from_the_root_down(config, project):
    (config / "AGENTS.md").write_text("mine")
    (project / "AGENTS.md").write_text("root")
    (project / "src" / "deep" / "CLAUDE.md").write_text("deep")
    assert [text for _, text in found(config, project / "src" / "deep")] == ["mine", "root", "deep"]


def test_the_first_name_of_a_folder_counts(config, project):
    (project / "CLAUDE.md").write_text("second")
    (project / "AGENTS.md").write_text("first")
    assert found(config, project) == [(str(project / "AGENTS.md"), "first")]


def test_nothing_above_the_project_root_is_read(config, project):
    (project.parent / "AGENTS.md").write_text("outside")
    assert found(config, project / "src") == []


def test_only_the_cwd_is_looked_at_without_a_repository(config, tmp_path):
    folder = tmp_path / "plain" / "below"
    folder.mkdir(parents=True)
    (folder.parent / "AGENTS.md").write_text("above")
    (folder / "AGENTS.md").write_text("here")
    assert found(config, folder) == [(str(folder / "AGENTS.md"), "here")]


def test_equal_files_count_once(config, project):
    (project / "AGENTS.md").write_text("same")
    (project / "src" / "AGENTS.md").write_text("same")
    assert len(found(config, project / "src")) == 1


def test_a_link_that_leads_outside_is_left_out_with_a_note(config, project, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("key")
    (project / "AGENTS.md").symlink_to(secret)
    result = find_context_files(config, project)
    assert result.files == ()
    assert "leads outside" in result.notes[0]


def test_a_large_file_is_cut_with_a_note(config, project):
    (project / "AGENTS.md").write_text("é" * MAX_FILE_BYTES)
    result = find_context_files(config, project)
    assert result.files[0].text.endswith("[cut here]")
    assert len(result.files[0].text.encode()) <= MAX_FILE_BYTES + 20
    assert "was cut after 65,536 bytes" in result.notes[0]


def test_all_files_together_are_bounded(config, project):
    folder = project
    for number in range(6):
        (folder / "AGENTS.md").write_text(str(number) + "x" * (MAX_FILE_BYTES - 10))
        folder = folder / f"f{number}"
        folder.mkdir()
    result = find_context_files(config, folder)
    assert sum(len(file.text) for file in result.files) <= MAX_TOTAL_BYTES + 100
    assert any("left out" in note or "cut" in note for note in result.notes)


def test_bytes_that_are_no_text_do_not_raise(config, project):
    (project / "AGENTS.md").write_bytes(b"ok \xff\xfe")
    assert found(config, project)[0][1].startswith("ok ")


def test_a_file_in_place_of_the_git_folder_marks_the_root(tmp_path):
    (tmp_path / ".git").write_text("gitdir: elsewhere")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert find_project_root(below) == tmp_path
