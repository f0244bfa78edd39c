"""The small language of commands that are understood (safety 7.2); everything else is not, and asks.

No guessing: the whole text must match, from the first character to the last. ``split_tolerantly`` is the
opposite: it finds whatever might be a command in any text, for rules that forbid.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_COMMANDS = 200
MAX_CHARS = 65_536

_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./^~-")
_GLOB = frozenset("*?[]")
_BLANK = frozenset(" \t")
_RESERVED = frozenset(
    {
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "select",
        "function",
        "time",
        "coproc",
        "in",
        "[[",
        "]]",
    }
)
_TILDE_ALLOWED = re.compile(r"[^~]*|~|~/[^~]*")
"""Tildes: only one's own home, at the start. ``~user`` and ``a=~`` mean other folders."""

_REDIRECTION = re.compile(r"(?:&>|[12]?>)[ \t]*/dev/null(?=[ \t;|&\n]|$)|(?:2>&1|1?>&2)(?=[ \t;|&\n]|$)")
_SEPARATOR = re.compile(r"&&|\|\||[;|\n]")


class NotUnderstoodError(ValueError):
    """The text is outside the language; says where."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word as bash sees it, quotes removed. ``has_glob``: bash may replace it by file names."""

    text: str
    has_glob: bool = False
    starts_with_glob: bool = False
    quoted: bool = False


@dataclass(slots=True)
class SimpleCommand:
    """A program and its arguments. ``inputs`` are the files behind ``<``, ``separator`` stood before it."""

    words: list[Word] = field(default_factory=list[Word])
    inputs: list[str] = field(default_factory=list[str])
    separator: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The words' texts."""
        return tuple(word.text for word in self.words)

    @property
    def names_plain_program(self) -> bool:
        """Whether the first word is nothing but the name of a program looked up on PATH."""
        first = self.words[0]
        return not (first.quoted or first.has_glob or any(char in first.text for char in "/=~"))


def read_command(text: str) -> tuple[SimpleCommand, ...]:
    """The simple commands of a line in order. Raises ``NotUnderstoodError``."""
    if len(text) > MAX_CHARS:
        raise NotUnderstoodError("it is longer than 64 KiB")
    commands = _Reader(text.strip(" \t\n")).read()
    if len(commands) > MAX_COMMANDS:
        raise NotUnderstoodError(f"it has more than {MAX_COMMANDS} commands")
    return commands


