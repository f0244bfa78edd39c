"""The system prompt of a run (tui 10.2). Computed once, so that its bytes stay the same from turn to turn."""

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from musepi_tui.base.resources import render_prompt
from musepi_tui.runtime.project.context_files import ContextFile


def render_system_prompt(cwd: Path, tools: Sequence[str], files: Sequence[ContextFile], now_ms: int) -> str:
    """The prompt with place, day and tools, and the instruction files behind it."""
    prompt = render_prompt(
        "system",
        tools=", ".join(tools) or "none",
        cwd=str(cwd),
        system=platform.system() or "unknown",
        date=f"{datetime.fromtimestamp(now_ms / 1000, tz=UTC).astimezone():%Y-%m-%d}",
    )
    if not files:
        return prompt
    return f"{prompt}\n\n{_render_files(files)}"


def _render_files(files: Sequence[ContextFile]) -> str:
    texts = (
        render_prompt("system-context-file", path=str(file.path), text=file.text.strip()) for file in files
    )
    return render_prompt("system-context-files", files="\n".join(texts))
