"""Every test runs in a home of its own: fixed terminal and language, no keys, no network."""

import importlib.util
import os
import socket
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from musepi_tui.base.collector import pause_collector, resume_collector

# How long an example takes says more about the machine than about the program.
settings.register_profile("musepi", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("musepi")

if importlib.util.find_spec("sniffio") is None:
    # The HTTP library looks for it several times a request, and each time in every folder there is.
    sys.modules["sniffio"] = None  # type: ignore[assignment]  # what says that there is none


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests live to the end: the garbage collector never looks through them again."""
    pause_collector()
    try:
        return (yield)
    finally:
        resume_collector()


LONG_FILES = (
    "e2e/test_main_job.py",
    "e2e/test_tree.py",
    "flows/test_crash_harness.py",
    "maintenance/test_policy_properties.py",
    "storage/test_truncation.py",
    "storage/test_damage_properties.py",
    "flows/test_pass_kills.py",
    "providers/test_recordings.py",
    "flows/test_no_endless_loop.py",
    "cli/test_doors.py",
    "architecture/test_wheel.py",
    "test_docs_examples.py",
)
"""Those that take longest, in that order; behind them come the other slow ones, then those of many tests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, so that no worker is left alone with one of them at the end."""
    folder = Path(__file__).parent
    ranks = {folder / name: rank for rank, name in enumerate(LONG_FILES)}
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    counts = Counter(item.path for item in items)
    items.sort(key=lambda item: (ranks.get(item.path, len(ranks)), item.path not in slow, -counts[item.path]))


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


def _wanted_environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_REMOVED_PREFIXES)
        and not name.endswith(_REMOVED_SUFFIXES)
        and not name.startswith(("XDG_", "PYTEST_"))
        and name not in _REMOVED
    }
    return kept | _FIXED


def _set_environment(wanted: dict[str, str], patch: pytest.MonkeyPatch) -> None:
    for name in os.environ.keys() - wanted.keys():
        if not name.startswith("PYTEST_"):
            patch.delenv(name)
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            patch.setenv(name, value)


@pytest.fixture(scope="session")
def fixed_environment() -> Iterator[dict[str, str]]:
    """The environment of every test without its home; it counts from here to the end of the session."""
    wanted = _wanted_environment()
    with pytest.MonkeyPatch.context() as patch:
        _set_environment(wanted, patch)
        yield wanted


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Home folders that do not exist yet, one after the other."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def clean_environment(
    fixed_environment: dict[str, str], homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The home folder of the test; ``MUSEPI_HOME`` is ``musepi`` in it and does not exist yet."""
    home = next(homes)
    home.mkdir(mode=0o700)
    own = {"HOME": str(home), "MUSEPI_HOME": str(home / "musepi")}
    _set_environment(fixed_environment | own, monkeypatch)
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
