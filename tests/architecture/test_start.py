import subprocess
import sys

import pytest

HEAVY = ("asyncio", "textual", "httpx", "pydantic", "tiktoken", "rich")


def _loaded_by(code, *args):
    """The modules loaded after ``code`` ran in a fresh interpreter."""
    script = f"import sys\nsys.argv = ['musepi', *sys.argv[1:]]\ntry:\n    {code}\nexcept SystemExit: pass\n"
    script += "sys.stderr.write(' '.join(sys.modules))"
    result = subprocess.run([sys.executable, "-c", script, *args], capture_output=True, text=True, check=True)
    return result.stdout, set(result.stderr.split())


@pytest.mark.parametrize("flag", ["--version", "-v", "--help"])
def test_version_and_help_load_nothing_heavy(flag):
    output, modules = _loaded_by("from musepi_tui.__main__ import main; main()", flag)
    assert "musepi" in output
    assert not modules.intersection(HEAVY)


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("musepi_tui.settings.load", {"asyncio", "textual", "httpx", "tiktoken", "rich"}),
        ("musepi_tui.base.tokenizer", {"asyncio", "tiktoken", "httpx"}),
        ("musepi_tui.base.safe_text", {"asyncio", "rich", "textual"}),
        ("musepi_tui.session.messages", {"asyncio", "pydantic"}),
    ],
)
def test_module_loads_only_what_it_needs(module, unwanted):
    _, modules = _loaded_by(f"import {module}")
    assert not modules & unwanted


def test_the_program_is_not_fooled_by_files_of_the_working_folder(tmp_path):
    (tmp_path / "argparse.py").write_text("raise SystemExit('the wrong argparse')")
    result = subprocess.run(
        [sys.executable, "-m", "musepi_tui", "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, "the wrong argparse" in result.stdout + result.stderr) == (0, False)
