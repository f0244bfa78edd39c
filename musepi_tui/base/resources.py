"""Prompts and themes, wherever the program runs from.

They lie at the top of a checkout and under ``musepi_tui/_data`` in a wheel.
"""

import re
from functools import cache
from pathlib import Path

from musepi_tui.base.errors import ResourceMissingError

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_PROMPT_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PACKAGE = Path(__file__).parents[1]
"""Not ``importlib.resources``: that takes a while to find out what is known here, that these are files."""


@cache
def read_prompt(name: str) -> str:
    """The text of ``prompts/<name>.md`` without its last line break. Raises ``ResourceMissingError``."""
    file = _find_root("prompts") / f"{name}.md"
    if not _PROMPT_NAME.fullmatch(name) or not file.is_file():
        raise ResourceMissingError(
            f'The prompt "{name}" is missing: {file} cannot be read. Reinstall musepi.'
        )
    return file.read_text(encoding="utf-8").rstrip("\n")


def render_prompt(name: str, **values: str) -> str:
    """The prompt with each ``{{placeholder}}`` replaced by the value of that name.

    One pass over the template: values are never looked at again. Raises ``ResourceMissingError`` for a
    placeholder without a value and for a value without a placeholder.
    """
    template = read_prompt(name)
    wanted = set(_PLACEHOLDER.findall(template))
    if wanted != values.keys():
        odd = ", ".join(sorted(wanted ^ values.keys()))
        raise ResourceMissingError(f'The prompt "{name}" and its values do not agree on: {odd}.')
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


@cache
def theme_paths() -> dict[str, Path]:
    """The files of the built-in themes by name, in alphabetical order."""
    return {path.stem: path for path in sorted(_find_root("themes").glob("*.toml"))}


def _find_root(kind: str) -> Path:
    packed, beside = _PACKAGE / "_data" / kind, _PACKAGE.parent / kind
    for root in (packed, beside):
        if root.is_dir():
            return root
    raise ResourceMissingError(
        f"The folder of {kind} is missing: neither {packed} nor {beside}. Reinstall musepi."
    )
