"""Reading: commands and modes, and the keys as they are now."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from musepi_tui.commands.builtin.mode import MODES
from musepi_tui.commands.types import Command
from musepi_tui.tui.keys import KEYS, Keymap
from musepi_tui.tui.screens.panel import Item, Panel, PanelText, matches

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell

HINT = "type to search · up, down, pageUp, pageDown scroll · esc close"
PARTS = {
    "app": "Everywhere",
    "editor": "Editor",
    "panel": "Lists",
    "sessions": "List of sessions",
    "tree": "Session tree",
    "dialog": "Questions",
}
FIRST_KEYS = frozenset(
    {"app.interrupt", "app.clear", "app.tools.expand", "app.thinking.toggle", "app.editor.external"}
)
MAX_LABEL_CELLS = 26

_Entry: TypeAlias = tuple[str, str, str]
"""What is named, what it does, a note."""


def open_help(app: "Shell", argument: str) -> None:
    """Shows what there is; an argument names a command to begin with."""
    commands = app.host.registry.commands

    def find(query: str) -> Sequence[Item]:
        return help_items(commands, app.keymap, query)

    panel = Panel(app.looks.palette, PanelText("Help", "type to search", HINT), find)
    panel.query_text = argument
    app.push_screen(panel)


def open_hotkeys(app: "Shell", argument: str) -> None:
    """Shows every key, the user's own changes included."""

    def find(query: str) -> Sequence[Item]:
        return key_items(app.keymap, query)

    panel = Panel(app.looks.palette, PanelText("Keys", "type to search", HINT), find)
    panel.query_text = argument
    app.push_screen(panel)


def help_items(commands: Sequence[Command], keymap: Keymap, query: str) -> list[Item]:
    """Commands, first keys and modes that fit the search."""
    rows = [(f"/{command.name} {command.usage}".rstrip(), _about(command), "") for command in commands]
    keys = [(_keys(keymap, row.id), row.help, "") for row in KEYS if row.id in FIRST_KEYS]
    modes = [(mode, meaning, "") for mode, meaning in MODES.items()]
    parts = (("Commands", rows), ("Keys (all of them: /hotkeys)", keys), ("Modes (/mode)", modes))
    return _sections(parts, query)


def key_items(keymap: Keymap, query: str) -> list[Item]:
    """Every action with its keys and its id for ``keybindings.json``, by part of the screen."""
    parts = [
        (title, [(_keys(keymap, row.id), row.help, row.id) for row in KEYS if row.where == where])
        for where, title in PARTS.items()
    ]
    return _sections(parts, query)


def _about(command: Command) -> str:
    names = ", ".join(f"/{alias}" for alias in command.aliases)
    return f"{command.help} (also {names})" if names else command.help


def _keys(keymap: Keymap, action_id: str) -> str:
    return ", ".join(keymap.keys_of(action_id)) or "no key"


def _sections(parts: Sequence[tuple[str, Sequence[_Entry]]], query: str) -> list[Item]:
    longest = max(len(label) for _, rows in parts for label, _, _ in rows)
    label_cells = min(longest, MAX_LABEL_CELLS)
    items: list[Item] = []
    for title, rows in parts:
        fitting = [row for row in rows if matches(query, " ".join(row))]
        if fitting:
            items += [Item(None, "")] if items else []
            items.append(Item(None, title))
            items += [
                Item(None, f"  {label:<{label_cells}}", about, note=note) for label, about, note in fitting
            ]
    return items
