"""Aliases that pure layers need."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

Tokenizer: TypeAlias = Callable[[str], int]
"""Text in, number of tokens out."""

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = Mapping[str, JsonValue]
