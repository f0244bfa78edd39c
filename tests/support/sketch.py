"""Conversations as one line: ``sketch("u100 a200 t4000 a300")`` is a path of entries of that many tokens.

Letters: ``u`` user, ``a`` assistant, ``t`` tool result, ``e`` failed tool result, ``x`` command of the
person, ``c`` custom message, ``b`` branch summary, ``d`` developer, ``m`` state entry (no tokens). Tokens are
those of the stub tokenizer. A tool result answers a call of the answer before it.
"""

from collections.abc import Sequence
from itertools import count

from musepi_tui.session.entries import Entry
from musepi_tui.session.messages import BashExecution, ToolCallBlock
from tests.support.builders import Part, a, branch_summary, custom, dev, path, state, t, u, words

CALL_TOKENS = 2
"""A call of ``tool`` without arguments: one token for the name, one for ``{}``."""


def parts(text: str) -> list[Part]:
    """The parts of a sketch, ready for ``path``."""
    numbers = count(1)
    tokens = text.split()
    made: list[Part] = []
    waiting: list[str] = []
    for index, token in enumerate(tokens):
        letter, size = token[0], int(token[1:] or 0)
        if letter == "a":
            results = _following_results(tokens[index + 1 :])
            waiting = [f"k{next(numbers)}" for _ in range(results)]
            calls = [ToolCallBlock(call_id, "tool", {}) for call_id in waiting]
            made.append(a(words(size - CALL_TOKENS * results), calls))
        elif letter in "te":
            call_id = waiting.pop(0) if waiting else f"lost{index}"
            made.append(t(size, call_id, "tool", error=letter == "e"))
        else:
            made.append(_plain(letter, size))
    return made


def sketch(text: str) -> tuple[Entry, ...]:
    """The path a sketch describes; ids ``e1, e2, …``."""
    return path(*parts(text))


def _plain(letter: str, size: int) -> Part:
    match letter:
        case "u":
            return u(words(size))
        case "x":
            return BashExecution(words(size), "")
        case "c":
            return custom(words(size))
        case "b":
            return branch_summary(words(size))
        case "d":
            return dev(words(size))
        case "m":
            return state("model_change", model="test/model")
        case _:
            raise ValueError(letter)


def _following_results(tokens: Sequence[str]) -> int:
    found = 0
    for token in tokens:
        if token[0] not in "te":
            break
        found += 1
    return found
