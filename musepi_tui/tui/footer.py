"""The footer as text: what it says and what it drops on a narrow screen (tui 1.2). Pure."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from musepi_tui.base.cells import cell_width, cut_cells
from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.text import short_number
from musepi_tui.runtime.events import Meter
from musepi_tui.tui.status import Status, current_action

GAUGE_CELLS = 10
MAX_PATH_CELLS = 40
"""Above this the middle of the path is left out."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text and the theme token it is drawn with."""

    text: str
    token: str = "footer"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the session works: ``path`` with ``~``, ``branch`` None outside a repository."""

    path: str
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class Signs:
    """The glyphs of the footer, from the palette."""

    dot: str = "·"
    full: str = "▰"
    rest: str = "▱"
    mark: str = "┃"
    up: str = "↑"
    down: str = "↓"
    bullet: str = "•"
    ellipsis: str = "…"


@dataclass(frozen=True, slots=True)
class Shape:
    """What is shown. ``path_level``: 2 the path, 1 its last component, 0 nothing. ``idle``: the countdown
    beside ``auto-compact off``; where it is alone it never goes."""

    tokens: bool = True
    session: bool = True
    cost: bool = True
    path_level: int = 2
    branch: bool = True
    thinking: bool = True
    gauge: bool = True
    window: bool = True
    model: bool = True
    ask_mode: bool = True
    idle: bool = True


STEPS: tuple[Callable[[Shape], Shape], ...] = (
    lambda shape: replace(shape, tokens=False),
    lambda shape: replace(shape, session=False),
    lambda shape: replace(shape, cost=False),
    lambda shape: replace(shape, path_level=1),
    lambda shape: replace(shape, path_level=0, branch=False),
    lambda shape: replace(shape, thinking=False),
    lambda shape: replace(shape, gauge=False),
    lambda shape: replace(shape, window=False),
    lambda shape: replace(shape, ask_mode=False),
    lambda shape: replace(shape, model=False),
    lambda shape: replace(shape, idle=False),
)
"""What goes first on a narrow screen (TUI-1.14). Percent, maintenance and ``YOLO`` never go."""


def footer_pieces(
    status: Status, place: Place, width_cells: int, signs: Signs, idle: str = ""
) -> tuple[Piece, ...]:
    """The footer row, exactly ``width_cells`` wide: a left and a right group with blanks between them.

    ``idle`` is the countdown to an idle pass, if it is shown. On a screen that is too narrow even for what
    never goes, the row is cut at its end.
    """
    shape = Shape()
    groups = _groups(status, place, shape, signs, idle)
    for step in STEPS:
        if _width(groups) <= width_cells:
            break
        shape = step(shape)
        groups = _groups(status, place, shape, signs, idle)
    left, right = groups
    gap = width_cells - sum(cell_width(piece.text) for piece in (*left, *right))
    return _cut_row((*left, Piece(" " * max(gap, 0)), *right), width_cells)


def _width(groups: tuple[Sequence[Piece], Sequence[Piece]]) -> int:
    cells = sum(cell_width(piece.text) for group in groups for piece in group)
    return cells + (2 if all(groups) else 0)


def _groups(
    status: Status, place: Place, shape: Shape, signs: Signs, idle: str
) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    left = [_place(place, shape, signs), _session(status, shape, signs)]
    right = [
        _upkeep(status, shape, signs, idle),
        _unsaved(status),
        _tokens(status.meter, shape, signs),
        _cost(status.meter, shape),
        _gauge(status.meter, shape, signs),
        _model(status, shape),
        _mode(status, shape),
    ]
    return _join(left, " ", signs), _join(right, f" {signs.dot} ", signs)


def _join(segments: Sequence[Sequence[Piece]], joint: str, signs: Signs) -> tuple[Piece, ...]:
    row: list[Piece] = []
    for segment in segments:
        if segment and row:
            row.append(Piece(joint, "gaugeRest" if signs.dot in joint else "footer"))
        row.extend(segment)
    return tuple(row)


def _place(place: Place, shape: Shape, signs: Signs) -> list[Piece]:
    if not shape.path_level or not place.path:
        return []
    path = place.path if shape.path_level == 2 else place.path.rstrip("/").rpartition("/")[2] or place.path
    shown = shorten_path(path, MAX_PATH_CELLS, signs.ellipsis)
    branch = f" ({place.branch})" if place.branch and shape.branch else ""
    return [Piece(f"{shown}{branch}")]


def shorten_path(path: str, width_cells: int, ellipsis: str = "…") -> str:
    """The path in at most ``width_cells``: its first and last parts stay, the middle becomes an ellipsis."""
    if cell_width(path) <= width_cells:
        return path
    first, *middle = path.split("/")
    while len(middle) > 1:
        middle.pop(0)
        shorter = "/".join([first, ellipsis, *middle])
        if cell_width(shorter) <= width_cells:
            return shorter
    return cut_cells(middle[-1] if middle else path, width_cells, ellipsis)


def _session(status: Status, shape: Shape, signs: Signs) -> list[Piece]:
    return [Piece(f"{signs.bullet} {status.name}")] if status.name and shape.session else []


def countdown(left_s: float) -> str:
    """What is left until an idle pass: ``idle 4:59``."""
    minutes, seconds = divmod(max(0, math.ceil(left_s)), 60)
    return f"idle {minutes}:{seconds:02}"


def _upkeep(status: Status, shape: Shape, signs: Signs, idle: str) -> tuple[Piece, ...]:
    if status.pass_running is not None:
        is_handoff = current_action(status.pass_running) == "handoff"
        return (Piece("handing off…" if is_handoff else "compacting…", "accent"),)
    is_off = not status.meter.auto_compaction
    off = [Piece("auto-compact off")] if is_off else []
    countdown_row = [Piece(idle)] if idle and (shape.idle or not is_off) else []
    return _join([off, countdown_row], f" {signs.dot} ", signs)


def _unsaved(status: Status) -> list[Piece]:
    return [Piece(f"unsaved({status.unsaved})", "error")] if status.unsaved else []


def _tokens(meter: Meter, shape: Shape, signs: Signs) -> list[Piece]:
    totals = meter.totals
    counts = (
        (signs.up, totals.input),
        (signs.down, totals.output),
        ("R", totals.cache_read),
        ("W", totals.cache_write),
    )
    text = " ".join(f"{sign}{short_number(count)}" for sign, count in counts if count)
    return [Piece(text)] if text and shape.tokens else []


def _cost(meter: Meter, shape: Shape) -> list[Piece]:
    """Three decimals; nothing while that would be zero, which is what a free or unused model costs."""
    text = f"${meter.cost or 0:.3f}"
    return [Piece(text)] if shape.cost and text != "$0.000" else []


def _model(status: Status, shape: Shape) -> list[Piece]:
    if status.model is None:
        return [Piece("no model", "warning")]
    if status.model.source == "demo":
        return [Piece("demo (script)", "accent")]
    if not shape.model:
        return []
    level = f" ({status.thinking_level})" if status.model.reasoning and shape.thinking else ""
    return [Piece(f"{status.model.id}{level}")]


def _mode(status: Status, shape: Shape) -> list[Piece]:
    if status.mode == "yolo":
        return [Piece("YOLO", "error")]
    return [Piece(status.mode)] if shape.ask_mode else []


def _gauge(meter: Meter, shape: Shape, signs: Signs) -> list[Piece]:
    used, window = meter.context_tokens, meter.window
    if not window:
        return [Piece(short_number(used))] if used else []
    auto = " (auto)" if meter.auto_compaction and shape.gauge else ""
    if used is None:
        return [Piece(f"?/{short_number(window)}{auto}")]
    percent = 100 * used / window
    token = "gaugeError" if percent > 90 else "gaugeWarn" if percent > 70 else "footer"
    tilde = "~" if meter.estimated else ""
    amount = f" {tilde}{short_number(used)}/{short_number(window)}" if shape.window else ""
    bar = [*_bar(percent, meter, token, signs), Piece(" ")] if shape.gauge else []
    return [*bar, Piece(f"{percent:.0f}%", token), Piece(f"{amount}{auto}")]


def _bar(percent: float, meter: Meter, token: str, signs: Signs) -> list[Piece]:
    """Ten cells: filled, then rest; the cell of the compaction threshold is a mark."""
    filled = min(GAUGE_CELLS, int(percent / 100 * GAUGE_CELLS + 0.5))
    fill_token = "gaugeFill" if token == "footer" else token
    cells = [
        Piece(signs.full, fill_token) if cell < filled else Piece(signs.rest, "gaugeRest")
        for cell in range(GAUGE_CELLS)
    ]
    if meter.threshold and meter.window and meter.auto_compaction:
        mark = min(GAUGE_CELLS - 1, int(meter.threshold / meter.window * GAUGE_CELLS))
        cells[mark] = Piece(signs.mark, "dim")
    return cells


def _cut_row(row: Sequence[Piece], width_cells: int) -> tuple[Piece, ...]:
    result: list[Piece] = []
    left = width_cells
    for piece in row:
        text = cut_cells(piece.text, left, "") if cell_width(piece.text) > left else piece.text
        if text:
            result.append(replace(piece, text=text))
            left -= cell_width(text)
    return (*result, Piece(" " * left)) if left > 0 else tuple(result)
