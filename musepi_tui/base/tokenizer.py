"""Counting tokens: exactly with the shipped ranks of o200k_base, or by two estimates (compaction 3.2)."""

import base64
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from musepi_tui.base.types import Tokenizer

if TYPE_CHECKING:
    import tiktoken

PIECE_BYTES = 65_536
"""Longest text handed to tiktoken at once. Around 1,000,000 blanks in a row it panics, and its time on long
runs of one kind of character grows faster than their length."""

MAX_BLANKS = 4_096
"""Blanks in a row that are counted one by one; the rest of a run is estimated (same reason)."""

BLANKS_PER_TOKEN = 64
"""What a token of a long run covers, for the estimated rest: 128 spaces, but only 16 tabs or line breaks."""

_LONG_BLANKS = re.compile(rf"(?<!\s)\s{{{MAX_BLANKS + 1},}}")

_O200K_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
_CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
    r"|\s*[\r\n]|\s+(?!\S)|\s"
)
_O200K_SPECIAL = {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}
_CL100K_SPECIAL = {"<|endoftext|>": 100_257, "<|endofprompt|>": 100_276}


@dataclass(frozen=True, slots=True)
class LoadedTokenizer:
    """A way to count. ``name`` is ``o200k``, ``cl100k``, ``bytes4`` or ``chars4``.

    ``warning`` is a line for the person when it is not what was asked for.
    """

    name: str
    count: Tokenizer
    warning: str | None = None


def byte_estimate(text: str) -> int:
    """A quarter of the UTF-8 bytes, rounded up: for the gauge while no ranks are loaded."""
    length = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return (length + 3) // 4


def chars4(text: str) -> int:
    """A quarter of the characters, rounded up: reproducible, but 55 % too low on Chinese."""
    return (len(text) + 3) // 4


def load_tokenizer(estimator: str, user_ranks: Path | None = None) -> LoadedTokenizer:
    """The tokenizer of the setting ``tokens.estimator``: ``auto``, ``o200k``, ``cl100k`` or ``chars4``.

    Blocks for about 0.2 s: call it in a thread. ``user_ranks`` is the person's own ``cl100k_base.tiktoken``;
    nothing is ever fetched. Never raises: what cannot be honoured is told in ``warning``.
    """
    match estimator:
        case "chars4":
            return LoadedTokenizer("chars4", chars4)
        case "auto" | "o200k":
            return _load_o200k(None)
        case "cl100k":
            return _load_cl100k(user_ranks)
        case _:
            return _load_o200k(
                f'tokens.estimator "{estimator}" is unknown (auto, o200k, cl100k, chars4); o200k counts.'
            )


def read_ranks() -> dict[bytes, int]:
    """The shipped ranks of o200k_base: token bytes to rank."""
    data = zlib.decompress((files("musepi_tui.base") / "o200k_base.ranks").read_bytes())
    ranks: dict[bytes, int] = {}
    position = rank = 0
    while position < len(data):
        end = position + 1 + data[position]
        ranks[data[position + 1 : end]] = rank
        rank += 1
        position = end
    return ranks


def _load_o200k(warning: str | None) -> LoadedTokenizer:
    try:
        import tiktoken  # takes 12 ms and 84 MB with the ranks: only when something is counted
    except ImportError:
        missing = "tiktoken is not installed; tokens are estimated from bytes."
        return LoadedTokenizer("bytes4", byte_estimate, warning or missing)
    encoding = tiktoken.Encoding(
        name="o200k_base", pat_str=_O200K_PATTERN, mergeable_ranks=read_ranks(), special_tokens=_O200K_SPECIAL
    )
    return LoadedTokenizer("o200k", _counter(encoding), warning)


def _load_cl100k(user_ranks: Path | None) -> LoadedTokenizer:
    if user_ranks is None:
        return _load_o200k(
            "tokens.estimator cl100k needs your own cl100k_base.tiktoken; tokens are counted by o200k."
        )
    try:
        import tiktoken  # see _load_o200k

        ranks = _parse_ranks(user_ranks.read_bytes())
        encoding = tiktoken.Encoding(
            name="cl100k_base", pat_str=_CL100K_PATTERN, mergeable_ranks=ranks, special_tokens=_CL100K_SPECIAL
        )
    except (ImportError, OSError, ValueError) as error:
        return _load_o200k(
            f"tokens.estimator cl100k: {user_ranks} cannot be used ({error}); o200k counts instead."
        )
    return LoadedTokenizer("cl100k", _counter(encoding))


def _parse_ranks(text: bytes) -> dict[bytes, int]:
    pairs = (line.split() for line in text.splitlines() if line)
    return {base64.b64decode(token, validate=True): int(rank) for token, rank in pairs}


def _counter(encoding: "tiktoken.Encoding") -> Tokenizer:
    encode: Callable[[str], list[int]] = encoding.encode_ordinary

    def count(text: str) -> int:
        kept, dropped_chars = _shorten_blanks(text)
        return -(-dropped_chars // BLANKS_PER_TOKEN) + sum(
            _count_piece(encode, piece) for piece in _pieces(kept)
        )

    return count


def _count_piece(encode: Callable[[str], list[int]], piece: str) -> int:
    try:
        return len(encode(piece))
    except BaseException as error:
        # A panic of the Rust side derives from BaseException and has no importable class.
        if type(error).__name__ != "PanicException":
            raise
        return byte_estimate(piece)


def _shorten_blanks(text: str) -> tuple[str, int]:
    """The text with long runs of blanks cut, and how many characters were cut out."""
    if len(text) <= MAX_BLANKS:
        return text, 0
    kept = _LONG_BLANKS.sub(lambda match: match[0][:MAX_BLANKS], text)
    return kept, len(text) - len(kept)


def _pieces(text: str) -> tuple[str, ...]:
    """The text in pieces of at most ``PIECE_BYTES``, cut behind a line break where the last half has one."""
    limit_chars = PIECE_BYTES if text.isascii() else PIECE_BYTES // 4
    pieces: list[str] = []
    start = 0
    while len(text) - start > limit_chars:
        end = text.rfind("\n", start + limit_chars // 2, start + limit_chars) + 1
        end = end or start + limit_chars
        pieces.append(text[start:end])
        start = end
    pieces.append(text[start:])
    return tuple(pieces)
