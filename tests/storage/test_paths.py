import hashlib
import sys
import tempfile
from pathlib import Path

import pytest

from musepi_tui.base.errors import SessionError
from musepi_tui.session.entries import SessionHeader
from musepi_tui.storage.paths import (
    ToolRoot,
    artifact_folder,
    encode_cwd,
    expand_home,
    find_paths,
    find_tool_roots,
    folders_of,
    resolve_path,
    same_folder,
    session_dir_override,
    session_folder,
    session_path,
    tool_of_path,
)


def test_home_variable_puts_everything_in_one_folder(tmp_path):
    paths = find_paths({"MUSEPI_HOME": str(tmp_path)})
    assert (paths.config, paths.data, paths.state) == (tmp_path, tmp_path, tmp_path / "state")
    assert paths.sessions == tmp_path / "sessions"


def test_without_it_the_folders_of_the_platform_are_used():
    paths = find_paths({})
    assert {path.name for path in (paths.config, paths.data, paths.state)} == {"musepi"}


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [("/home/a/b", "--home-a-b--"), ("C:\\Users\\me\\x", "--C--Users-me-x--"), ("/", "----")],
)
def test_folder_is_encoded_as_pi_does(cwd, expected):
    assert encode_cwd(Path(cwd)) == expected


@pytest.mark.parametrize("name", ["x" * 300, "ü" * 150])
def test_long_folder_names_are_cut_at_a_character_and_get_a_hash(name):
    encoded = encode_cwd(Path("/" + name))
    assert len(encoded.encode()) <= 200
    assert encoded.endswith(f"-{hashlib.sha256(f'/{name}'.encode()).hexdigest()[:12]}--")
    assert encode_cwd(Path(f"/{name}y")) != encoded


def test_file_name_holds_time_and_id():
    header = SessionHeader("id-1", "2026-01-02T03:04:05.678Z", "/p")
    assert session_path(Path("/d"), header) == Path("/d/2026-01-02T03-04-05-678Z_id-1.jsonl")


def test_override_holds_sessions_flat(tmp_path):
    paths = find_paths({"MUSEPI_HOME": str(tmp_path)})
    assert session_folder(paths, tmp_path) == paths.sessions / encode_cwd(tmp_path.resolve())
    assert session_folder(paths, tmp_path, tmp_path / "flat") == tmp_path / "flat"


def test_override_comes_from_the_environment_before_the_setting(tmp_path):
    assert session_dir_override({"MUSEPI_SESSION_DIR": str(tmp_path)}, "/other") == tmp_path
    assert session_dir_override({}, "/other") == Path("/other")
    assert session_dir_override({}) is None


def test_sessions_are_found_under_every_spelling(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    work, scratch = tmp_path / "home" / "a" / "b", tmp_path / "tmp" / "x"
    for folder in (work, scratch):
        folder.mkdir(parents=True)
    root = tmp_path / "root"
    digest = hashlib.sha256(str(work.resolve()).encode()).hexdigest()
    for name in (encode_cwd(work.resolve()), "-a-b", f"home-b-{digest}", "-tmp-x", "-other"):
        (root / name).mkdir(parents=True)
    assert {folder.name for folder in folders_of(root, work)} == {
        encode_cwd(work.resolve()),
        "-a-b",
        f"home-b-{digest}",
    }
    assert [folder.name for folder in folders_of(root, scratch)] == ["-tmp-x"]
    assert list(folders_of(tmp_path / "missing", work)) == []


def test_folder_with_a_very_long_name_has_the_one_short_spelling(tmp_path):
    cwd = tmp_path
    for letter in "abc":
        cwd /= letter * 100
    cwd.mkdir(parents=True)
    root = tmp_path / "root"
    (root / encode_cwd(cwd)).mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path))  # the spelling relative to it is longer than a name may be
        assert [folder.name for folder in folders_of(root, cwd)] == [encode_cwd(cwd)]
        assert list(folders_of(root / ("n" * 300), cwd)) == []


