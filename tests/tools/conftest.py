from pathlib import Path

import pytest

from tests.support.tools import FakeToolContext


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def ctx(project: Path, tmp_path: Path) -> FakeToolContext:
    return FakeToolContext(project, tmp_path / "artifacts", {"MUSEPI": "1"})