class _Reader:
    """Reads the text once, left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self) -> tuple[SimpleCommand, ...]:
        commands = [self._simple("")]
        while self._at < len(self._text):
            separator = _SEPARATOR.match(self._text, self._at)
            if separator is None:
                raise self._odd()
            self._at = separator.end()
            self._skip_blanks()
            if self._at == len(self._text) and separator[0] == ";":
                break
            commands.append(self._simple(separator[0]))
        return tuple(commands)

    def _simple(self, separator: str) -> SimpleCommand:
        command = SimpleCommand(separator=separator)
        while True:
            self._skip_blanks()
            char = self._peek()
            if char in ("", ";", "|", "\n") or self._text.startswith("&&", self._at):
                break
            if command.words and self._redirection(command):
                continue
            command.words.append(self._word())
        if not command.words:
            raise NotUnderstoodError("a command is missing")
        first = command.words[0]
        if first.text in _RESERVED and not first.quoted:
            raise NotUnderstoodError(f"{first.text} is a word of the shell's own language")
        if first.has_glob and first.text[1:].find("[") >= 0:
            raise NotUnderstoodError(f"{first.text} may begin an assignment")
        return command

    def _redirection(self, command: SimpleCommand) -> bool:
        match = _REDIRECTION.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
            return True
        if self._peek() != "<":
            return False
        self._at += 1
        if self._peek() in ("<", "(", "&", ">"):
            raise self._odd()
        self._skip_blanks()
        word = self._word()
        if word.has_glob:
            raise NotUnderstoodError("an input file is a pattern")
        command.inputs.append(word.text)
        return True

    def _word(self) -> Word:
        start = self._at
        parts: list[str] = []
        globs = quoted = starts_with_glob = False
        while (char := self._peek()) not in ("", " ", "\t", "\n", ";", "|", "&"):
            if char == "'" or char == '"':
                quoted = True
                parts.append(self._single() if char == "'" else self._double())
                continue
            if char not in _BARE and char not in _GLOB:
                raise self._odd()
            if char in _GLOB:
                globs = True
                starts_with_glob = starts_with_glob or self._at == start
            parts.append(char)
            self._at += 1
        bare = self._text[start : self._at]
        if self._at == start:
            raise self._odd()
        if not quoted and not _TILDE_ALLOWED.fullmatch(bare):
            raise NotUnderstoodError("a ~ stands where it may mean another folder")
        if quoted and "~" in re.sub(r"'[^']*'|\"[^\"]*\"", "", bare):
            raise NotUnderstoodError("a ~ stands next to a quote")
        return Word("".join(parts), globs, starts_with_glob, quoted)

    def _single(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise NotUnderstoodError("a quote is not closed")
        part = self._text[self._at + 1 : end]
        self._at = end + 1
        return self._quoted_text(part)

    def _double(self) -> str:
        self._at += 1
        parts: list[str] = []
        while (char := self._peek()) != '"':
            if char == "":
                raise NotUnderstoodError("a quote is not closed")
            if char == "\\" and self._text[self._at + 1 : self._at + 2] in ('"', "\\"):
                self._at += 1
                char = self._peek()
            elif char in "$`\\!":
                raise self._odd()
            parts.append(char)
            self._at += 1
        self._at += 1
        return self._quoted_text("".join(parts))

    def _quoted_text(self, text: str) -> str:
        if any(char < " " and char not in "\n\t" or char == "\x7f" for char in text):
            raise NotUnderstoodError("it has a control character")
        return text

    def _skip_blanks(self) -> None:
        while self._peek() in _BLANK:
            self._at += 1

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _odd(self) -> NotUnderstoodError:
        rest = self._text[self._at : self._at + 12]
        return NotUnderstoodError(f"{rest!r} is not understood" if rest else "it ends too early")


_PIECES = re.compile(r"&&|\|\||\$\(|[<>]\(|[;|&\n`(){}]")
_WORDS = re.compile(r"(?:[^\s'\"]|'[^']*'?|\"(?:[^\"\\]|\\.)*\"?)+")
_QUOTED = re.compile(r"""'(?P<single>[^']*)'?|"(?P<double>(?:[^"\\]|\\.)*)"?|\\(?P<plain>.?)""", re.DOTALL)
_NESTING = 3


def split_tolerantly(text: str, nesting: int = _NESTING) -> Iterator[tuple[str, ...]]:
    """Every list of words in the text that might be run as a command, quotes and backslashes taken away.

    Splits at anything that could separate commands, also inside quotes, and reads words that look like
    commands again. Finds too much rather than too little.
    """
    for piece in {text, *_split_outside_quotes(text), *_PIECES.split(text)}:
        words = tuple(_bare(word) for word in _WORDS.findall(piece))
        words = tuple(word for word in words if word)
        if not words:
            continue
        yield words
        start = next((index for index, word in enumerate(words) if not _is_prefix(word)), 0)
        if start:
            yield words[start:]
        if nesting:
            for word in words:
                if any(char.isspace() or char in ";|&$`" for char in word):
                    yield from split_tolerantly(word, nesting - 1)


def _split_outside_quotes(text: str) -> list[str]:
    pieces: list[str] = []
    current: list[str] = []
    for token in re.findall(r"'[^']*'?|\"(?:[^\"\\]|\\.)*\"?|\\.|&&|\|\||[;|&\n]|.", text, re.DOTALL):
        if token in ("&&", "||", ";", "|", "&", "\n"):
            pieces.append("".join(current))
            current = []
        else:
            current.append(token)
    return [*pieces, "".join(current)]


def _bare(word: str) -> str:
    """The word with one layer of quotes and backslashes taken away."""
    return _QUOTED.sub(
        lambda match: _unescaped(match["double"]) or match["single"] or match["plain"] or "", word
    )


def _unescaped(text: str | None) -> str | None:
    return None if text is None else re.sub(r'\\(["\\$`])', r"\1", text)


def _is_prefix(word: str) -> bool:
    """Words that may stand before the program: assignments, redirections, reserved words, a negation."""
    return bool(re.match(r"[A-Za-z_]\w*\+?=|\d*[<>]|!$", word)) or word in _RESERVED or word in ("{", "[[")
