from pathlib import Path

import pytest

from musepi_tui.tools.guarded import names_secret_file, protected_reason, secret_reason

HOME = Path("/home/me")


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        "sub/.git",
        ".GIT/config",
        ".musepi/settings.json",
        ".vscode/tasks.json",
        ".github/workflows/ci.yml",
        ".mcp.json",
        "sub/.envrc",
        ".gitattributes",
    ],
)
def test_place_is_protected(path):
    assert protected_reason(path.split("/"), Path("/p") / path, HOME)


@pytest.mark.parametrize(
    "path", ["src/git.py", ".github/README.md", "workflows/ci.yml", ".gitignore", "a.git/x"]
)
def test_place_is_not_protected(path):
    assert protected_reason(path.split("/"), Path("/p") / path, HOME) is None


def test_shell_profiles_are_protected_in_the_home_folder_only():
    assert protected_reason(["x"], HOME / ".bashrc", HOME)
    assert protected_reason(["x"], HOME / ".config/fish/config.fish", HOME)
    assert protected_reason(["dotfiles", ".bashrc"], Path("/p/dotfiles/.bashrc"), HOME) is None


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".ENV",
        ".env.local",
        ".env-prod",
        "server.pem",
        "a.key",
        "b.p12",
        "id_rsa",
        "id_ed25519",
        ".netrc",
    ],
)
def test_file_may_hold_secrets(name):
    assert names_secret_file(name)


@pytest.mark.parametrize(
    "name", [".env.example", ".envrc", ".environment", "id_rsa.pub", "id_map.py", "key.py", "env"]
)
def test_file_holds_no_secrets(name):
    assert not names_secret_file(name)


@pytest.mark.parametrize(
    "path", ["/home/me/.ssh/config", "/home/me/.aws/x/y", "/home/me/.kube/config", "/proc/1/environ"]
)
def test_place_holds_credentials(path):
    assert secret_reason(Path(path), HOME)


def test_same_folder_elsewhere_holds_none():
    assert secret_reason(Path("/p/.ssh/config"), HOME) is None
