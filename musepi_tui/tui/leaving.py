"""The question what becomes of a branch that is left, and what a summary of it would take (tui 5.8)."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial

from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SessionError
from musepi_tui.base.text import plural, short_number
from musepi_tui.context.branch import branch_budget, prepare_branch_entries
from musepi_tui.context.estimate import estimate_tokens
from musepi_tui.providers.types import Model
from musepi_tui.session.entries import Entry, EntryHead
from musepi_tui.tui.keys import Keymap
from musepi_tui.tui.screens.panel import Item, Panel, PanelText
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.drawing import DrawnWidget, Row, cut_row, title_row
from musepi_tui.tui.widgets.field import Field

SUMMARY_TOKENS = 1_000
"""Tokens a branch summary usually takes; 2,048 are allowed. Only the estimated price depends on it."""

READ_AT_ONCE = 32
"""Entries read between two looks at the keyboard."""

TITLE = "Summarize the branch you leave?"
PROMPT_TITLE = "Summarize with custom prompt"
PROMPT_HINT = "enter summarize · shift+enter, ctrl+j new line · esc back"


class Answer(StrEnum):
    """What becomes of the branch; the values are what people choose from."""

    NOTHING = "No summary"
    SUMMARY = "Summarize"
    CUSTOM = "Summarize with custom prompt"


@dataclass(frozen=True, slots=True)
class Leaving:
    """A branch that is left: its entries oldest first, how to read one, and who would summarise it.

    ``obstacle`` says why nobody can. ``reserve_tokens`` of the model's window stay free.
    """

    heads: Sequence[EntryHead]
    read: Callable[[str], Entry]
    model: Model | None
    reserve_tokens: int
    obstacle: str | None = None

    @property
    def messages(self) -> int:
        """How many messages are left behind."""
        return sum(head.type == "message" for head in self.heads)

    async def count_tokens(self) -> int:
        """Tokens a request for the summary would hold, roughly. Lets keys through meanwhile."""
        entries: list[Entry] = []
        for number, head in enumerate(self.heads, 1):
            try:
                entries.append(self.read(head.id))
            except SessionError:
                continue  # the summary will do without it as well
            if number % READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        window = self.model.context_window if self.model is not None else None
        budget = branch_budget(window, self.reserve_tokens)
        material = await asyncio.to_thread(
            prepare_branch_entries, entries, budget, lambda message: estimate_tokens(message, _rough_tokens)
        )
        return material.tokens

    def facts(self, tokens: int | None) -> str:
        """``5 messages, ~12k tokens, est. $0.02``, as far as it is known."""
        parts = [plural(self.messages, "message")]
        if tokens is not None:
            parts.append(f"~{short_number(tokens)} tokens")
            prices = self.model.prices if self.model is not None else None
            if prices is not None:
                cost = (tokens * prices.input + SUMMARY_TOKENS * prices.output) / 1_000_000
                parts.append(f"est. ${cost:.2f}" if cost >= 0.005 else "est. <$0.01")
        return ", ".join(parts)


def find_obstacle(model: Model | None, models: Iterable[Model]) -> str | None:
    """Why no summary can be made (TUI-5.47), None when nothing stands against it."""
    if model is None:
        return "there is no model: /model chooses one"
    if all(other.provider != model.provider for other in models):
        return f"there is no key for {model.provider}"
    return None


class LeavingPanel(Panel):
    """The three answers. The mark is on the one given last; how much it is about is counted meanwhile."""

    LEAST_ROWS = 5
    """All answers and what they are about: a low screen would have no sign of the last answer."""

    def __init__(self, palette: Palette, leaving: Leaving, last: Answer) -> None:
        text = PanelText(TITLE, hint="enter choose · esc back")
        super().__init__(palette, text, lambda _: self._rows(), searchable=False)
        self._leaving = leaving
        self._last = last
        self._tokens: int | None = None

    def on_mount(self) -> None:
        """Counts, while the answers are shown."""
        self.run_worker(self._count(), exit_on_error=False)

    def search(self, query: str) -> None:
        """The rows; the mark is on the answer of before."""
        super().search(query)
        self.index = next((at for at, item in enumerate(self.items) if item.key == self._last), self.index)

    async def _count(self) -> None:
        self._tokens = await self._leaving.count_tokens()
        self.items = self._rows()
        self.view.refresh()

    def _rows(self) -> tuple[Item, ...]:
        obstacle = self._leaving.obstacle
        answers = (
            Item(Answer.NOTHING, Answer.NOTHING),
            *(
                Item(None if obstacle else answer, answer, obstacle or "")
                for answer in (Answer.SUMMARY, Answer.CUSTOM)
            ),
        )
        return (Item(None, self._leaving.facts(self._tokens), " "), Item(None, "", " "), *answers)


class _Line(DrawnWidget):
    """One row of fixed words."""

    def __init__(self, palette: Palette, draw: Callable[[int], Row]) -> None:
        super().__init__(palette)
        self._draw = draw

    def rows(self, width_cells: int) -> Iterable[Row]:
        """The row."""
        yield self._draw(width_cells)


class PromptScreen(ModalScreen[str | None], inherit_bindings=False):
    """Asks what the summary should look at. Ends with the text, None when it was left."""

    AUTO_FOCUS = "Field"
    DEFAULT_CSS = """
    PromptScreen {
        align: left bottom; background: transparent;
        & > _Line { height: 1; background: ansi_default; }
        & > Field { margin: 0; padding: 0 2; background: ansi_default; }
    }
    """

    def __init__(self, palette: Palette, keymap: Keymap, text: str = "") -> None:
        super().__init__()
        self._palette = palette
        self._text = text
        self.field = Field(palette, keymap, "what should the summary look at?")
        self.field.taken = self._take
        self.field.left = self._leave

    def compose(self) -> ComposeResult:
        """Title, text, keys."""
        yield _Line(self._palette, partial(title_row, PROMPT_TITLE, self._palette))
        yield _Line(self._palette, lambda _: ())
        yield self.field
        yield _Line(self._palette, lambda _: ())
        yield _Line(self._palette, self._hint)

    def on_mount(self) -> None:
        """Begins with the text that was left before."""
        self.field.put(self._text)

    def on_resize(self, event: events.Resize) -> None:
        """The text may take a third of the screen."""
        self.field.styles.max_height = max(1, event.size.height // 3)

    def _leave(self) -> None:
        self.dismiss(None)

    def _take(self, text: str) -> None:
        if text.strip():
            self.dismiss(text.strip())

    def _hint(self, width_cells: int) -> Row:
        hint = f"  {PROMPT_HINT.replace('·', self._palette.symbol('dot'))}"
        return cut_row([(hint, self._palette.style("dim"))], width_cells, self._palette.symbol("ellipsis"))


def _rough_tokens(text: str) -> int:
    return (len(text) + 3) // 4