def test_links_in_a_circle_and_homes_of_nobody_are_session_errors(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    if sys.version_info < (3, 13):  # later ones leave it to whoever opens the path
        with pytest.raises(SessionError, match="circle"):
            resolve_path(tmp_path / "loop")
    with pytest.raises(SessionError, match="NUL|null"):
        resolve_path(tmp_path / "a\0b")
    nobody = "~nobody-of-that-name/x"
    for call in (
        lambda: expand_home(nobody),
        lambda: find_paths({"MUSEPI_HOME": nobody}),
        lambda: session_dir_override({}, nobody),
    ):
        with pytest.raises(SessionError, match=f"^{nobody}: nobody knows whose home folder"):
            call()


def test_artifacts_lie_next_to_the_session():
    assert artifact_folder(Path("/d/s.jsonl")) == Path("/d/s")
    assert artifact_folder(Path("/d/s")) != Path("/d/s")


def test_same_folder_knows_links(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert same_folder(str(tmp_path / "link"), tmp_path / "real")
    assert same_folder(str(tmp_path / "real"), tmp_path / "link")
    assert not same_folder("", tmp_path)
    assert not same_folder("/p", tmp_path)


def roots_of(tool: str, **environ: str) -> list[str]:
    found = find_tool_roots({"HOME": "/home/ada", **environ})
    return [str(root.folder / root.pattern) for root in found if root.tool == tool]


@pytest.mark.parametrize(
    ("tool", "environ", "expected"),
    [
        ("pi", {}, ["/home/ada/.pi/agent/sessions"]),
        ("pi", {"PI_CODING_AGENT_DIR": "/d"}, ["/d/sessions"]),
        ("pi", {"PI_CODING_AGENT_DIR": "~/d"}, ["/home/ada/d/sessions"]),
        ("pi", {"PI_CODING_AGENT_SESSION_DIR": "/s"}, ["/home/ada/.pi/agent/sessions", "/s"]),
        ("musepi", {}, ["/home/ada/.musepi/agent/sessions"]),
        (
            "musepi",
            {"MUSEPI_CODING_AGENT_DIR": "/d", "MUSEPI_CODING_AGENT_SESSION_DIR": "/s"},
            ["/d/sessions", "/s"],
        ),
        (
            "omp",
            {"OMP_CODING_AGENT_DIR": "/d"},
            ["/d/sessions", "/home/ada/.omp/profiles/*/agent/sessions"],
        ),
        ("veyyon", {}, ["/home/ada/.veyyon/profiles/*/agent/sessions"]),
        ("veyyon", {"VEYYON_CONFIG_DIR": ".vey"}, ["/home/ada/.vey/profiles/*/agent/sessions"]),
        (
            "veyyon",
            {"VEYYON_CODING_AGENT_DIR": "/d"},
            ["/d/sessions", "/home/ada/.veyyon/profiles/*/agent/sessions"],
        ),
        ("claude", {"CLAUDE_CONFIG_DIR": "/c"}, ["/c/projects"]),
        ("codex", {"CODEX_HOME": "/c"}, ["/c/sessions"]),
        ("codex", {"CODEX_HOME": " "}, ["/home/ada/.codex/sessions"]),
    ],
)
def test_folders_of_other_tools_follow_their_variables(tool, environ, expected):
    assert roots_of(tool, **environ) == expected


def test_tool_of_a_file_is_that_of_its_folder(tmp_path):
    paths = find_paths({"HOME": str(tmp_path), "MUSEPI_HOME": str(tmp_path / ".musepi" / "agent")})
    assert tool_of_path(paths, tmp_path / ".pi/agent/sessions/--p--/s.jsonl") == "pi"
    assert tool_of_path(paths, tmp_path / ".veyyon/profiles/x/agent/sessions/-p/s.jsonl") == "veyyon"
    assert tool_of_path(paths, paths.sessions / "--p--" / "s.jsonl") is None
    assert tool_of_path(paths, tmp_path / "s.jsonl") is None


def test_roots_are_those_that_exist(tmp_path):
    for profile in ("a", "b"):
        (tmp_path / profile / "agent" / "sessions").mkdir(parents=True)
    (tmp_path / "c" / "agent").mkdir(parents=True)
    (tmp_path / "c" / "agent" / "sessions").touch()
    root = ToolRoot("veyyon", tmp_path, "*/agent/sessions")
    assert [path.parts[-3] for path in root.roots()] == ["a", "b"]
    assert ToolRoot("pi", tmp_path / "missing").roots() == ()
    assert ToolRoot("pi", tmp_path).roots() == (tmp_path,)
