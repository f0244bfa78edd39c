"""Finds the tools in ``builtin/`` and describes them to the model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from musepi_tui.base.errors import UsageError
from musepi_tui.base.resources import read_prompt
from musepi_tui.tools.types import Tool
from musepi_tui.tools.validate import schema_of


@dataclass(frozen=True, slots=True)
class ToolText:
    """A tool as the model is told about it: ``parameters`` is a JSON schema of type object.

    The fields are those of ``providers.types.ToolSpec``, which a sibling layer may not import.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]


class ToolRegistry:
    """The tools of a session, in an order that never changes: it is part of the cached prompt prefix."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}

    @classmethod
    def discover(cls) -> "ToolRegistry":
        """Every module of ``builtin`` that offers ``TOOL``."""
        from musepi_tui.tools import builtin  # deferred: discovery

        names = [f"{builtin.__name__}.{found.name}" for found in iter_modules(builtin.__path__)]
        return cls(module.TOOL for module in map(import_module, names) if hasattr(module, "TOOL"))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools."""
        return tuple(self._tools)

    def get(self, name: str) -> Tool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def only(self, names: Sequence[str]) -> "ToolRegistry":
        """A registry of these tools alone. Raises ``UsageError`` for a name no tool has."""
        unknown = [name for name in names if name not in self._tools]
        if unknown:
            raise UsageError(f"--tools: unknown tool {unknown[0]}. The tools are {', '.join(self.names)}.")
        return ToolRegistry(self._tools[name] for name in names)

    def specs(self) -> tuple[ToolText, ...]:
        """The tools as the model sees them: description from the prompt file, parameters as JSON schema."""
        return tuple(
            ToolText(tool.name, read_prompt(tool.prompt), schema_of(tool.arguments))
            for tool in self._tools.values()
        )
