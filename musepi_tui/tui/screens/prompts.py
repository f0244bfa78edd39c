"""The prompts of the path, newest first: to go back to before one (TUI-4.7), or to begin a session there."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SessionError
from musepi_tui.base.text import cut, plural
from musepi_tui.runtime.events import Phase
from musepi_tui.runtime.intents import ForkSession
from musepi_tui.runtime.settling import STILL_LOADING
from musepi_tui.session.entries import Entry, EntryHead, MessageEntry
from musepi_tui.session.messages import UserMessage, text_of
from musepi_tui.tui.screens.panel import Item, Panel, PanelText
from musepi_tui.tui.screens.session_rows import age
from musepi_tui.tui.widgets.drawing import one_line

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell

NO_PROMPTS = "There is no prompt on this path yet."
NEW = "new"
"""The argument of ``/branch`` that asks for the prompts, whatever two presses of esc open."""

SEARCHED_CHARS = 2_000
"""What is searched of a prompt, its beginning: a pasted file makes no sense of a search."""

LABEL_CHARS = 200
"""What a row may show of it at most; wider screens than that are rare."""

READ_AT_ONCE = 32
"""Prompts read between two looks at the keyboard: a few milliseconds when none of them is in memory."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A user message of the path. ``number`` counts from the newest one, 1; ``searched`` is in lower case."""

    entry_id: str
    number: int
    text: str
    searched: str
    timestamp: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody was in the list: what was typed, the row that was chosen."""

    query: str = ""
    entry_id: str | None = None


class PromptPanel(Panel):
    """The list. It fills while prompts are read; the marked row stays marked."""

    def __init__(self, app: "Shell", text: PanelText, place: Place) -> None:
        super().__init__(app.looks.palette, text, self._matching)
        self._shell = app
        self._prompts: list[Prompt] = []
        self._sought = place.entry_id
        self.query_text = place.query
        self.empty_text = "reading the prompts…"

    def on_mount(self) -> None:
        """Fills the list, which is empty at first."""
        self.run_worker(self._fill(), exit_on_error=False)

    async def _fill(self) -> None:
        prompts = read_prompts(self._shell)
        while part := list(islice(prompts, READ_AT_ONCE)):
            self._prompts += part
            self._show()
            await asyncio.sleep(0)  # keys go first
        self.empty_text = "no prompt fits" if self._prompts else NO_PROMPTS
        self._show()

    def _show(self) -> None:
        """Shows what is there now, with the same row marked, or the one that was come back for."""
        kept = self._sought or (None if self.chosen is None else self.chosen.key)
        self.search(self.query_text)
        at = next((index for index, item in enumerate(self.items) if item.key == kept), None)
        if at is not None:
            self._sought = None
            self._go(at, 1)

    def _matching(self, query: str) -> list[Item]:
        words = query.lower().split()
        now_ms = self._shell.clock.now_ms()
        return [
            Item(prompt.entry_id, prompt.text, _detail(prompt, now_ms))
            for prompt in self._prompts
            if all(word in prompt.searched for word in words)
        ]


def open_rewind(app: "Shell", argument: str) -> None:
    """Goes back to before a prompt: the one with that number, 1 being the newest, else one that is chosen."""
    wanted = argument.strip()
    if not wanted:
        _offer_rewind(app, Place())
    elif not _is_loading(app):
        _rewind_to(app, int(wanted))


def open_branch(app: "Shell", argument: str) -> None:
    """The tree, when that is what two presses of esc open; else, and for ``new``, the prompts to begin a
    session of its own at."""
    action = app.runtime.options.settings.values.double_escape_action
    if argument != NEW and action == "tree":
        app.navigation.open_tree()
        return
    text = PanelText("New session from before a prompt", "type to search", "enter branch off · esc close")

    def branch(_: Place, entry_id: str) -> None:
        app.host.send(ForkSession(entry_id))

    _choose(app, text, Place(), branch)


def read_prompts(app: "Shell") -> Iterator[Prompt]:
    """The prompts of the path, newest first, each read when it is asked for."""
    number = 0
    for head in _candidates(app):
        entry = _read(app, head)
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
            number += 1
            yield _prompt(entry, entry.message, number)


def _offer_rewind(app: "Shell", place: Place) -> None:
    text = PanelText("Back to before a prompt", "type to search", "enter go back · esc close")

    def go(left: Place, entry_id: str) -> None:
        app.navigation.go(entry_id, back=partial(_offer_rewind, app, left))

    _choose(app, text, place, go)


def _rewind_to(app: "Shell", number: int) -> None:
    prompts = list(islice(_prompt_ids(app), number))
    if len(prompts) == number:
        app.navigation.go(prompts[-1])
    elif prompts:
        app.tell("warning", f"There is no prompt {number}: this path has {plural(len(prompts), 'prompt')}.")
    else:
        app.tell("info", NO_PROMPTS)


def _choose(app: "Shell", text: PanelText, place: Place, then: Callable[[Place, str], None]) -> None:
    """Shows the list; ``then`` gets where the person was in it, and the prompt."""
    if _is_loading(app):
        return
    if next(_prompt_ids(app), None) is None:
        app.tell("info", NO_PROMPTS)
        return
    panel = PromptPanel(app, text, place)

    def chosen(entry_id: str | None) -> None:
        if entry_id is not None:
            then(Place(panel.query_text, entry_id), entry_id)

    app.push_screen(panel, chosen)


def _is_loading(app: "Shell") -> bool:
    """Whether only the end of the path is there yet; that is told."""
    is_loading = app.bridge.status.phase is Phase.LOADING
    if is_loading:
        app.tell("info", STILL_LOADING)
    return is_loading


def _candidates(app: "Shell") -> Iterator[EntryHead]:
    """Heads that are prompts, or may be, newest first: the role of some is known only from their entry."""
    heads: Sequence[EntryHead] = app.runtime.view().tree.path()
    return (head for head in reversed(heads) if head.type == "message" and head.role in ("user", None))


def _prompt_ids(app: "Shell") -> Iterator[str]:
    """Ids of the prompts of the path, newest first, read only where the head does not tell."""
    for head in _candidates(app):
        if head.role == "user":
            yield head.id
            continue
        entry = _read(app, head)
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
            yield head.id


def _read(app: "Shell", head: EntryHead) -> Entry | None:
    """The entry; None when its line cannot be read, which the transcript says."""
    try:
        return app.runtime.read_entry(head.id)
    except SessionError:
        return None


def _prompt(entry: MessageEntry, message: UserMessage, number: int) -> Prompt:
    text = one_line(text_of(message.content)[:SEARCHED_CHARS])
    return Prompt(entry.id, number, cut(text, LABEL_CHARS) or "(no text)", text.lower(), entry.timestamp)


def _detail(prompt: Prompt, now_ms: int) -> str:
    return " · ".join(filter(None, (f"{prompt.number}", age(prompt.timestamp, now_ms))))
