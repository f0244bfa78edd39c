from collections.abc import AsyncIterator, Iterator

import pytest

from musepi_tui.base.http import close_shared_client
from tests.support.server import ModelServer


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
async def http() -> AsyncIterator[None]:
    yield
    await close_shared_client()
