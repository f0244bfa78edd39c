"""Going to another place of the session: the tree, the question on leaving a branch, the way back (tui 5)."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from musepi_tui.base.dataclass import dataclass
from musepi_tui.runtime.events import EntryAppended, IntentSettled, LeafMoved, Phase
from musepi_tui.runtime.intents import MoveLeaf, NavigateTree
from musepi_tui.runtime.settling import STILL_LOADING
from musepi_tui.session.places import PLACE_TYPES, place_of
from musepi_tui.tui.conversation import failure_of

if TYPE_CHECKING:
    from musepi_tui.session.tree import SessionTree
    from musepi_tui.tui.leaving import Answer, Leaving
    from musepi_tui.tui.shell import Shell
    from musepi_tui.tui.tree.model import TreeModel
    from musepi_tui.tui.tree.screen import TreeScreen

PRESS_ESC = "press esc first"
HERE = "Already at this point"
EMPTY = "No entries yet"
NOT_FOUND = "Entry {} not found"
NOTHING_TO_REVERSE = "There is no move to take back."
STOPPED = "an extension stopped the move"
SUMMARY_CANCELLED = "Branch summary cancelled; you are where you were."
HINT_S = 3.0


@dataclass(frozen=True, slots=True)
class _Move:
    """A move of this run: the places before and after it."""

    old_leaf_id: str | None
    new_leaf_id: str | None


@dataclass(frozen=True, slots=True)
class _Trip:
    """A move that is wanted. ``back`` shows again where the person came from, when nothing comes of it; it
    tells whether it did."""

    target_id: str
    back: Callable[[], bool] | None


class Navigation:
    """Where the person goes within the session. Each move that was made can be taken back in this run."""

    def __init__(self, app: "Shell") -> None:
        self._app = app
        self._moves: list[_Move] = []
        self._is_reversing = False
        self._sessions = 0
        self._answer: Answer | None = None
        self._instructions = ""
        self._prefilled = ""
        self._said = ""

    def open_tree(self, selected: str | None = None) -> None:
        """Shows the tree, ``selected`` marked, else the current leaf."""
        if self._is_refused():
            return
        tree = self._app.runtime.view().tree
        if not any(head.type in PLACE_TYPES for head in tree.all_heads):
            self._app.tell("info", EMPTY)
            return
        if selected is not None:
            selected, problem = _find_entry(tree, selected)
            if problem is not None:
                self._app.tell("warning", problem)
                return
        from musepi_tui.tui.tree.model import (
            FilterMode,
            TreeModel,
        )  # deferred: not needed for the first frame

        runtime = self._app.runtime
        settings = runtime.options.settings.values
        model = TreeModel(
            tree,
            runtime.read_entry,
            mode=FilterMode(settings.tree_filter_mode),
            active_first=settings.tree.active_first,
            read_start=runtime.read_start,
        )
        if selected is not None:
            model.select(selected)
        self._show(model)

    def go(
        self, target_id: str, *, summarize: bool | None = None, back: Callable[[], None] | None = None
    ) -> None:
        """Goes on from an entry (tui 5.7). ``summarize`` None asks where the settings want it, True leaves a
        summary of the branch without asking. ``back`` is called when nothing came of it: esc, a failure, an
        extension that said no."""
        if self._is_refused():
            return
        tree = self._app.runtime.view().tree
        trip = _Trip(target_id, self._back_here(back))
        if target_id not in tree:
            self._app.tell("warning", NOT_FOUND.format(target_id))
        elif target_id in {place_of(tree), tree.display_leaf, tree.leaf_id}:
            self._app.tell("info", HERE)
        elif summarize is None and (leaving := self._leaving(target_id)) is not None:
            self._ask(trip, leaving)
        else:
            self._move(NavigateTree(target_id, bool(summarize)), trip.back)

    def redo(self) -> None:
        """Takes the newest move of this run back (TUI-4.8)."""
        if self._is_refused():
            return
        if not self._moves:
            self._app.tell("info", NOTHING_TO_REVERSE)
            return
        move = self._moves.pop()
        self._is_reversing = True

        def ended(event: IntentSettled) -> None:
            self._is_reversing = False
            if (event.data or {}).get("cancelled"):
                self._moves.append(move)
                return
            prefilled, self._prefilled = self._prefilled, ""
            if prefilled and self._app.main.composer.full_text == prefilled:
                self._app.main.composer.put("")  # it came from the prompt that is in its place again

        def failed(event: IntentSettled) -> None:
            self._is_reversing = False
            self._moves.append(move)
            self._app.tell("error", failure_of(event))

        self._app.talk.send(self._reversal(move), ended, failed)

    def session_changed(self) -> None:
        """Another session is open: nothing of the one before can be gone back to."""
        self._sessions += 1
        self._moves.clear()
        self._is_reversing = False
        self._prefilled = ""
        self.close_tree()

    def close_tree(self) -> None:
        """Something needs to be seen that an open tree would hide."""
        screen = self._open_screen()
        if screen is not None:
            screen.close()

    def changed(self, event: LeafMoved | EntryAppended) -> None:
        """The session goes on from another place, or has one more entry: an open tree shows it."""
        if isinstance(event, LeafMoved):
            if not self._is_reversing:
                self._moves.append(_Move(event.old_leaf_id, event.new_leaf_id))
            self._app.main.transcript.to_end()
        screen = self._open_screen()
        if screen is not None:
            screen.follow(self._app.runtime.view().tree)

    def _is_refused(self) -> bool:
        """Whether something runs that must end first; the person is told."""
        status = self._app.bridge.status
        if status.phase is Phase.LOADING:
            self._app.tell("info", STILL_LOADING)
        elif status.is_working:
            self._app.main.status_line.hint(PRESS_ESC, HINT_S)
        return status.phase is Phase.LOADING or status.is_working

    def _open_screen(self) -> "TreeScreen | None":
        stack = self._app.screen_stack
        if len(stack) < 2:
            return None  # nothing is open, and what the tree needs may not even be imported
        from musepi_tui.tui.tree.screen import TreeScreen  # deferred: see open_tree

        return next((screen for screen in stack if isinstance(screen, TreeScreen)), None)

    def _show(self, model: "TreeModel") -> None:
        from musepi_tui.tui.tree.panes import Choice  # deferred: see open_tree
        from musepi_tui.tui.tree.screen import TreeScreen

        def decided(choice: Choice | None) -> None:
            if choice is not None:
                summarize = True if choice.summarize else None
                self.go(choice.entry_id, summarize=summarize, back=partial(self._show_again, model))

        said, self._said = self._said, ""
        self._app.push_screen(TreeScreen(self._app, model, said), decided)

    def _show_again(self, model: "TreeModel") -> None:
        model.follow(self._app.runtime.view().tree)
        self._show(model)

    def _back_here(self, back: Callable[[], None] | None) -> Callable[[], bool] | None:
        """The way back, as long as the same session is open, and nothing runs or is about to: what a turn
        asks must be seen."""
        if back is None:
            return None
        session = self._sessions

        def go_back() -> bool:
            status = self._app.bridge.status
            is_busy = status.is_working and status.phase is not Phase.NAVIGATING  # which ends just now
            if session != self._sessions or is_busy or status.steering or status.follow_up:
                return False
            back()
            return True

        return go_back

    def _reversal(self, move: _Move) -> MoveLeaf | NavigateTree:
        if move.old_leaf_id is not None:
            return MoveLeaf(move.old_leaf_id)
        # Before the first entry there is none to name; going to the first prompt ends before it.
        tree = self._app.runtime.view().tree
        first = next((root for root in tree.roots if tree.head(root).type == "message"), tree.order[0])
        return NavigateTree(first)

    # -- leaving a branch

    def _leaving(self, target_id: str) -> "Leaving | None":
        """What is left behind on the way there, None when nobody wants to be asked about it, or the move
        will be refused."""
        app = self._app
        settings = app.runtime.options.settings.values.branch_summary
        if not settings.enabled or app.bridge.status.read_only is not None:
            return None
        from musepi_tui.context.branch import collect_entries_for_branch_summary  # deferred: see open_tree
        from musepi_tui.tui.leaving import Leaving, find_obstacle

        tree = app.runtime.view().tree
        left = collect_entries_for_branch_summary(tree, tree.display_leaf, target_id)
        model = app.bridge.status.model
        obstacle = find_obstacle(model, app.runtime.models())
        leaving = Leaving(left.heads, app.runtime.read_entry, model, settings.reserve_tokens, obstacle)
        return leaving if leaving.messages else None

    def _ask(self, trip: _Trip, leaving: "Leaving") -> None:
        from musepi_tui.tui.leaving import Answer, LeavingPanel  # deferred: see open_tree

        def decided(key: str | None) -> None:
            if key is None:
                self._return(trip.back)
                return
            self._answer = Answer(key)
            if self._answer is Answer.CUSTOM:
                self._ask_instructions(trip, leaving)
            else:
                self._move(NavigateTree(trip.target_id, self._answer is Answer.SUMMARY), trip.back)

        panel = LeavingPanel(self._app.looks.palette, leaving, self._answer or Answer.NOTHING)
        self._app.push_screen(panel, decided)

    def _ask_instructions(self, trip: _Trip, leaving: "Leaving") -> None:
        from musepi_tui.tui.leaving import PromptScreen  # deferred: see open_tree

        screen = PromptScreen(self._app.looks.palette, self._app.keymap, self._instructions)

        def decided(text: str | None) -> None:
            self._instructions = screen.field.full_text  # until a summary was made with it
            if text is None:
                self._ask(trip, leaving)
            else:
                self._move(NavigateTree(trip.target_id, summarize=True, instructions=text), trip.back)

        self._app.push_screen(screen, decided)

    # -- moving

    def _move(self, intent: NavigateTree, back: Callable[[], bool] | None) -> None:
        def ended(event: IntentSettled) -> None:
            data = event.data or {}
            if data.get("cancelled") and not data.get("aborted"):
                self._return(back, STOPPED)  # the runtime has told which one
                return
            if data.get("cancelled"):
                if not self._return(back):
                    self._app.tell("info", SUMMARY_CANCELLED)
                return
            self._instructions = ""
            self._prefilled = ""
            text = str(data.get("editorText") or "")
            if text:
                self._prefill(text)
            elif data.get("unchanged"):
                self._app.tell("info", HERE)

        def failed(event: IntentSettled) -> None:
            self._app.tell("error", failure_of(event))
            self._return(back, failure_of(event))

        self._app.talk.send(intent, ended, failed)

    def _return(self, back: Callable[[], bool] | None, said: str = "") -> bool:
        """Goes back to where the person came from, where it says why: a notice lies under the tree. Whether
        that could be done."""
        self._said = said
        is_back = back is not None and back()
        self._said = ""
        return is_back

    def _prefill(self, text: str) -> None:
        """Puts the prompt that was gone back to into the editor; a draft there stays (TUI-0.7)."""
        composer = self._app.main.composer
        if composer.text:
            composer.offer(text)
            keys = self._app.keymap.keys_of("editor.yank")
            how = f": {keys[0]} inserts the prompt" if keys else "; the prompt is in the tree"
            self._app.tell("info", f"What you were writing stays in the editor{how}.")
        else:
            composer.put(text)
            self._prefilled = composer.full_text


def _find_entry(tree: "SessionTree", name: str) -> tuple[str | None, str | None]:
    """The entry with that id, or the only one whose id begins so; else why there is none."""
    if name in tree:
        return name, None
    found = [entry_id for entry_id in tree.order if entry_id.startswith(name)]
    if len(found) == 1:
        return found[0], None
    return None, f"{len(found)} entries begin with {name}" if found else NOT_FOUND.format(name)
