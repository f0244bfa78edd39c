"""The question before a tool call runs; it stands in the place of the editor (tui 8.1, safety 7.5)."""

import json
import re
from typing import Literal, TypeAlias

from rich.cells import chop_cells
from rich.style import Style
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from musepi_tui.base.clock import Clock
from musepi_tui.base.safe_text import reveal
from musepi_tui.base.text import plural
from musepi_tui.runtime.events import ApprovalAsked
from musepi_tui.tui.keys import bindings
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.drawing import GROUND, Row, app_of, cut_row, spread, strip_of

Decision: TypeAlias = Literal["allow", "allow_session", "deny", "deny_and_stop"]

DEAF_S = 0.3
"""Keys this soon after the question appeared were meant for the editor and are dropped (TUI-8.5)."""

MIN_BOX_ROWS = 10

_BLANKS = re.compile(r" {9,}")
_INDENT = re.compile(r"[+-]? *")


class ApprovalDialog(Widget):
    """One question at a time; further ones wait behind it.

    Everything that comes from the model is shown whole, with invisible characters spelled out. A body longer
    than the box scrolls, and allowing is off until its end was seen.
    """

    BINDINGS = bindings("dialog")
    DEFAULT_CSS = """
    ApprovalDialog { display: none; height: auto; width: 1fr; }
    ApprovalDialog.-open { display: block; }
    """
    can_focus = True
    ALLOW_SELECT = False

    class Answered(Message):
        """The person decided."""

        def __init__(self, request_id: str, decision: Decision) -> None:
            super().__init__()
            self.request_id = request_id
            self.decision: Decision = decision

    def __init__(self, palette: Palette, clock: Clock) -> None:
        super().__init__()
        self.palette = palette
        self.cwd = ""
        self._clock = clock
        self._requests: list[ApprovalAsked] = []
        self._asked = 0
        self._shown_at_s = 0.0
        self._top = 0
        self._seen_end = False

    # -- the queue of questions

    @property
    def is_open(self) -> bool:
        """Whether a question is waiting."""
        return bool(self._requests)

    def ask(self, request: ApprovalAsked) -> None:
        """Shows the question, behind those that wait already."""
        self._requests.append(request)
        self._asked += 1
        if len(self._requests) == 1:
            self._present()
        else:
            self.refresh()

    def close(self, request_id: str) -> None:
        """Takes a question away that was answered, here or elsewhere."""
        first = self._requests[0].request_id if self._requests else None
        self._requests = [request for request in self._requests if request.request_id != request_id]
        if first == request_id:
            self._present()
        elif self._requests:
            self.refresh()

    def close_all(self) -> None:
        """Takes every question away."""
        self._requests = []
        self._present()

    def _present(self) -> None:
        self._shown_at_s = self._clock.monotonic()
        self._top = 0
        self._seen_end = False
        if not self._requests:
            self._asked = 0
        self.set_class(bool(self._requests), "-open")
        self.refresh(layout=True)

    def set_palette(self, palette: Palette) -> None:
        """Draws with another theme from now on."""
        self.palette = palette
        self.refresh()

    # -- answering

    def action_answer(self, decision: Decision) -> None:
        """Sends the decision, unless the key came too early or the choice is not offered."""
        if not self._requests or self._clock.monotonic() - self._shown_at_s < DEAF_S:
            return
        request = self._requests[0]
        allows = decision in {"allow", "allow_session"}
        if (allows and not self._seen_end) or (decision == "allow_session" and request.rule is None):
            app_of(self).bell()
            return
        self.post_message(self.Answered(request.request_id, decision))
        self.close(request.request_id)

    def action_scroll_body(self, step: int) -> None:
        """Moves the body by rows."""
        self._top = max(0, min(self._top + step, self._hidden_rows))
        self.refresh()

    def action_page_body(self, direction: int) -> None:
        """Moves the body by pages."""
        if self._requests:
            self.action_scroll_body(direction * max(1, self._body_room - 1))

    # -- drawing

    @property
    def _body_room(self) -> int:
        """Rows for the body: what the other rows leave of three fifths of the screen, at least one."""
        box_rows = max(MIN_BOX_ROWS, app_of(self).size.height * 3 // 5)
        return max(1, box_rows - len(self._head(80)) - len(self._choices(0)) - 2)

    @property
    def _hidden_rows(self) -> int:
        return max(0, len(self._body(self.size.width)) - self._body_room) if self._requests else 0

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Rules, head, the visible part of the body, choices."""
        return len(self._rows(width))

    def render_line(self, y: int) -> Strip:
        """The row at ``y``. Drawing the end of the body is what counts as having seen it."""
        width = self.size.width
        rows = self._rows(width)
        self._seen_end = self._seen_end or self._top >= self._hidden_rows
        return strip_of(rows[y] if y < len(rows) else (), width)

    def _rows(self, width_cells: int) -> list[Row]:
        if not self._requests:
            return []
        rule: Row = [(self.palette.symbol("rule") * width_cells, self.palette.style("warning"))]
        body = self._body(width_cells)
        room = self._body_room
        hidden = max(0, len(body) - self._top - room)
        rows = [
            rule,
            *self._head(width_cells),
            *body[self._top : self._top + room],
            *self._choices(hidden),
            rule,
        ]
        return [cut_row(row, width_cells, self.palette.symbol("ellipsis")) for row in rows]

    def _head(self, width_cells: int) -> list[Row]:
        request = self._requests[0]
        counter = f"{self._asked - len(self._requests) + 1}/{self._asked} " if self._asked > 1 else ""
        strong = self.palette.style("warning") + Style(bold=True)
        muted, dim = self.palette.style("muted"), self.palette.style("dim")
        title: Row = [(f"  Allow {reveal(request.tool)}?", strong), (f"  {reveal(request.reason)}", muted)]
        ellipsis = self.palette.symbol("ellipsis")
        first = spread(title, [(counter, dim)], width_cells, ellipsis)
        return [first, [(f"  in {reveal(self.cwd)}", dim)], ()]

    def _body(self, width_cells: int) -> list[Row]:
        request = self._requests[0]
        text = self.palette.style("text")
        signs = {"+": self.palette.style("toolDiffAdded"), "-": self.palette.style("toolDiffRemoved")}
        rows: list[Row] = []
        for line in subject_lines(request):
            style = signs.get(line[:1], text) if request.view.kind == "diff" else text
            parts = chop_cells(line, max(1, width_cells - 5)) or [""]
            rows.extend([("    ", GROUND), (part, style)] for part in parts)
        return rows

    def _choices(self, hidden: int) -> list[Row]:
        accent, muted, dim = (self.palette.style(name) for name in ("accent", "muted", "dim"))
        request = self._requests[0]
        more: Row = ()
        if hidden:
            ellipsis = self.palette.symbol("ellipsis")
            more = [(f"    {ellipsis} {plural(hidden, 'more row')}", self.palette.style("warning"))]
            more = [*more, ("  down or pageDown; allowing is off until the end was seen", dim)]
        on, off = (accent, muted) if not hidden else (dim, dim)
        rows: list[Row] = [more, [("  1 ", on), ("allow once", off)]]
        if request.rule is not None:
            rule = (reveal(request.rule), self.palette.style("text") if not hidden else dim)
            rows.append([("  2 ", on), ("allow for this session  ", off), rule])
        rows.append([("  3 ", accent), ("deny", muted), ("     esc ", accent), ("deny and stop", muted)])
        return rows


def subject_lines(request: ApprovalAsked) -> list[str]:
    """What would happen, whole: the diff or file text, else every argument; invisible characters spelled out.

    Long runs of blanks are folded, so that nothing can be pushed out of sight; the indentation of code stays.
    """
    view = request.view
    if view.kind in {"diff", "code"} and view.body:
        body = (_fold(line, keep_indent=True) for line in reveal(view.body).split("\n"))
        return [reveal(view.title), *body]
    lines: list[str] = []
    for name, value in request.arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        label = "$ " if name == "command" else f"{name}: "
        lines.extend(f"{label}{text}".split("\n"))
    return [_fold(reveal(line), keep_indent=False) for line in lines or [view.title]]


def _fold(line: str, *, keep_indent: bool) -> str:
    match = _INDENT.match(line) if keep_indent else None
    indent = match.group() if match else ""
    return indent + _BLANKS.sub(lambda match: f"⟨{len(match.group())} blanks⟩", line[len(indent) :])
