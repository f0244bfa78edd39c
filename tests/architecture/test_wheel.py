import os
import subprocess
import sys
import sysconfig
import venv

import pytest

from tests.support.checkout import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PIP = (sys.executable, "-m", "pip")
PROBE = """
import musepi_tui
from musepi_tui.base.resources import read_prompt, theme_paths
from musepi_tui.base.tokenizer import load_tokenizer
from musepi_tui.providers.demo.script import reply_to
from musepi_tui.providers.demo.project import ScratchProject
from musepi_tui.providers.demo.scene import Kind, Scene
scratch = ScratchProject()
print(musepi_tui.__file__)
print(len(read_prompt("system")) > 100, "dark" in theme_paths(), load_tokenizer("auto").count("hello world"))
print(len(reply_to(Scene(Kind.PROMPT, "fix"), scratch, ("ls", "read", "grep")).calls))
scratch.remove()
"""


def _run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sdist and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.mark.parametrize("pattern", ["*.whl", "*.tar.gz"])
def test_what_is_built_installs_into_an_empty_environment_and_starts(built, pattern, tmp_path):
    (package,) = built.glob(pattern)
    place = tmp_path / "env"
    venv.create(place)
    # The dependencies come from this environment: the test is about the package, and has no network.
    (site,) = place.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    python = place / "bin" / "python"
    environ = {**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    install = [*PIP, "--python", python, "install", "--quiet", "--no-deps", "--no-build-isolation"]
    _run(*install, "--no-compile", "--force-reinstall", package, env=environ)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert _run(place / "bin" / "musepi", "--version", cwd=elsewhere).startswith("musepi ")
    assert "usage: musepi" in _run(place / "bin" / "musepi", "--help", cwd=elsewhere)
    file, resources, calls = _run(python, "-c", PROBE, cwd=elsewhere).splitlines()
    assert file.startswith(str(place))
    assert (resources, calls) == ("True True 2", "3")
