import json
import sys

import pytest

from musepi_tui.base.errors import UsageError
from musepi_tui.base.process import run_quick
from musepi_tui.base.tokenizer import chars4
from musepi_tui.tools.registry import ToolRegistry
from musepi_tui.tools.types import Effect

ODD_ARGUMENTS = [
    {},
    {"path": None},
    {"path": 3, "edits": "[{"},
    {"edits": [1, {"oldText": 2}]},
    {"command": ["x"]},
]


@pytest.fixture(scope="module")
def registry() -> ToolRegistry:
    return ToolRegistry.discover()


def test_seven_tools_are_found_in_a_fixed_order(registry):
    assert registry.names == ("bash", "edit", "find", "grep", "ls", "read", "write")
    assert [tool.name for tool in registry.specs()] == list(registry.names)


def test_effects_are_the_tiers_of_approval(registry):
    effects = {name: registry.get(name).effect for name in registry.names}
    assert {name for name, effect in effects.items() if effect is Effect.EXEC} == {"bash"}
    assert {name for name, effect in effects.items() if effect is Effect.WRITE} == {"edit", "write"}


def test_descriptions_and_schemas_fit_a_small_window(registry):
    text = json.dumps([(tool.name, tool.description, tool.parameters) for tool in registry.specs()])
    assert chars4(text) < 1_600


def test_schemas_have_no_references_or_titles(registry):
    for tool in registry.specs():
        text = json.dumps(tool.parameters)
        assert tool.parameters["type"] == "object"
        assert '"$ref"' not in text
        assert '"title"' not in text
        assert '"anyOf"' not in text


def test_subset_keeps_the_named_tools_and_refuses_others(registry):
    assert registry.only(["read", "ls"]).names == ("ls", "read")
    with pytest.raises(UsageError, match="unknown tool nope"):
        registry.only(["nope"])


def test_unknown_tool_is_none(registry):
    assert registry.get("nope") is None


@pytest.mark.parametrize("arguments", ODD_ARGUMENTS, ids=str)
def test_preview_of_half_or_odd_arguments_never_raises(registry, arguments):
    for name in registry.names:
        view = registry.get(name).preview(arguments)
        assert view.title
        assert "\n" not in view.title


def test_discovery_loads_nothing_that_runs_children():
    code = (
        "import sys\nfrom musepi_tui.tools.registry import ToolRegistry\nToolRegistry.discover()\n"
        "print({'asyncio', 'subprocess', 'pathspec', 'PIL', 'tomllib'} & set(sys.modules))"
    )
    assert run_quick((sys.executable, "-c", code), timeout_s=30) == "set()\n"
