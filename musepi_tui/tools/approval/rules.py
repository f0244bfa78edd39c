"""Permission rules: ``tool`` or ``tool(pattern)`` (contract 4.1, safety 7.3)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from musepi_tui.tools.paths import ResolvedPath, Workspace
from musepi_tui.tools.walker import matcher

COMMAND_TOOL = "bash"
PATH_TOOLS = frozenset({"read", "write", "edit", "grep", "find", "ls"})

_RULE = re.compile(r"([A-Za-z_][\w.-]*)(?:\((.*)\))?", re.DOTALL)
_NO_PATTERN = re.compile(r"[;&|<>()$`'\"\\{}!#\n\r\t]")
"""Operators, quotes and ``$`` have no place in a pattern of words: they would promise what is not kept."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; ``words`` for commands, ``path`` for tools with a path, neither for a bare tool name.

    ``open_ended``: any further words may follow. ``text`` is the rule as written.
    """

    text: str
    tool: str
    words: tuple[str, ...] = ()
    open_ended: bool = False
    path: str | None = None

    @property
    def is_bare(self) -> bool:
        """Whether it stands for every call of the tool."""
        return not self.words and not self.open_ended and self.path is None

    @property
    def literal_words(self) -> int:
        """How many words from the first on are literal, without ``*``."""
        return next((index for index, word in enumerate(self.words) if "*" in word), len(self.words))

    @property
    def is_exact(self) -> bool:
        """Whether the rule covers exactly one list of words."""
        return not self.open_ended and self.literal_words == len(self.words)


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """A rule that cannot be used, and why; for a notice."""

    text: str
    reason: str


@lru_cache(maxsize=512)
def parse_rule(text: str) -> Rule | RuleProblem:
    """One rule of a settings list."""
    match = _RULE.fullmatch(text.strip())
    if match is None:
        return RuleProblem(text, "a rule is a tool name, or a tool name with a pattern in brackets")
    tool, pattern = match[1], match[2]
    if pattern is None or pattern.strip() == "":
        return Rule(text, tool)
    if tool == COMMAND_TOOL:
        return _command_rule(text, pattern)
    if tool in PATH_TOOLS:
        return Rule(text, tool, path=pattern.strip())
    return RuleProblem(text, f"rules for {tool} take no pattern, or there is no such tool")


def parse_rules(texts: Sequence[str]) -> tuple[Rule, ...]:
    """The usable rules of a list. A text may hold several, joined as ``join_rules`` does."""
    parts = [part for text in texts for part in re.split(r"(?<=\)), ", text)]
    return tuple(rule for part in parts if isinstance(rule := parse_rule(part), Rule))


def join_rules(rules: Sequence[str]) -> str:
    """Several rules as one text, shown in the dialog and kept as one grant."""
    return ", ".join(rules)


def rule_problems(texts: Sequence[str]) -> tuple[RuleProblem, ...]:
    """The rules of a list that cannot be used."""
    parsed = (parse_rule(part) for text in texts for part in re.split(r"(?<=\)), ", text))
    return tuple(rule for rule in parsed if isinstance(rule, RuleProblem))


def covers_words(rule: Rule, words: Sequence[str]) -> bool:
    """Whether a command rule covers these words: compared one by one, with case."""
    if rule.is_bare:
        return True
    if len(words) < len(rule.words) or (len(words) > len(rule.words) and not rule.open_ended):
        return False
    return all(_word_matches(pattern, word) for pattern, word in zip(rule.words, words, strict=False))


def covers_path(rule: Rule, resolved: ResolvedPath, workspace: Workspace, *, eager: bool = False) -> bool:
    """Whether a path rule covers a path: by its place below a root, or as a whole for absolute patterns.

    ``eager`` is for rules that forbid: a name without a slash then stands for that name in every folder.
    """
    if rule.path is None:
        return True
    pattern = rule.path
    if pattern.startswith("~/"):
        pattern = f"{workspace.home}{pattern[1:]}"
    if pattern.startswith("/"):
        return matcher(pattern)(str(resolved.path).lstrip("/"))
    return resolved.relative is not None and matcher(pattern, anywhere=eager)(resolved.relative)


def exact_command_rule(words: Sequence[str]) -> str | None:
    """The rule that covers exactly these words, None when no rule can say that."""
    for word in words:
        if not word or _NO_PATTERN.search(word) or "*" in word or " " in word:
            return None
    return f"{COMMAND_TOOL}({' '.join(words)})"


def exact_path_rule(tool: str, resolved: ResolvedPath, workspace: Workspace) -> str | None:
    """The rule that covers exactly this path, None when the name has characters of patterns."""
    is_clear = resolved.relative is not None and len(workspace.roots) == 1
    path = resolved.relative if is_clear and resolved.relative else str(resolved.path)
    if any(char in path for char in "*?[]{}(),\n") or not path.strip() or path != path.strip():
        return None
    return f"{tool}({path})"


def _command_rule(text: str, pattern: str) -> Rule | RuleProblem:
    odd = _NO_PATTERN.search(pattern)
    if odd is not None:
        return RuleProblem(text, f"{odd[0]!r} cannot stand in a rule: patterns are plain words")
    words = tuple(pattern.split())
    open_ended = words[-1] == "*"
    return Rule(text, COMMAND_TOOL, words[:-1] if open_ended else words, open_ended)


def _word_matches(pattern: str, word: str) -> bool:
    """``*`` stands for any characters; everything else for itself."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == word
    if not word.startswith(first) or not word.endswith(rest[-1]):
        return False
    at, end = len(first), len(word) - len(rest[-1])
    for part in rest[:-1]:
        found = word.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end
