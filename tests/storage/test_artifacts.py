import stat

import pytest

from musepi_tui.base.errors import ToolError
from musepi_tui.storage.artifacts import ArtifactStore


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "s"


def test_folder_is_made_when_first_needed(folder):
    store = ArtifactStore(folder)
    assert not folder.exists()
    assert store.save("bash", "out") == "0"
    assert stat.S_IMODE((folder / "0.bash.log").stat().st_mode) == 0o600
    assert store.find("0").read_text() == "out"


def test_numbers_go_on_from_the_highest(folder):
    folder.mkdir()
    (folder / "7.bash.log").touch()
    (folder / "notes.md").touch()
    store = ArtifactStore(folder)
    assert [store.save("bash", "x"), store.create("read")[0]] == ["8", "9"]


@pytest.mark.parametrize(
    ("tool", "name"),
    [("my tool/../x", "0.my_tool_x.log"), ("..", "0.tool.log"), ("y" * 99, f"0.{'y' * 64}.log")],
)
def test_tool_name_is_safe_as_a_file_name(folder, tool, name):
    assert ArtifactStore(folder).create(tool)[1].name == name


def test_created_file_is_empty_and_found(folder):
    store = ArtifactStore(folder)
    artifact_id, path = store.create("bash")
    assert path.read_bytes() == b""
    assert store.find(artifact_id) == path


def test_text_with_lone_surrogates_is_stored(folder):
    store = ArtifactStore(folder)
    assert store.find(store.save("bash", "\ud800")).read_bytes()


@pytest.mark.parametrize("artifact_id", ["x", "-1", "1.5", "", "../1", "1" * 20])
def test_id_must_be_a_number(folder, artifact_id):
    with pytest.raises(ToolError, match=f"must be numeric, got: {artifact_id}$"):
        ArtifactStore(folder).find(artifact_id)


def test_unknown_id_names_the_known_ones(folder):
    store = ArtifactStore(folder)
    with pytest.raises(ToolError, match="No artifacts directory found"):
        store.find("0")
    store.save("bash", "x")
    store.save("bash", "y")
    with pytest.raises(ToolError, match=r"no artifact 5. Existing ids: 0, 1\."):
        store.find("5")
