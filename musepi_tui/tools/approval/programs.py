"""Judges programs that start other programs, write, or evaluate their arguments (safety 7.4).

An allow rule is a promise about words. For the programs of ``programs.toml`` the words do not tell what
happens, so a rule covers them only as far as its literal words go.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from musepi_tui.tools.approval.grammar import SimpleCommand
from musepi_tui.tools.approval.rules import Rule


@dataclass(frozen=True, slots=True)
class ProgramTables:
    """The tables of ``programs.toml``; what each means stands there."""

    starters: frozenset[str]
    interpreters: re.Pattern[str]
    network: frozenset[str]
    writers: frozenset[str]
    evaluating: frozenset[str]
    git_subcommands: frozenset[str]
    long_options: Mapping[str, tuple[str, ...]]
    short_options: Mapping[str, str]


@cache
def tables() -> ProgramTables:
    """The tables, read once."""
    import tomllib  # deferred: only where a command is judged

    data = tomllib.loads((files("musepi_tui.tools.approval") / "programs.toml").read_text(encoding="utf-8"))
    return ProgramTables(
        starters=frozenset(data["starters"].split()),
        interpreters=re.compile(data["interpreters"]),
        network=frozenset(data["network"].split()),
        writers=frozenset(data["writers"].split()),
        evaluating=frozenset(data["evaluating"].split()),
        git_subcommands=frozenset(data["git_subcommands"].split()),
        long_options={program: tuple(options.split()) for program, options in data["long_options"].items()},
        short_options=data["short_options"],
    )


_FIND_ACTIONS = re.compile(r"-(?:exec|execdir|ok|okdir|delete|fls|fprint\w*)")
_SED_SCRIPT = re.compile(
    r"(?:(?:\d+|\$|/[^/\\\n]*/)(?:,(?:\d+|\$|/[^/\\\n]*/))?)?[pdq=]"
    r"|(?:(?:\d+|\$|/[^/\\\n]*/)(?:,(?:\d+|\$|/[^/\\\n]*/))?)?s/[^/\\\n]*/[^/\\\n]*/[gpI0-9]*"
)
_TAR_LISTING = re.compile(r"-?t[vfzjJ]*|-?[vzjJ]*t[vfzjJ]*")
_CODE_OPTIONS = frozenset({"-c", "-m", "-e"})


def is_listed(program: str) -> bool:
    """Whether the program stands in one of the tables."""
    known = tables()
    return (
        program in known.starters | known.network | known.writers | known.evaluating
        or program in known.long_options
        or program in ("find", "uniq", "tar")
        or known.interpreters.fullmatch(program) is not None
    )


def starts_programs(words: Sequence[str]) -> bool:
    """Whether the program is a wrapper or an interpreter."""
    return words[0] in tables().starters or tables().interpreters.fullmatch(words[0]) is not None


def hazard(command: SimpleCommand) -> str | None:
    """Why no rule with a wildcard can promise what this command does, None when it can."""
    words = command.texts
    program, arguments = words[0], words[1:]
    if is_listed(program):
        for word in command.words[1:]:
            if word.text == "--":
                break
            if word.starts_with_glob:
                return f"{program} may take the file names behind {word.text} for options"
    if program in tables().starters:
        return f"{program} starts another program"
    if tables().interpreters.fullmatch(program):
        return f"{program} runs code"
    if program in tables().network:
        return f"{program} uses the network"
    return _option_hazard(program, arguments)


def covers_program(rule: Rule, command: SimpleCommand) -> bool:
    """Whether a rule that covers the words reaches what the program does with them."""
    if rule.is_bare:
        return True
    words = command.texts
    if tables().interpreters.fullmatch(words[0]):
        return rule.literal_words > _code_index(words)
    if words[0] in ("docker", "podman", "kubectl") and not rule.is_exact:
        reaches = words[1:2] == ("exec",) and not any(word.startswith("-") for word in words[2:4])
        return reaches and rule.literal_words >= 4
    if hazard(command) is not None:
        return rule.is_exact and len(words) > 1 and not any(word.has_glob for word in command.words)
    return True


def inner_words(words: Sequence[str]) -> tuple[str, ...] | None:
    """The command a simple wrapper starts, None when its arguments are not plain enough to be sure."""
    program, rest = words[0], list(words[1:])
    match program:
        case "timeout":
            is_plain = len(rest) > 1 and re.fullmatch(r"\d+(?:\.\d+)?[smhd]?", rest[0])
            rest = rest[1:] if is_plain else []
        case "nice":
            rest = rest[2:] if rest[:1] == ["-n"] and re.fullmatch(r"-?\d+", " ".join(rest[1:2])) else rest
        case "stdbuf":
            while rest and re.fullmatch(r"-[ioe][L0]", rest[0]):
                rest = rest[1:]
        case "command" | "nohup" | "setsid" | "time" | "env" | "ionice":
            pass
        case _:
            return None
    if not rest or rest[0].startswith("-") or any(char in rest[0] for char in "=/~*?["):
        return None
    return tuple(rest)


def _code_index(words: Sequence[str]) -> int:
    """Where an interpreter's script or code stands; behind the last word when that is not plain."""
    if len(words) > 1 and not words[1].startswith("-"):
        return 1
    if len(words) > 2 and words[1] in _CODE_OPTIONS:
        return 2
    return len(words)


