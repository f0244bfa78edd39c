"""The key table: one row per action, its default keys and where it works; the user's ``keybindings.json``."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from textual.binding import Binding, BindingType

from musepi_tui.base.dataclass import dataclass

Where: TypeAlias = Literal["app", "editor", "panel", "sessions", "tree", "dialog"]

UNBOUND = "unbound+none"
"""A key nobody can press: Textual reads an empty key list as "leave the default"."""


@dataclass(frozen=True, slots=True)
class Key:
    """One action: ``keys`` are the default keys, comma-separated, in Textual's spelling, ``action`` is the
    method behind it. The focused part (``editor``, ``panel``, ``tree``, ``dialog``) is asked before ``app``;
    ``sessions`` is the panel with the list of sessions, whose own keys go before those of every panel.
    A key that is a single character works in ``tree`` while its search is empty."""

    id: str
    keys: str
    action: str
    where: Where
    help: str
    priority: bool = False


KEYS: tuple[Key, ...] = (
    Key("app.interrupt", "escape", "interrupt", "app", "close, clear the selection, or stop what runs"),
    Key("app.clear", "ctrl+c", "clear", "app", "copy, clear the text or stop; twice quits"),
    Key("app.suspend", "ctrl+z", "suspend_process", "app", "suspend the program", priority=True),
    Key("app.editor.external", "ctrl+g", "external_editor", "app", "edit the text in your editor"),
    Key(
        "app.tools.expand",
        "ctrl+o",
        "screen.toggle_expanded",
        "app",
        "show or hide tool output and summaries",
    ),
    Key("app.thinking.toggle", "ctrl+t", "screen.toggle_thinking", "app", "show or hide thinking"),
    Key("app.thinking.cycle", "shift+tab", "cycle_thinking", "app", "next thinking level"),
    Key("app.model.select", "alt+m", "select_model", "app", "choose a model"),
    Key("app.model.cycleForward", "ctrl+p", "cycle_model(1)", "app", "next model"),
    Key("app.model.cycleBackward", "ctrl+shift+p,ctrl+shift+P", "cycle_model(-1)", "app", "previous model"),
    Key("app.approval.cycle", "alt+a", "cycle_mode", "app", "next approval mode"),
    Key("app.message.dequeue", "alt+up", "dequeue", "app", "take queued messages back into the editor"),
    Key("app.retry", "alt+r", "retry", "app", "repeat the last failed turn"),
    Key("app.display.reset", "ctrl+l", "redraw", "app", "redraw the screen"),
    Key("app.session.new", UNBOUND, "command('new')", "app", "start a new session"),
    Key("app.session.resume", UNBOUND, "command('resume')", "app", "open another session"),
    Key("app.session.tree", UNBOUND, "open_tree", "app", "go to another place in this session"),
    Key("app.transcript.pageUp", "pageup", "screen.page(-1)", "app", "transcript: a page up"),
    Key("app.transcript.pageDown", "pagedown", "screen.page(1)", "app", "transcript: a page down"),
    Key("app.transcript.lineUp", "shift+up", "screen.line(-1)", "app", "transcript: a line up"),
    Key("app.transcript.lineDown", "shift+down", "screen.line(1)", "app", "transcript: a line down"),
    Key("app.transcript.top", "ctrl+home", "screen.top", "app", "transcript: to the first message"),
    Key("app.transcript.end", "ctrl+end", "screen.end", "app", "transcript: to the end"),
    Key(
        "app.transcript.collapse",
        UNBOUND,
        "screen.toggle_collapsed",
        "app",
        "transcript: fold or show what lies before the newest compaction",
    ),
    Key("editor.submit", "enter", "submit", "editor", "send the message"),
    Key("editor.newline", "shift+enter,ctrl+j", "newline", "editor", "new line"),
    Key(
        "app.message.followUp",
        "alt+enter,ctrl+q,ctrl+enter",
        "follow_up",
        "editor",
        "send when the agent has finished (new line when it is idle)",
    ),
    Key("app.exit", "ctrl+d", "exit_or_delete", "editor", "quit when the editor is empty, else delete"),
    Key("editor.complete", "tab", "complete", "editor", "take the completion"),
    Key("editor.up", "up", "up", "editor", "line up, then older prompts"),
    Key("editor.down", "down", "down", "editor", "line down, then newer prompts"),
    Key("editor.left", "left,ctrl+b", "cursor_left", "editor", "left"),
    Key("editor.right", "right,ctrl+f", "cursor_right", "editor", "right"),
    Key("editor.wordLeft", "ctrl+left,alt+left,alt+b", "cursor_word_left", "editor", "word left"),
    Key("editor.wordRight", "ctrl+right,alt+right,alt+f", "cursor_word_right", "editor", "word right"),
    Key("editor.lineStart", "home,ctrl+a", "cursor_line_start", "editor", "start of the line"),
    Key("editor.lineEnd", "end,ctrl+e", "line_end", "editor", "end of the line, then of the transcript"),
    Key("editor.selectLeft", "shift+left", "cursor_left(True)", "editor", "select left"),
    Key("editor.selectRight", "shift+right", "cursor_right(True)", "editor", "select right"),
    Key("editor.selectStart", "shift+home", "cursor_line_start(True)", "editor", "select to the line start"),
    Key("editor.selectEnd", "shift+end", "cursor_line_end(True)", "editor", "select to the line end"),
    Key("editor.deleteLeft", "backspace,ctrl+h,shift+backspace", "delete_left", "editor", "delete left"),
    Key("editor.deleteRight", "delete", "delete_right", "editor", "delete right"),
    Key(
        "editor.killWordLeft",
        "ctrl+w,alt+backspace,ctrl+backspace",
        "kill_word_left",
        "editor",
        "cut the word before the cursor",
    ),
    Key("editor.killWordRight", "alt+d,alt+delete", "kill_word_right", "editor", "cut the word after it"),
    Key("editor.killLineStart", "ctrl+u", "kill_line_start", "editor", "cut to the start of the line"),
    Key("editor.killLineEnd", "ctrl+k", "kill_line_end", "editor", "cut to the end of the line"),
    Key("editor.yank", "ctrl+y", "yank", "editor", "insert what was cut last"),
    Key("editor.yankOlder", "alt+y", "yank_older", "editor", "after that: what was cut before"),
    Key("editor.undo", "ctrl+underscore,ctrl+minus", "undo", "editor", "undo"),
    Key("editor.redo", "alt+minus", "redo", "editor", "redo"),
    Key("editor.pasteRaw", "ctrl+shift+v,alt+shift+v", "paste_raw", "editor", "paste without a marker"),
    Key("panel.up", "up,ctrl+p", "move(-1)", "panel", "up"),
    Key("panel.down", "down,ctrl+n", "move(1)", "panel", "down"),
    Key("panel.pageUp", "pageup", "page(-1)", "panel", "a page up"),
    Key("panel.pageDown", "pagedown", "page(1)", "panel", "a page down"),
    Key("panel.first", "home,ctrl+home", "edge(-1)", "panel", "first"),
    Key("panel.last", "end,ctrl+end", "edge(1)", "panel", "last"),
    Key("panel.accept", "enter", "accept", "panel", "choose"),
    Key("panel.cancel", "escape,ctrl+c", "cancel", "panel", "close"),
    Key("panel.erase", "backspace,ctrl+h", "erase", "panel", "erase in the search"),
    Key("panel.eraseAll", "ctrl+u,ctrl+w", "erase_all", "panel", "empty the search"),
    Key("panel.everywhere", "ctrl+a", "everywhere", "sessions", "all folders, or this one only"),
    Key("sessions.sort", "ctrl+s", "sort", "sessions", "other order: newest, first made, largest"),
    Key("sessions.named", "ctrl+n", "named", "sessions", "only those with a name of their own"),
    Key("sessions.paths", "ctrl+p", "paths", "sessions", "show where the files are"),
    Key("sessions.rename", "ctrl+r", "rename", "sessions", "give the marked one another name"),
    Key("sessions.delete", "ctrl+d", "delete", "sessions", "move the marked one to the trash"),
    Key("tree.up", "up,ctrl+p", "move(-1)", "tree", "up"),
    Key("tree.down", "down,ctrl+n", "move(1)", "tree", "down"),
    Key("tree.pageUp", "left,pageup", "page(-1)", "tree", "a page up"),
    Key("tree.pageDown", "right,pagedown", "page(1)", "tree", "a page down"),
    Key("tree.first", "home,ctrl+home", "edge(-1)", "tree", "first"),
    Key("tree.last", "end,ctrl+end", "edge(1)", "tree", "last"),
    Key("tree.turnUp", "alt+up", "turn(-1)", "tree", "to the prompt or answer before"),
    Key("tree.turnDown", "alt+down", "turn(1)", "tree", "to the prompt or answer after"),
    Key("tree.fold", "ctrl+left,alt+left", "fold", "tree", "fold the branch, or go to its start"),
    Key("tree.unfold", "ctrl+right,alt+right", "unfold", "tree", "unfold, or go to the next branch"),
    Key("tree.accept", "enter", "accept", "tree", "go on from there"),
    Key(
        "tree.summarize",
        "shift+enter,alt+enter",
        "accept_with_summary",
        "tree",
        "the same, with a summary of the branch that is left",
    ),
    Key("tree.cancel", "escape", "cancel", "tree", "empty the search, then close"),
    Key("tree.close", "ctrl+c", "close", "tree", "close"),
    Key("tree.erase", "backspace,ctrl+h", "erase", "tree", "erase in the search"),
    Key("tree.eraseAll", "ctrl+w", "erase_all", "tree", "empty the search"),
    Key("tree.label", "L", "edit_label", "tree", "label the marked entry (while the search is empty)"),
    Key("tree.times", "T", "toggle_times", "tree", "show when labels were given (while the search is empty)"),
    Key("tree.copy", "ctrl+x", "copy", "tree", "copy the text of the marked entry"),
    Key("tree.filterNext", "ctrl+o", "cycle_filter(1)", "tree", "next filter"),
    Key("tree.filterBefore", "ctrl+shift+o,ctrl+shift+O", "cycle_filter(-1)", "tree", "filter before"),
    Key("tree.filterDefault", "alt+d,ctrl+d", "set_filter('default')", "tree", "messages and tools"),
    Key("tree.filterNoTools", "alt+t,ctrl+t", "set_filter('no-tools')", "tree", "without tool results"),
    Key("tree.filterUser", "alt+u,ctrl+u", "set_filter('user-only')", "tree", "prompts only"),
    Key("tree.filterLabeled", "alt+l,ctrl+l", "set_filter('labeled-only')", "tree", "what has a label"),
    Key("tree.filterAll", "alt+a,ctrl+a", "set_filter('all')", "tree", "everything"),
    Key("tree.previewUp", "shift+up", "scroll_preview(-1)", "tree", "scroll the text up"),
    Key("tree.previewDown", "shift+down", "scroll_preview(1)", "tree", "scroll the text down"),
    Key("dialog.allow", "1,y", "answer('allow')", "dialog", "allow once"),
    Key("dialog.allowSession", "2", "answer('allow_session')", "dialog", "allow for the session"),
    Key("dialog.deny", "3,n", "answer('deny')", "dialog", "deny"),
    Key("dialog.stop", "escape,ctrl+c", "answer('deny_and_stop')", "dialog", "deny and stop the turn"),
    Key("dialog.up", "up", "scroll_body(-1)", "dialog", "scroll up"),
    Key("dialog.down", "down", "scroll_body(1)", "dialog", "scroll down"),
    Key("dialog.pageUp", "pageup", "page_body(-1)", "dialog", "a page up"),
    Key("dialog.pageDown", "pagedown,space", "page_body(1)", "dialog", "a page down"),
)

_NAMES = {
    "-": "minus",
    "_": "underscore",
    "]": "right_square_bracket",
    "[": "left_square_bracket",
    "/": "slash",
    "\\": "backslash",
    ".": "full_stop",
    ";": "semicolon",
    "'": "apostrophe",
    "`": "grave_accent",
    "=": "equals_sign",
    "?": "question_mark",
    "@": "at",
    "pageUp": "pageup",
    "pageDown": "pagedown",
    "return": "enter",
    "esc": "escape",
}
_SHOWN = {value: key for key, value in _NAMES.items() if key not in {"return", "esc"}} | {"escape": "esc"}
_KEY = (
    r"(?:[a-z0-9]|f(?:[1-9]|1\d|2[0-4])|escape|enter|tab|space|backspace|delete|insert|home|end|pageup|pagedown"
    r"|up|down|left|right|" + "|".join(set(_NAMES.values())) + ")"
)
_MODIFIERS = ("alt", "ctrl", "shift", "super")


def bindings(where: Where) -> list[BindingType]:
    """The Textual bindings of one part of the screen; each has the id that ``keybindings.json`` names."""
    own = [(row, row.keys) for row in KEYS if row.where == where]
    if where == "sessions":
        taken = {key for _, keys in own for key in keys.split(",")}
        panel = [(row, row.keys.split(",")) for row in KEYS if row.where == "panel"]
        own += [(row, ",".join(key for key in keys if key not in taken)) for row, keys in panel]
    return [
        Binding(keys, row.action, row.help, id=row.id, show=False, priority=row.priority) for row, keys in own
    ]


def editor_actions(keymap: "Keymap") -> dict[str, str]:
    """Key → action for the focused editor, the keys of the app among them.

    The editor runs these itself, in the order the keys come. Textual would hand a bound key on from widget to
    widget up to the app, and text typed right after it would be inserted before the action ran.
    """
    actions: dict[str, str] = {}
    for where in ("app", "editor"):
        for row in KEYS:
            if row.where == where:
                action = row.action if where == "editor" or "." in row.action else f"app.{row.action}"
                actions.update(dict.fromkeys(keymap.changes.get(row.id, row.keys).split(","), action))
    return actions


@dataclass(frozen=True, slots=True)
class Keymap:
    """The user's changes: action id → keys in Textual's form, and what could not be used, one line each."""

    changes: Mapping[str, str]
    notices: tuple[str, ...] = ()

    def keys_of(self, action_id: str) -> tuple[str, ...]:
        """The effective keys of an action as people write them; none when it was switched off."""
        default = next(row.keys for row in KEYS if row.id == action_id)
        keys = self.changes.get(action_id, default)
        shown = {key.lower(): show_key(key) for key in reversed(keys.split(",")) if key != UNBOUND}
        return tuple(reversed(shown.values()))


def load_keymap(path: Path) -> Keymap:
    """The keymap of a ``keybindings.json``; an absent file changes nothing.

    The form is ``{"action.id": "key" | ["key", …] | []}``. An unknown id, an unreadable key and a key that
    two actions would share become notices; everything else still counts.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Keymap({})
    except (OSError, UnicodeDecodeError) as error:
        return Keymap({}, (f"{path.name} cannot be read: {error}",))
    try:
        data: Any = json.loads(text)
    except ValueError as error:
        return Keymap({}, (f"{path.name} is no valid JSON ({error}); the default keys are used",))
    if not isinstance(data, dict):
        return Keymap({}, (f"{path.name} must be an object of action ids and keys",))
    return _read_changes(cast("dict[str, Any]", data), path.name)


