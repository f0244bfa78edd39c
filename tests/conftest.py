"""Every test runs in a home of its own: fixed terminal and language, no keys, no network."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more about the machine than about the program.
settings.register_profile("musepi", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("musepi")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, so that no worker is left alone with one of them at the end."""
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)


_LOOPBACK = ("127.", "::1", "localhost")

_FIXED = {
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
    "COLUMNS": "80",
    "LINES": "24",
    "TZ": "UTC",
    "MUSEPI_OFFLINE": "1",
}

_REMOVED_PREFIXES = ("MUSEPI_", "ANTHROPIC_", "OPENAI_", "GEMINI_", "GOOGLE_", "AWS_", "AZURE_", "TEXTUAL")
_REMOVED_SUFFIXES = ("_API_KEY", "_TOKEN", "_PROXY", "_proxy")
_REMOVED = ("NO_COLOR", "FORCE_COLOR", "COLORFGBG", "TMUX", "VISUAL", "EDITOR", "PAGER", "CLICOLOR")


def _fixed_environment(home: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_REMOVED_PREFIXES)
        and not name.endswith(_REMOVED_SUFFIXES)
        and not name.startswith("XDG_")
        and name not in _REMOVED
    }
    return kept | _FIXED | {"HOME": str(home), "MUSEPI_HOME": str(home / "musepi")}


@pytest.fixture(autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of the test; ``MUSEPI_HOME`` is ``musepi`` in it and does not exist yet."""
    home = tmp_path_factory.mktemp("home")
    wanted = _fixed_environment(home)
    for name in os.environ.keys() - wanted.keys():
        if not name.startswith("PYTEST_"):
            monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    return home


@pytest.fixture
def musepi_home(clean_environment: Path) -> Path:
    """``MUSEPI_HOME`` of the test, made."""
    folder = clean_environment / "musepi"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(autouse=True, scope="session")
def only_loopback() -> Iterator[None]:
    """Connections to anything but this machine fail at once."""
    real_connect = socket.socket.connect
    real_getaddrinfo = socket.getaddrinfo

    def is_local(host: object) -> bool:
        text = host.decode() if isinstance(host, bytes) else str(host)
        return host is None or text == "" or text.startswith(_LOOPBACK)

    def connect(self: socket.socket, address: object) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not is_local(address[0]):  # type: ignore[index]  # inet addresses are tuples
            raise ConnectionRefusedError(f"the tests may only connect to this machine, not to {address}")
        real_connect(self, address)  # type: ignore[arg-type]  # passed on as it came

    def getaddrinfo(host: object, *args: object, **kwargs: object) -> object:
        if not is_local(host):
            raise socket.gaierror(socket.EAI_NONAME, f"the tests may not look up {host}")
        return real_getaddrinfo(host, *args, **kwargs)  # type: ignore[arg-type]  # passed on as it came

    socket.socket.connect = connect  # type: ignore[method-assign]  # the guard
    socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]  # the guard
    yield
    socket.socket.connect = real_connect  # type: ignore[method-assign]  # back to the real one
    socket.getaddrinfo = real_getaddrinfo
