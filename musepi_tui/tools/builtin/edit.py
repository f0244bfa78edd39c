"""Replaces exact texts in a file."""

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from pydantic import Field, model_validator

from musepi_tui.base.errors import ToolError
from musepi_tui.base.files import atomic_write
from musepi_tui.tools.diff import loose_diff, unified_diff
from musepi_tui.tools.matching import Replacement, apply_replacements
from musepi_tui.tools.paths import Freshness, ResolvedPath, Workspace, digest_of, explain, open_regular
from musepi_tui.tools.preview import argument, shown_body, title
from musepi_tui.tools.types import Effect, ToolContext, ToolOutcome, ToolView
from musepi_tui.tools.validate import ToolArguments, plain_arguments

_MAX_FILE_BYTES = 20 * 1024 * 1024
"""A larger file is no text somebody edits; matching would take seconds."""


class EditItem(ToolArguments):
    """One replacement."""

    oldText: str = Field(description="text to replace, exactly as in the file")
    newText: str
    replaceAll: bool = Field(default=False, description="replace every occurrence")


class EditArguments(ToolArguments):
    """Arguments of ``edit``. A single ``oldText`` / ``newText`` pair is accepted in place of ``edits``."""

    path: str
    edits: list[EditItem]
    also_accepted: ClassVar[frozenset[str]] = frozenset(EditItem.model_fields)

    @model_validator(mode="before")
    @classmethod
    def _single_pair(cls, raw: Any) -> Any:  # noqa: ANN401 - what pydantic hands over
        if not isinstance(raw, dict):
            return raw
        values = cast("dict[str, Any]", raw)
        if "edits" in values or "oldText" not in values:
            return values
        return {**values, "edits": [{name: values[name] for name in EditItem.model_fields if name in values}]}


class Edit:
    """Replaces texts that occur exactly once; all of them or none."""

    name = "edit"
    arguments = EditArguments
    effect = Effect.WRITE
    prompt = "tool-edit"

    def preview(self, arguments: Mapping[str, Any]) -> ToolView:
        """The texts as a diff; where they stand in the file is only known when the tool runs."""
        pairs = _pairs(arguments)
        body = "\n".join(loose_diff(old, new) for old, new in pairs)
        return ToolView("diff", title("edit", argument(arguments, "path")), shown_body(body))

    async def run(self, args: EditArguments, ctx: ToolContext) -> ToolOutcome:
        """Edits under the lock of the path."""
        workspace: Workspace = ctx.workspace
        resolved = await ctx.in_thread(workspace.resolve, args.path)
        async with workspace.lock_for(resolved.path):
            return await ctx.in_thread(_edit, workspace, resolved, args)


TOOL = Edit()


def _edit(workspace: Workspace, resolved: ResolvedPath, args: EditArguments) -> ToolOutcome:
    with open_regular(resolved) as file:
        data = file.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES or b"\0" in data[:8192]:
        raise ToolError(f"{resolved.shown} is no text file of at most {_MAX_FILE_BYTES >> 20} MiB.")
    was_changed = workspace.freshness(resolved.path) is Freshness.CHANGED
    old = data.decode("utf-8", "surrogateescape")
    wanted = [Replacement(item.oldText, item.newText, item.replaceAll) for item in args.edits]
    edited = apply_replacements(old, wanted, resolved.shown)
    new_data = _encode(edited.text, args, resolved)
    try:
        atomic_write(resolved.path, new_data)
        workspace.note_read(resolved.path, digest_of(new_data))
    except OSError as error:
        raise ToolError(f"{resolved.shown} {explain(error)}. Nothing was changed.") from error
    return _outcome(resolved, (old, edited.text), normalised=edited.normalised, was_changed=was_changed)


def _encode(text: str, args: EditArguments, resolved: ResolvedPath) -> bytes:
    """The bytes to write. Bytes of the file that are no UTF-8 come back as they were; no new ones come in."""
    try:
        for item in args.edits:
            item.newText.encode("utf-8")
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ToolError(f"newText for {resolved.shown} is no valid Unicode text: {error}.") from error


def _outcome(
    resolved: ResolvedPath, texts: tuple[str, str], *, normalised: bool, was_changed: bool
) -> ToolOutcome:
    old, new = (text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for text in texts)
    diff = unified_diff(old, new)
    notes = [f"Edited {resolved.shown} ({diff.summary}), first change in line {diff.first_line}."]
    if normalised:
        notes.append("oldText matched only after look-alike quotes, dashes and blanks were made equal.")
    if was_changed:
        notes.append("The file was changed on disk since you last read it; the other changes were kept.")
    details = {
        "diff": diff.text,
        "firstChangedLine": diff.first_line,
        "added": diff.added,
        "removed": diff.removed,
    }
    view = ToolView("diff", title("edit", resolved.shown, f"({diff.summary})"), shown_body(diff.text))
    return ToolOutcome(" ".join(notes), details=details, view=view)


def _pairs(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Old and new texts of arguments that may be half there."""
    plain = plain_arguments(arguments)
    edits = plain.get("edits", [plain])
    items = cast("list[Any]", edits) if isinstance(edits, list) else []
    found = (cast("dict[str, Any]", item) for item in items if isinstance(item, dict))
    return [
        (str(item.get("oldText", "")), str(item.get("newText", "")))
        for item in found
        if "oldText" in item or "newText" in item
    ]
