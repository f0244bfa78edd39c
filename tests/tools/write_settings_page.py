"""Writes ``docs/settings.md`` from the schema. Run by ``make docs``; a test compares the two."""

import json
from typing import Literal, get_args, get_origin

from musepi_tui.settings.fields import KnownSetting, known_settings
from musepi_tui.settings.schema import Settings
from tests.support.checkout import ROOT

HEAD = """# Settings

Settings are stored as nested JSON in `settings.json` of the configuration folder; `musepi config path` names
it. `//` comments are allowed. `musepi config set compaction.threshold 85%` changes one, and
`--set key=value` sets one for one run. The list below is made from the program by `make docs`.

"""


def render_page() -> str:
    """The whole page."""
    rows = ["| Key | Default | Values | What it does |", "| --- | --- | --- | --- |"]
    rows += [_row(known) for known in known_settings(Settings)]
    return HEAD + "\n".join(rows) + "\n"


def _row(known: KnownSetting) -> str:
    shown = "unset" if known.default is None else f"`{json.dumps(known.default)}`"
    return f"| `{known.key}` | {shown} | {_values(known.kind)} | {known.description} |"


def _values(kind: object) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    if isinstance(kind, type) and kind in _NAMES:
        return _NAMES[kind]
    if get_origin(kind) is tuple:
        return "list of texts"
    parts = [_values(part) for part in get_args(kind)]
    return " or ".join(part for part in parts if part)


_NAMES = {bool: "true, false", int: "whole number", float: "number", str: "text"}


if __name__ == "__main__":
    (ROOT / "docs" / "settings.md").write_text(render_page(), encoding="utf-8")
