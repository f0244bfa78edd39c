"""Arguments as a model wrote them, repaired where the meaning is plain, else refused (TUI-7.8)."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from musepi_tui.base.errors import ToolError
from musepi_tui.tools.types import Tool

_OTHER_NAMES = {
    "file_path": "path",
    "filePath": "path",
    "filename": "path",
    "cmd": "command",
    "old_text": "oldText",
    "old_string": "oldText",
    "oldString": "oldText",
    "new_text": "newText",
    "new_string": "newText",
    "newString": "newText",
    "replace_all": "replaceAll",
    "ignore_case": "ignoreCase",
}
"""Names other programs gave the same parameters; models trained on those use them. Other spelling to ours."""


class ToolArguments(BaseModel):
    """Base of all argument models. Field names are the parameter names the model sees.

    ``also_accepted`` are names a model's own validator turns into its fields.
    """

    also_accepted: ClassVar[frozenset[str]] = frozenset()

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True, defer_build=True, frozen=True)


def plain_arguments(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments under our own names, without nulls. Approval and execution both start from this."""
    plain: dict[str, Any] = {}
    for name, value in raw.items():
        ours = _OTHER_NAMES.get(name, name)
        if value is not None and (ours == name or ours not in raw):
            plain[ours] = _plain_value(value)
    return plain


def parse_arguments(tool: Tool, raw: Mapping[str, Any]) -> tuple[BaseModel, str | None]:
    """The validated arguments, and a note about parameters that were ignored.

    JSON strings that hold a list, an object, a number or a boolean are taken as what they hold where the
    parameter wants that. Raises ``ToolError`` that names each problem and shows the schema.
    """
    plain = plain_arguments(raw)
    known = {*tool.arguments.model_fields, *getattr(tool.arguments, "also_accepted", ())}
    unknown = [name for name in plain if name not in known]
    note = f"unknown parameter ignored: {', '.join(unknown)}" if unknown else None
    try:
        return tool.arguments.model_validate(plain), note
    except ValidationError as error:
        repaired = _unpack_strings(plain, error.errors(include_url=False))
    try:
        return tool.arguments.model_validate(repaired), note
    except ValidationError as error:
        raise ToolError(_explain(tool, error)) from error


def schema_of(arguments: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of an argument model, as short as it can be: it is sent with every request."""
    schema = arguments.model_json_schema()
    definitions = schema.pop("$defs", {})
    return _shorten(schema, definitions)


def _plain_value(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The objects of a list get our names, too; the names in an object (``env``) are the model's own."""
    if not isinstance(value, list):
        return value
    items = cast("list[Any]", value)
    return [
        plain_arguments(cast("dict[str, Any]", item)) if isinstance(item, dict) else item for item in items
    ]


def _unpack_strings(plain: dict[str, Any], problems: list[ErrorDetails]) -> dict[str, Any]:
    """A copy in which strings that failed as lists or objects are replaced by the JSON they hold."""
    repaired = dict(plain)
    for problem in problems:
        name = problem["loc"][0] if problem["loc"] else None
        value = repaired.get(name) if isinstance(name, str) else None
        if isinstance(value, str) and value[:1] in ("[", "{"):
            try:
                repaired[str(name)] = _plain_value(json.loads(value))
            except (ValueError, RecursionError):
                continue
        elif isinstance(value, dict) and problem["type"] == "list_type":
            repaired[str(name)] = [value]
    return repaired


def _explain(tool: Tool, error: ValidationError) -> str:
    problems = [
        f"{'.'.join(str(part) for part in problem['loc']) or 'arguments'}: {problem['msg'].lower()}"
        for problem in error.errors(include_url=False)[:8]
    ]
    schema = json.dumps(schema_of(tool.arguments), ensure_ascii=False, separators=(",", ":"))
    return f"The arguments of {tool.name} cannot be used. {'; '.join(problems)}. The schema is: {schema}"


def _shorten(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without titles and defaults, with references written out and ``or null`` left away."""
    if "$ref" in node:
        return _shorten(definitions[str(node["$ref"]).rsplit("/", 1)[1]], definitions)
    options: list[dict[str, Any]] = [option for option in node.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        return _shorten(
            {**options[0], **{key: value for key, value in node.items() if key != "anyOf"}}, definitions
        )
    is_object = node.get("type") == "object"
    short: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            short[key] = {name: _shorten(below, definitions) for name, below in value.items()}
        elif isinstance(value, Mapping):
            short[key] = _shorten(cast("Mapping[str, Any]", value), definitions)
        elif key not in ("title", "default") and not (key == "description" and is_object):
            short[key] = value
    return short
