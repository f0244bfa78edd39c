"""Slash commands: discovery, parsing, completion (tui 4)."""

import difflib
import importlib
import pkgutil
import re
from collections.abc import Iterable, Mapping

from musepi_tui.base.dataclass import dataclass
from musepi_tui.commands import builtin
from musepi_tui.commands.choices import Choices
from musepi_tui.commands.types import Command

_COMMAND_WORD = re.compile(r"/[a-z][\w:-]*")


@dataclass(frozen=True, slots=True)
class Call:
    """A command line: ``name`` without the slash, ``args`` as typed."""

    name: str
    args: str


@dataclass(frozen=True, slots=True)
class Completion:
    """One row of the completion list: ``text`` replaces the whole command line when it is taken."""

    label: str
    detail: str
    text: str


def parse_call(text: str) -> Call | None:
    """The command line in ``text``, None when it is a prompt.

    A command starts with ``/`` at column 0 and its first word has no further ``/``, so ``/usr/bin/x`` is a
    prompt; ``//text`` is one as well (``prompt_text`` takes the first slash off).
    """
    head, _, rest = text.partition("\n")
    word, _, args = head.partition(" ")
    if not _COMMAND_WORD.fullmatch(word):
        return None
    return Call(word[1:], f"{args}\n{rest}".strip())


def prompt_text(text: str) -> str:
    """The prompt as it is sent: ``//word`` is the way to send ``/word``."""
    return text[1:] if text.startswith("//") else text


def split_arguments(text: str) -> tuple[str, ...]:
    """The arguments of a command: blanks separate, single and double quotes group, no other escapes.

    An unclosed quote runs to the end.
    """
    words: list[str] = []
    for match in re.finditer(r"""(?:[^\s"']+|"[^"]*(?:"|$)|'[^']*(?:'|$))+""", text):
        words.append(re.sub(r""""([^"]*)(?:"|$)|'([^']*)(?:'|$)""", r"\1\2", match.group()))
    return tuple(words)


def unquote(text: str) -> str:
    """A text that is one argument, blanks joined, without quotes around the whole of it."""
    words = " ".join(text.split())
    is_quoted = len(words) > 1 and words[0] == words[-1] and words[0] in "\"'"
    return words[1:-1].strip() if is_quoted else words


class CommandRegistry:
    """The commands by name and alias."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self._commands = tuple(sorted(commands, key=lambda command: command.name))
        self._by_name: Mapping[str, Command] = {
            name: command for command in self._commands for name in (command.name, *command.aliases)
        }

    @classmethod
    def discover(cls) -> "CommandRegistry":
        """Every ``COMMAND`` in a module of ``commands/builtin``."""
        found: list[Command] = []
        for info in pkgutil.iter_modules(builtin.__path__):
            # deferred: the modules are found by name, so that a command is added in one file
            found.append(importlib.import_module(f"{builtin.__name__}.{info.name}").COMMAND)
        return cls(found)

    @property
    def commands(self) -> tuple[Command, ...]:
        """All commands by name."""
        return self._commands

    def find(self, name: str) -> Command | None:
        """The command with that name or alias."""
        return self._by_name.get(name)

    def nearest(self, name: str) -> tuple[str, ...]:
        """Up to three names like the one typed, other names of commands among them, best first."""
        names = list(self._by_name)
        starts = [candidate for candidate in names if candidate.startswith(name[:2])]
        return tuple(dict.fromkeys([*difflib.get_close_matches(name, names, 3, 0.5), *starts]))[:3]

    def complete(self, text: str, choices: Choices) -> tuple[Completion, ...]:
        """The rows for a line that starts with ``/``: commands while its first word is typed, then arguments.

        None of the rows is what stands there already, so the list is empty once there is nothing to add.
        """
        if "\n" in text or not text.startswith("/") or text.startswith("//"):
            return ()
        word, blank, args = text.partition(" ")
        if not blank:
            typed = word[1:].lower()
            named = ((_name_for(typed, command), command) for command in rank(typed, self._commands))
            return tuple(
                Completion(f"/{name}", _detail(command, choices), f"/{name} ") for name, command in named
            )
        command = self.find(word[1:])
        if command is None or command.complete is None:
            return ()
        typed = args.lstrip().lower()
        return tuple(
            Completion(value, "", f"{word} {value}")
            for value in command.complete(choices, args)
            if typed in value.lower() and value.lower() != typed
        )


def _name_for(letters: str, command: Command) -> str:
    """The name of a command that what was typed begins: an alias where only that does."""
    names = (command.name, *command.aliases)
    return next((name for name in names if name.startswith(letters)), command.name)


def _detail(command: Command, choices: Choices) -> str:
    return command.help if command.detail is None else command.detail(choices)


def rank(typed: str, commands: Iterable[Command]) -> tuple[Command, ...]:
    """The commands that fit what was typed: names that start with it, then aliases, then letters in order."""
    letters = typed.lower()

    def place(command: Command) -> int:
        if command.name.startswith(letters):
            return 0
        if any(alias.startswith(letters) for alias in command.aliases):
            return 1
        return 2 if letters and is_subsequence(letters, command.name) else 3

    return tuple(sorted((item for item in commands if place(item) < 3), key=place))


def is_subsequence(letters: str, text: str) -> bool:
    """Whether the letters stand in the text in that order, other ones between them allowed."""
    remaining = iter(text)
    return all(letter in remaining for letter in letters)
