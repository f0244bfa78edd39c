import pytest

from musepi_tui.tools.git_config import key_that_runs_programs


@pytest.fixture
def config(tmp_path):
    (tmp_path / ".git").mkdir()
    return tmp_path / ".git" / "config"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[core]\n\tfsmonitor = ./evil\n", "core.fsmonitor"),
        ("[core] hooksPath=x\n", "core.hookspath"),
        ('[diff "x"]\n\tcommand = evil\n', "diff.command"),
        ('[filter "lfs"]\nclean = git-lfs clean\n', "filter.clean"),
        ("[include]\npath = ../evil\n", "include.path"),
        ('[includeIf "gitdir:x"]\npath = y\n', "includeif.path"),
        ("[alias]\n st = !evil\n", "alias.st"),
        ("[CORE]\nSSHCOMMAND = evil\n", "core.sshcommand"),
    ],
)
def test_key_that_runs_a_program_is_found(config, tmp_path, text, key):
    config.write_text(text)
    assert key_that_runs_programs(tmp_path) == key


def test_usual_configuration_is_harmless(config, tmp_path):
    config.write_text(
        '[core]\n\tbare = false\n\tfsmonitor = true\n[remote "origin"]\n\turl = x\n[alias]\n\tst = status\n'
    )
    (tmp_path / "sub").mkdir()
    assert key_that_runs_programs(tmp_path / "sub") is None


def test_pointer_to_a_repository_elsewhere_is_not_trusted(tmp_path):
    (tmp_path / ".git").write_text("gitdir: evil\n")
    assert key_that_runs_programs(tmp_path)


def test_bare_repository_in_a_folder_is_looked_into(tmp_path):
    (tmp_path / "objects").mkdir()
    (tmp_path / "HEAD").write_text("ref: x")
    (tmp_path / "config").write_text("[core]\npager = evil\n")
    assert key_that_runs_programs(tmp_path) == "core.pager"
