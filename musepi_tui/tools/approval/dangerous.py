"""Commands that deserve a second look in every mode but yolo, each with the reason shown (tui 8.3)."""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from musepi_tui.base.errors import ToolError
from musepi_tui.tools.approval.programs import tables
from musepi_tui.tools.paths import ResolvedPath, Workspace

_SHELL = r"(?:sudo\s{1,9})?(?:\S{0,99}/)?(?:(?:ba|da|z|k|fi)?sh|python[\d.]{0,9}|perl|ruby|node|php)\b"
_SOME = r"[^\n;]{0,999}"
"""Repetitions are bounded: unbounded ones take quadratic time on a long line."""

_TEXT_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"([\w:.]{1,30})\s{0,9}\(\)\s{0,9}\{[^}]{0,99}\1\s{0,9}\|\s{0,9}\1"),
        "it looks like a fork bomb",
    ),
    (
        re.compile(
            rf"\b(?:curl|wget|fetch)\b{_SOME}\|\s{{0,9}}{_SHELL}"
            rf"|\b{_SHELL}{_SOME}[<$]\(\s{{0,9}}(?:curl|wget)\b"
        ),
        "it runs code straight from the network",
    ),
    (re.compile(rf">\s*/etc/|\btee\b{_SOME}\s/etc/"), "it writes to /etc"),
    (
        re.compile(r">\s*/dev/(?!null\b|zero\b|stdout\b|stderr\b|tty\b|fd/)\w"),
        "it writes to a device",
    ),
    (
        re.compile(
            r">\s*(?:~|\$HOME|\$\{HOME\}|/root|/home/[^/\s]+)/\.(?:bash|zsh|profile|kshrc|config/fish)"
        ),
        "it changes what every new shell runs",
    ),
)

_PATH_LIKE = re.compile(r"[/._~]")
"""A word with none of these names nothing that is guarded: most words need no look at the disk."""

_POWER = frozenset({"shutdown", "reboot", "halt", "poweroff"})
_WIDE_TARGETS = frozenset(
    {"/", "/*", "~", "~/", "~/*", "*", ".", "./", "..", "../", "./*", "$HOME", "${HOME}"}
)


class Places:
    """The paths words may name. Each word is looked up once: a long line repeats most of them."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._known: dict[str, ResolvedPath | None] = {}

    def find(self, word: str) -> ResolvedPath | None:
        """The path behind a word (of an option the value behind ``=``), None when it cannot be one."""
        if word not in self._known:
            self._known[word] = self._resolve(word)
        return self._known[word]

    def _resolve(self, word: str) -> ResolvedPath | None:
        value = word.split("=", 1)[1] if word.startswith("-") and "=" in word else word
        if not value or value.startswith("-"):
            return None
        try:
            return self.workspace.resolve(value)
        except ToolError:
            return None


def danger_of(text: str, commands: Iterable[Sequence[str]], places: Places) -> str | None:
    """Why a command line is dangerous, None when nothing known is in it.

    ``commands`` are all lists of words found in the text, understood or not.
    """
    for pattern, reason in _TEXT_PATTERNS:
        if pattern.search(text):
            return reason
    for words in commands:
        reason = _danger_of_words(PurePosixPath(words[0]).name, words[1:], places)
        if reason is not None:
            return reason
    return None


def _danger_of_words(program: str, arguments: Sequence[str], places: Places) -> str | None:
    match program:
        case "rm":
            reason = _danger_of_rm(arguments, places)
        case "git":
            reason = _danger_of_git(arguments)
        case "dd":
            to_device = any(re.match(r"of=/dev/(?!null\b)", word) for word in arguments)
            reason = "it writes to a device" if to_device else None
        case "chmod":
            opens_all = any(word in ("777", "0777", "a+rwx", "ugo+rwx") for word in arguments)
            reason = "it lets everybody write everywhere" if opens_all and _has_flag(arguments, "R") else None
        case "init":
            reason = "it stops the machine" if arguments[:1] in (("0",), ("6",)) else None
        case _ if program in _POWER:
            reason = "it stops the machine"
        case _ if program == "mkfs" or program.startswith("mkfs."):
            reason = "it formats a disk"
        case _:
            reason = None
    return reason or _danger_of_paths(program, arguments, places)


def _danger_of_rm(arguments: Sequence[str], places: Places) -> str | None:
    """Recursive removal of something wide or outside the project."""
    if not (_has_flag(arguments, "r") or _has_flag(arguments, "R") or "--recursive" in arguments):
        return None
    for word in arguments:
        if word.startswith("-"):
            continue
        if word in _WIDE_TARGETS or word.startswith(("/*", "~/*")):
            return f"it removes everything below {word}"
        resolved = places.find(word)
        if resolved is not None and (not resolved.inside or resolved.path in places.workspace.roots):
            return f"it removes {word}, which is not inside the project"
    return None


def _danger_of_git(arguments: Sequence[str]) -> str | None:
    words = set(arguments)
    if "push" in words:
        forced = any(
            word.startswith("--force") or re.fullmatch(r"-[a-z]*f[a-z]*|\+\S+", word) for word in words
        )
        if forced:
            return "it overwrites history on the server"
    if {"reset", "--hard"} <= words:
        return "it throws away changes that are not committed"
    return None


def _danger_of_paths(program: str, arguments: Sequence[str], places: Places) -> str | None:
    """Credential files anywhere among the words, protected places among those of a program that writes."""
    workspace = places.workspace
    writes = program in tables().writers or (program == "sed" and _has_flag(arguments, "i"))
    for word in arguments:
        resolved = places.find(word) if _PATH_LIKE.search(word) else None
        if resolved is None:
            continue
        secret = workspace.secret_reason(resolved)
        if secret is not None:
            return secret
        if writes and workspace.is_own(resolved):
            return "it changes the program's own files"
        if writes and (protected := workspace.protected_reason(resolved)) is not None:
            return protected
        if writes and resolved.path.is_relative_to("/etc"):
            return "it writes to /etc"
    return None


def _has_flag(arguments: Sequence[str], letter: str) -> bool:
    return any(re.fullmatch(r"-[A-Za-z]+", word) and letter in word for word in arguments)
