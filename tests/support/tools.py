"""A tool context over a temporary project, with artifacts in memory of the file system."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from musepi_tui.base.errors import ToolError
from musepi_tui.tools.paths import Workspace
from musepi_tui.tools.types import Tool, ToolOutcome
from musepi_tui.tools.validate import parse_arguments


async def until(condition: Callable[[], object]) -> None:
    """Waits until the condition holds, at most 5 s."""
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError("the condition never held")


class FakeArtifacts:
    """An ``ArtifactSink`` that numbers files in a folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.count = 0

    def save(self, tool: str, text: str) -> str:
        artifact_id, path = self.create(tool)
        path.write_text(text, encoding="utf-8")
        return artifact_id

    def create(self, tool: str) -> tuple[str, Path]:
        self.folder.mkdir(parents=True, exist_ok=True)
        artifact_id = str(self.count)
        self.count += 1
        path = self.folder / f"{artifact_id}.{tool}.log"
        path.touch()
        return artifact_id, path

    def find(self, artifact_id: str) -> Path:
        found = sorted(self.folder.glob(f"{artifact_id}.*"))
        if not found:
            raise ToolError(f"There is no artifact {artifact_id}.")
        return found[0]

    def text(self, artifact_id: str) -> str:
        return self.find(artifact_id).read_text(encoding="utf-8", errors="replace")


class FakeToolContext:
    """A ``ToolContext``; ``shown`` are the progress texts."""

    def __init__(self, project: Path, artifacts: Path, environment: Mapping[str, str] | None = None):
        self.workspace = Workspace(project, home=artifacts.parent / "home")
        self.artifacts = FakeArtifacts(artifacts)
        self.environment = environment or {}
        self.shown: list[str] = []

    def progress(self, text: str) -> None:
        self.shown.append(text)

    async def in_thread(self, function, *args, **kwargs):
        return await asyncio.to_thread(function, *args, **kwargs)

    async def call(self, tool: Tool, **arguments) -> ToolOutcome:
        """Runs a call as the runtime does: validated first."""
        parsed, _ = parse_arguments(tool, arguments)
        return await tool.run(parsed, self)