def _option_hazard(program: str, arguments: Sequence[str]) -> str | None:
    match program:
        case "find":
            odd = next((word for word in arguments if _FIND_ACTIONS.fullmatch(word)), None)
        case "git":
            odd = _git_hazard(arguments)
        case "uniq":
            odd = (
                "a second file" if len([word for word in arguments if not word.startswith("-")]) > 1 else None
            )
        case "tar":
            odd = _tar_hazard(arguments)
        case "sed":
            odd = _long_or_short(program, arguments) or _sed_hazard(arguments)
        case _ if program in tables().evaluating:
            odd = _builtin_hazard(program, arguments)
        case _:
            odd = _long_or_short(program, arguments)
    return None if odd is None else f"{program} with {odd} may run or write something"


def _long_or_short(program: str, arguments: Sequence[str]) -> str | None:
    """The first dangerous option: also abbreviated, bundled or joined with its value."""
    for word in arguments:
        if word == "--":
            return None
        if word.startswith("--"):
            name = word.split("=", 1)[0]
            for option in tables().long_options.get(program, ()):
                if option.startswith(name) or name.startswith(option):
                    return word
        elif word.startswith("-") and set(word[1:]) & set(tables().short_options.get(program, "")):
            return word
    return None


def _git_hazard(arguments: Sequence[str]) -> str | None:
    if not arguments:
        return None
    if arguments[0].startswith("-"):
        return f"{arguments[0]} before the subcommand"
    if arguments[0] not in tables().git_subcommands:
        return f"the unknown subcommand {arguments[0]}"
    url = next((word for word in arguments if word.startswith(("ext::", "fd::"))), None)
    return url or _long_or_short("git", arguments[1:])


def _tar_hazard(arguments: Sequence[str]) -> str | None:
    if not arguments or not _TAR_LISTING.fullmatch(arguments[0]):
        return "anything but -t"
    return next((word for word in arguments[1:] if word.startswith("-")), None)


def _sed_hazard(arguments: Sequence[str]) -> str | None:
    scripts: list[str] = []
    expects_script = False
    for word in arguments:
        if expects_script:
            scripts.append(word)
            expects_script = False
        elif word in ("-e", "-ne", "-Ee", "-re"):
            expects_script = True
        elif word.startswith("-") and word not in ("-n", "-E", "-r", "-u", "-z"):
            return word
        elif not word.startswith("-") and not scripts:
            scripts.append(word)
    return next((script for script in scripts if not _SED_SCRIPT.fullmatch(script)), None)


def _builtin_hazard(program: str, arguments: Sequence[str]) -> str | None:
    for word in arguments:
        if word.startswith("-v") and program in ("printf", "test", "["):
            return "-v"
        if "[" in word and program not in ("printf", "["):
            return "a subscript"
    if program in ("printf", "test", "["):
        return None
    return "variables" if any("=" in word for word in arguments) or program in ("read", "mapfile") else None
