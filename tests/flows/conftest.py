from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from musepi_tui.runtime.options import RuntimeOptions
from tests.support.extension_sources import EXTENSION_HEADER
from tests.support.harness import runtime_options, write_models
from tests.support.passes import FakeModel
from tests.support.server import ModelServer, Reply, anthropic_reply, openai_reply
from tests.support.zygote import IS_POSSIBLE, Zygote, shared_zygote

REPLIES = {"anthropic-messages": anthropic_reply, "openai-completions": openai_reply}


@pytest.fixture(params=REPLIES)
def api(request: pytest.FixtureRequest) -> str:
    """Each flow runs over both wire formats."""
    return request.param


@pytest.fixture
def reply(api: str) -> Callable[..., Reply]:
    """Makes an answer in the format of ``api``."""
    return REPLIES[api]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model server on loopback."""
    with ModelServer() as running:
        yield running


@pytest.fixture
def model(server: ModelServer, api: str) -> FakeModel:
    """What answers on ``server``."""
    return FakeModel(server, api)


@pytest.fixture
def zygote() -> Zygote:
    """Starts musepi processes in milliseconds; skips where the system calls for that are not to be had."""
    if not IS_POSSIBLE:
        pytest.skip("these processes need Linux")
    return shared_zygote()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder tools work in."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def over_http(
    api: str, server: ModelServer, musepi_home: Path, project: Path
) -> Callable[..., RuntimeOptions]:
    """Options for a runtime that talks to ``server``."""

    def make(*settings: str, row: dict[str, Any] | None = None, **fields: Any) -> RuntimeOptions:
        base_url = server.base_url if api == "anthropic-messages" else f"{server.base_url}/v1"
        write_models(musepi_home, api, base_url, **(row or {}))
        return runtime_options(musepi_home, project, *settings, **fields)

    return make


@pytest.fixture
def with_extensions(
    over_http: Callable[..., RuntimeOptions], musepi_home: Path
) -> Callable[..., RuntimeOptions]:
    """The same with extensions of these sources, ``e0``, ``e1`` …, in the user's folder."""

    def make(sources: Sequence[str], *settings: str, **fields: Any) -> RuntimeOptions:
        folder = musepi_home / "extensions"
        folder.mkdir(exist_ok=True)
        for number, source in enumerate(sources):
            (folder / f"e{number}.py").write_text(EXTENSION_HEADER + source, encoding="utf-8")
        return over_http(*settings, **fields)

    return make
