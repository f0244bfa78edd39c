"""What a command wrote: its end in memory, all of it in an artifact once it is too long (TUI-7.42)."""

import re
from dataclasses import dataclass
from typing import BinaryIO

from musepi_tui.base.text import group_digits, plural
from musepi_tui.tools.limits import MAX_BYTES, MAX_LINES, clip_lines, cut_tail
from musepi_tui.tools.types import ArtifactSink

KEPT_BYTES = 2 * MAX_BYTES
"""Bytes kept in memory: twice what is shown, so that the shown part starts at a whole line."""

_PROGRESS_BYTES = 16_384
"""End of the output shown while a command runs."""

_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
_SEQUENCES = re.compile(
    r"\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
    r"|\x1b[PX^_][^\x1b\n]*(?:\x1b\\)?"
    r"|\x1b\[[0-?]*[ -/]*[@-ln-~]"
    r"|\x1b[ -/]*[0-Z\\^-~]"
)
"""Terminal sequences other than colours."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class ShownOutput:
    """The part of an output a model gets. ``coloured`` has its colour sequences, None when there are none."""

    text: str
    coloured: str | None
    notes: tuple[str, ...]
    artifact_id: str | None


class CommandOutput:
    """Takes the blocks of a running command, from one thread at a time. ``add`` may wait for the disk."""

    def __init__(self, artifacts: ArtifactSink, tool: str) -> None:
        self._artifacts = artifacts
        self._tool = tool
        self._kept = bytearray()
        self._dropped_bytes = 0
        self._line_breaks = 0
        self._spill: BinaryIO | None = None
        self._artifact_id: str | None = None
        self._spill_problem: str | None = None

    @property
    def is_spilled(self) -> bool:
        """Whether blocks go to a file, so that ``add`` belongs in a thread."""
        return self._spill is not None

    def add(self, block: bytes) -> None:
        """Takes the next block."""
        self._kept += block
        self._line_breaks += block.count(b"\n")
        if self._spill is not None:
            self._write(block)
        elif self._artifact_id is None and (len(self._kept) > MAX_BYTES or self._line_breaks > MAX_LINES):
            self._start_spill()
        if len(self._kept) > 2 * KEPT_BYTES:
            self._dropped_bytes += len(self._kept) - KEPT_BYTES
            del self._kept[:-KEPT_BYTES]

    def progress(self) -> str:
        """The end of what came so far, for the screen."""
        text = _readable(bytes(self._kept[-_PROGRESS_BYTES:]).decode("utf-8", "replace"))
        if len(self._kept) > _PROGRESS_BYTES:
            return text.split("\n", 1)[-1]
        return text

    def finish(self) -> ShownOutput:
        """Closes the artifact and gives the part to show: the last whole lines within the limits."""
        self.close()
        coloured = _readable(bytes(self._kept).decode("utf-8", "replace"))
        if self._dropped_bytes:
            coloured = coloured.split("\n", 1)[-1] if "\n" in coloured.rstrip("\n") else f"…{coloured}"
        coloured, clipped = clip_lines(coloured.rstrip("\n"))
        part = cut_tail(coloured)
        ends_in_mid_line = bool(self._kept) and not self._kept.endswith(b"\n")
        lines = self._line_breaks + (1 if ends_in_mid_line else 0)
        first = max(1, lines - (part.last - part.first))
        is_cut = part.is_cut or self._dropped_bytes > 0
        if clipped and self._artifact_id is None and not self._dropped_bytes:
            self._artifact_id = self._artifacts.save(self._tool, bytes(self._kept).decode("utf-8", "replace"))
        text = _COLOURS.sub("", part.text).replace("\x1b", "")
        return ShownOutput(
            text,
            part.text if "\x1b[" in part.text else None,
            self._notes((first, lines) if is_cut else None, clipped),
            self._artifact_id,
        )

    def close(self) -> None:
        """Lets go of the artifact file; what it has stays."""
        if self._spill is not None:
            self._spill.close()
            self._spill = None

    def _start_spill(self) -> None:
        try:
            self._artifact_id, path = self._artifacts.create(self._tool)
            self._spill = path.open("ab")
        except OSError as error:
            self._spill_problem = f"the full output could not be kept: {error.strerror or error}"
            return
        self._write(bytes(self._kept))

    def _write(self, block: bytes) -> None:
        try:
            if self._spill is not None:
                self._spill.write(block)
        except OSError as error:
            self._spill_problem = f"the full output is incomplete: {error.strerror or error}"
            self.close()

    def _notes(self, shown: tuple[int, int] | None, clipped: int) -> tuple[str, ...]:
        notes: list[str] = []
        where = f"; full output: artifact://{self._artifact_id}" if self._artifact_id is not None else ""
        if shown is not None:
            first, total = shown
            lines = f"{group_digits(first)}-{group_digits(total)} of {group_digits(total)}"
            notes.append(f"[lines {lines} shown{where}]")
        if clipped:
            notes.append(f"[{plural(clipped, 'line')} shortened{where if shown is None else ''}]")
        if self._spill_problem is not None:
            notes.append(f"[{self._spill_problem}]")
        return tuple(notes)


def _readable(text: str) -> str:
    """The text a terminal would have left: sequences gone, rewritten lines only in their last form."""
    if "\x1b" in text:
        text = _SEQUENCES.sub("", text)
    text = _CONTROL.sub("", text)
    if "\r" not in text:
        return text
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
