"""A Jupyter notebook as text: its cells, without the outputs. Pure."""

import json
from typing import Any, cast


def notebook_text(data: bytes) -> str | None:
    """The cells one after the other, each under ``# %% [kind] cell N``; None when it is no notebook."""
    try:
        parsed: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    cells: Any = cast("dict[str, Any]", parsed).get("cells")
    if not isinstance(cells, list):
        return None
    parts: list[str] = []
    for number, cell in enumerate(cast("list[Any]", cells), 1):
        fields = cast("dict[str, Any]", cell) if isinstance(cell, dict) else {}
        source: Any = fields.get("source", "")
        text = "".join(map(str, cast("list[Any]", source))) if isinstance(source, list) else str(source)
        parts.append(f"# %% [{fields.get('cell_type', 'unknown')}] cell {number}\n{text.rstrip()}\n")
    return "\n".join(parts)
