import importlib
import pkgutil
import re

import pytest

import musepi_tui.tools.builtin
from tests.support.checkout import ROOT, sources

PROMPTS = sorted(path.stem for path in (ROOT / "prompts").glob("*.md"))
CODE = "\n".join(path.read_text(encoding="utf-8") for path in sources())
TOOLS = [module.name for module in pkgutil.iter_modules(musepi_tui.tools.builtin.__path__)]


@pytest.mark.parametrize("name", PROMPTS)
def test_prompt_is_used(name):
    assert re.search(rf"[\"']{re.escape(name)}[\"']", CODE)


@pytest.mark.parametrize("name", TOOLS)
def test_tool_has_its_prompt(name):
    tool = importlib.import_module(f"musepi_tui.tools.builtin.{name}").TOOL
    assert tool.name == name
    assert tool.prompt in PROMPTS


def test_every_prompt_asked_for_exists():
    asked = set(re.findall(r"(?:read|render)_prompt\(\s*[\"']([a-z0-9-]+)[\"']", CODE))
    assert asked <= set(PROMPTS)
