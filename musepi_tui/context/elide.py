"""Bounding the kept tail: large tool results make way for a marker (compaction 4.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

from musepi_tui.context.cutpoint import Estimate
from musepi_tui.context.livetail import is_protected, paired_calls
from musepi_tui.context.window import PathItem
from musepi_tui.session.messages import TextBlock, ToolResultMessage, text_of
from musepi_tui.session.rebuild import with_content

SMALL_RESULT_TOKENS = 100
"""Results up to this size stay (compaction 4.3): a marker takes about a third of it."""


@dataclass(frozen=True, slots=True)
class Elision:
    """A tool result that is replaced by a marker. ``text`` is what it said, ``tokens`` its estimate."""

    entry_id: str
    tool: str
    tokens: int
    text: str

    def marker(self, artifact_id: str | None = None) -> str:
        """What stands in its place; with the artifact the text can be read back from."""
        where = "" if artifact_id is None else f"; recover the full output at artifact://{artifact_id}"
        return (
            f'[output elided by compaction: ~{self.tokens} tokens of "{self.tool}" output removed '
            f"to keep the retained tail within budget{where}]"
        )


def plan_elisions(
    items: Sequence[PathItem], kept: Sequence[PathItem], budget_tokens: int, estimate: Estimate
) -> tuple[Elision, ...]:
    """The results to replace until the kept tail is within its budget, largest first.

    Errors, results that were replaced before and skills stay. ``items`` is the whole path: a call may lie
    before the cut.
    """
    excess = sum(estimate(item.message) for item in kept if item.message is not None) - budget_tokens
    if excess <= 0:
        return ()
    protected = _protected_results(items)
    chosen: list[Elision] = []
    for candidate, message in _candidates(kept, protected, estimate):
        marked = with_content(message, (TextBlock(candidate.marker()),), None)
        chosen.append(candidate)
        excess -= candidate.tokens - estimate(marked)
        if excess <= 0:
            break
    return tuple(chosen)


def artifact_text(elisions: Sequence[Elision]) -> str:
    """The one artifact that holds every replaced text."""
    return "".join(
        f"### elision {number} ({item.tool}, ~{item.tokens} tokens, entry {item.entry_id})\n\n{item.text}\n\n"
        for number, item in enumerate(elisions, start=1)
    )


def _candidates(
    kept: Sequence[PathItem], protected: frozenset[str], estimate: Estimate
) -> list[tuple[Elision, ToolResultMessage]]:
    found: list[tuple[Elision, ToolResultMessage]] = []
    for item in kept:
        message = item.message
        if not isinstance(message, ToolResultMessage) or message.is_error or message.pruned_at_ms is not None:
            continue
        tokens = estimate(message)
        if tokens > SMALL_RESULT_TOKENS and item.id not in protected:
            found.append((Elision(item.id, message.tool_name, tokens, text_of(message.content)), message))
    return sorted(found, key=lambda pair: -pair[0].tokens)


def _protected_results(items: Sequence[PathItem]) -> frozenset[str]:
    """Ids of the results that load a skill: the model follows what they say."""
    calls = paired_calls(items)
    return frozenset(
        item.id
        for index, item in enumerate(items)
        if isinstance(item.message, ToolResultMessage) and is_protected(item.message, calls.get(index))
    )
