from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from musepi_tui.runtime.options import RuntimeOptions
from tests.support.fake_provider import FakeProvider, Script
from tests.support.harness import runtime_options, write_models


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder tools work in."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def scripted(musepi_home: Path, project: Path) -> Callable[..., tuple[FakeProvider, RuntimeOptions]]:
    """Options for a runtime whose model follows scripts, and the provider that holds them."""

    def make(
        *scripts: Script,
        settings: tuple[str, ...] = (),
        summary: Script = ("## Goal\nA summary.",),
        **fields: Any,
    ):
        provider = FakeProvider(*scripts, summary=summary)
        write_models(musepi_home, "openai-completions", "http://127.0.0.1:9/v1")
        options = runtime_options(musepi_home, project, *settings, find_provider=provider.find, **fields)
        return provider, options

    return make
