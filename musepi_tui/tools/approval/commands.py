"""What the rules say about one ``bash`` call (safety 7.2 to 7.4)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, cast

from musepi_tui.base.errors import ToolError
from musepi_tui.tools.approval.dangerous import Places, danger_of
from musepi_tui.tools.approval.grammar import (
    NotUnderstoodError,
    SimpleCommand,
    read_command,
    split_tolerantly,
)
from musepi_tui.tools.approval.programs import covers_program, hazard, inner_words, starts_programs
from musepi_tui.tools.approval.rules import Rule, covers_words, exact_command_rule, join_rules
from musepi_tui.tools.git_config import key_that_runs_programs
from musepi_tui.tools.paths import Workspace

_HARMLESS_VARIABLES = re.compile(r"LC_\w+|LANG|TZ|NO_COLOR|FORCE_COLOR|CI")
_MAX_GRANTED_PARTS = 5
_SEEN_WORDS = 32
"""Words looked at behind each word of a wrapper; more than any rule has, and few enough for a long line."""

_SOMETIMES_STARTING = frozenset({"find", "fd", "git", "rg", "sort", "tar"})
"""Programs with an option that starts another one: rules that forbid look behind them, too."""


@dataclass(frozen=True)
class CommandCall:
    """The call, read once. ``parts`` is empty when the text is not understood; ``problem`` says why."""

    text: str
    cwd: str | None
    env: Mapping[str, Any]
    workspace: Workspace
    parts: tuple[SimpleCommand, ...]
    problem: str | None

    @classmethod
    def read(cls, arguments: Mapping[str, Any], workspace: Workspace) -> "CommandCall":
        """From the arguments of a call; anything that is no text is not understood."""
        text, cwd, env = (arguments.get(name) for name in ("command", "cwd", "env"))
        variables: Mapping[str, Any] = cast("Mapping[str, Any]", env) if isinstance(env, Mapping) else {}
        folder = cwd if isinstance(cwd, str) else None
        try:
            if not isinstance(text, str):
                raise NotUnderstoodError("it is no text")
            parts, problem = read_command(text), None
        except NotUnderstoodError as error:
            parts, problem = (), str(error)
        return cls(str(text), folder, variables, workspace, parts, problem)

    @cached_property
    def all_words(self) -> tuple[tuple[str, ...], ...]:
        """Every list of words that might be run, also behind wrappers and inside quoted texts."""
        found = dict.fromkeys([*(part.texts for part in self.parts), *split_tolerantly(self.text)])
        for words in list(found):
            program = PurePosixPath(words[0]).name
            if program in _SOMETIMES_STARTING or starts_programs((program, *words[1:])):
                found.update(dict.fromkeys(words[at : at + _SEEN_WORDS] for at in range(1, len(words))))
        return tuple(words for words in found if words and words[0])

    @cached_property
    def danger(self) -> str | None:
        """Why it is dangerous."""
        return danger_of(self.text, self.all_words, self.places)

    @cached_property
    def places(self) -> Places:
        """The paths its words name."""
        return Places(self.workspace)

    def first_rule_for(self, rules: Sequence[Rule]) -> Rule | None:
        """The first rule that stands for any command found anywhere, by name or base name of the program."""
        for rule in rules:
            for words in self.all_words:
                by_name = (PurePosixPath(words[0]).name, *words[1:])
                if covers_words(rule, words) or covers_words(rule, by_name):
                    return rule
        return None

    @property
    def hides_programs(self) -> str | None:
        """Why some program of the line is not known, so that a rule that forbids might be dodged."""
        if self.problem is not None:
            return self.problem
        odd = next((part.words[0].text for part in self.parts if part.words[0].has_glob), None)
        return None if odd is None else f"{odd} may stand for any program"

    def surroundings_problem(self) -> str | None:
        """Why no rule for single commands applies: the folder or the variables of the call."""
        odd = next((name for name in self.env if not _HARMLESS_VARIABLES.fullmatch(str(name))), None)
        if odd is not None:
            return f"it sets the variable {odd}"
        if self.cwd is not None:
            try:
                if not self.workspace.resolve(self.cwd).inside:
                    return f"it runs in {self.cwd}, outside the project"
            except ToolError as error:
                return str(error)
        return None

    def uncovered(self, rules: Sequence[Rule]) -> tuple[tuple[SimpleCommand, str], ...]:
        """The parts no rule covers, each with the reason. To be asked only of an understood command."""
        found: list[tuple[SimpleCommand, str]] = []
        for part in self.parts:
            reason = self._uncovered_reason(part, rules)
            if reason is not None:
                found.append((part, reason))
        return tuple(found)

    def grant(self, uncovered: Sequence[tuple[SimpleCommand, str]]) -> str | None:
        """The narrowest rules for the parts that asked, None where none may be offered (SAF-62)."""
        if not uncovered or len(uncovered) > _MAX_GRANTED_PARTS or self.env or self.danger is not None:
            return None
        rules = [self._grant_for(part) for part, _ in uncovered]
        texts = [rule for rule in rules if rule is not None]
        return join_rules(list(dict.fromkeys(texts))) if len(texts) == len(rules) else None

    def _uncovered_reason(self, part: SimpleCommand, rules: Sequence[Rule]) -> str | None:
        problem = self._never_covered_reason(part)
        if problem is not None:
            return problem
        covering = [rule for rule in rules if covers_words(rule, part.texts)]
        if any(covers_program(rule, part) for rule in covering):
            return None
        inner = inner_words(part.texts)
        if inner is not None:
            below = SimpleCommand([*part.words[len(part.words) - len(inner) :]])
            return self._uncovered_reason(below, rules)
        why = hazard(part) if covering else None
        return why or f"no rule covers: {' '.join(part.texts)}"

    def _never_covered_reason(self, part: SimpleCommand) -> str | None:
        """Why no rule for single commands can cover a part, whatever its words are."""
        if not part.names_plain_program:
            return f"{part.words[0].text} is not the plain name of a program"
        for path in part.inputs:
            resolved = self.places.find(path)
            if resolved is None or not resolved.inside or self.workspace.secret_reason(resolved):
                return f"it reads {path}"
        return self._git_problem() if part.texts[0] == "git" else None

    def _git_problem(self) -> str | None:
        """Git obeys the configuration it finds where it runs."""
        if any(part.texts[0] in ("cd", "pushd", "popd") for part in self.parts):
            return "git runs in a folder chosen on the same line"
        folder = self.workspace.cwd if self.cwd is None else self.workspace.resolve(self.cwd).path
        key = key_that_runs_programs(folder)
        return None if key is None else f"the git configuration of the project runs programs ({key})"

    def _grant_for(self, part: SimpleCommand) -> str | None:
        words = part.texts
        is_open = part.names_plain_program and not any(word.has_glob for word in part.words)
        if not is_open or part.inputs or words[0] == "git" or hazard(part) is not None:
            return None
        return exact_command_rule(words)