def _read_changes(data: Mapping[str, Any], file: str) -> Keymap:
    known = {row.id for row in KEYS}
    changes: dict[str, str] = {}
    notices: list[str] = []
    for action_id, value in data.items():
        if action_id not in known:
            notices.append(f'{file}: there is no action "{action_id}" (/hotkeys lists them)')
            continue
        written = cast("list[Any]", value) if isinstance(value, list) else [value]
        keys = [(wish, parse_key(wish) if isinstance(wish, str) else None) for wish in written]
        notices.extend(f'{file}: "{wish}" for {action_id} is no key' for wish, key in keys if key is None)
        good = [key for _, key in keys if key is not None]
        if good or not written:
            changes[action_id] = ",".join(good) or UNBOUND
    notices.extend(f"{file}: {clash}" for clash in find_clashes(changes))
    return Keymap(changes, tuple(notices))


def typed_keys(keymap: "Keymap", where: Where) -> frozenset[str]:
    """The keys of a part that type a character as well."""
    keys = (key for row in KEYS if row.where == where for key in _keys_of(row, keymap.changes))
    return frozenset(key for key in keys if len(key) == 1)


def parse_key(text: str) -> str | None:
    """A key as people write it (``ctrl+pageUp``, ``alt+-``) in Textual's spelling, None when it is no key."""
    *modifiers, name = text.strip().split("+") if not text.endswith("+") else ["", ""]
    name = _NAMES.get(name, name)
    if not re.fullmatch(_KEY, name) or not set(modifiers) <= set(_MODIFIERS):
        return None
    if modifiers == ["shift"] and re.fullmatch("[a-z]", name):
        return name.upper()
    return "+".join([*sorted(set(modifiers)), name])


def show_key(key: str) -> str:
    """A Textual key as people write it: ``ctrl+minus`` → ``ctrl+-``, ``L`` → ``shift+l``."""
    *modifiers, name = key.split("+")
    if not modifiers and re.fullmatch("[A-Z]", name):
        return f"shift+{name.lower()}"
    return "+".join([*modifiers, _SHOWN.get(name, name)])


def find_clashes(changes: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Every key that two actions would share, one line each.

    Parts of the screen that are never asked together (panel and editor) may use the same key. The editor is
    asked before the app, so a key in both would never reach the app.
    """
    seen: dict[tuple[str, str], str] = {}
    clashes: list[str] = []
    for row in KEYS:
        for key in _keys_of(row, changes or {}):
            for part in _parts(row.where):
                other = seen.setdefault((part, key), row.id)
                if other != row.id and key != UNBOUND:
                    clashes.append(f"{show_key(key)} is used by both {other} and {row.id}")
    return tuple(dict.fromkeys(clashes))


def _keys_of(row: Key, changes: Mapping[str, str]) -> list[str]:
    return changes.get(row.id, row.keys).split(",")


def _parts(where: Where) -> Iterable[str]:
    return ("editor",) if where in {"app", "editor"} else (where,)
