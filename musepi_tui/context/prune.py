"""Results that are not needed any more are blanked: stale ones after every turn, old ones near the threshold.

The rules are those of compaction 5.1 to 5.4. Nothing here changes a message; the answer is what to change.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from musepi_tui.context.cutpoint import Estimate
from musepi_tui.context.edits import NO_EDITS, Edit, EditReason, Edits, SavingEdit, collect_edits
from musepi_tui.context.livetail import LiveTail, stored_size
from musepi_tui.context.selectors import base_of_key, supersede_key
from musepi_tui.session.messages import ToolResultMessage
from musepi_tui.session.rebuild import with_content

SUPERSEDED_NOTICE = "[Superseded by a newer read of this file]"
USELESS_NOTICE = "[Uneventful result elided]"

WARM_SUFFIX_TOKENS = 8_000
"""A change makes the provider's cache of everything behind it void (compaction 5.3). Up to this much behind
it, that costs less than the result itself over the next requests."""

COLD_AFTER_MS = 90 * 60_000
"""A conversation that rested so long has no cache left to spare (compaction 5.3)."""

PROTECTED_TOKENS = 40_000
"""The newest results the threshold prune leaves alone (compaction 5.4): what the model works with."""

MINIMUM_SAVING_TOKENS = 20_000
"""Below this the threshold prune does nothing (compaction 5.4): the lost cache would cost more."""

SMALL_RESULT_TOKENS = 50
"""Results below this stay (compaction 5.4): the placeholder takes a good part of it."""


@dataclass(frozen=True, slots=True)
class PruneOptions:
    """What pruning may do. ``warm_suffix_tokens`` None switches the warm-cache guard off.

    ``now_ms`` is compared with the time of the newest message; None never takes the cache for cold.
    """

    supersede_reads: bool = True
    drop_useless: bool = True
    warm_suffix_tokens: int | None = WARM_SUFFIX_TOKENS
    now_ms: int | None = None


def stale_edits(tail: LiveTail, estimate: Estimate, options: PruneOptions) -> Edits:
    """Superseded reads and useless results, as far as blanking them spares more than the cache it costs."""
    if not options.supersede_reads and not options.drop_useless:
        return NO_EDITS
    return collect_edits(tail.items, _stale_results(tail, estimate, options))


def threshold_edits(tail: LiveTail, estimate: Estimate, options: PruneOptions) -> Edits:
    """Results beyond the newest 40,000 tokens of them, where that frees 20,000 tokens in all."""
    edits = collect_edits(tail.items, _old_results(tail, estimate, options))
    return edits if edits.tokens_saved >= MINIMUM_SAVING_TOKENS else NO_EDITS


def is_cache_cold(tail: LiveTail, now_ms: int | None) -> bool:
    """Whether the conversation rested so long that no provider has it in its cache any more."""
    newest = next((item.message for item in reversed(tail.items) if item.message is not None), None)
    if now_ms is None or newest is None or not newest.timestamp_ms:
        return False
    return now_ms - newest.timestamp_ms >= COLD_AFTER_MS


def truncated_notice(tokens: int) -> str:
    """What stands for an old result of that size."""
    return f"[Output truncated - {tokens} tokens]"


def saved_tokens(tokens: int, notice: str) -> int:
    """What putting the notice in the place of that many tokens frees; never below 0."""
    return max(0, tokens - -(-len(notice) // 4))


@dataclass(frozen=True, slots=True)
class _Result:
    """A tool result of the tail, the tokens of what follows it, and why it is stale; None when it is not."""

    index: int
    message: ToolResultMessage
    behind: int
    stale: EditReason | None


def _results(tail: LiveTail, estimate: Estimate, options: PruneOptions) -> Iterator[_Result]:
    """The results, newest first. Worked out one by one: in most turns only the newest few are looked at."""
    seen: set[str] = set()
    behind = 0
    for index in reversed(tail.live):
        message = tail.result_at(index)
        if message is not None:
            yield _Result(index, message, behind, _find_reason(tail, index, seen, estimate, options))
        behind += stored_size(tail.items[index], estimate)


def _find_reason(
    tail: LiveTail, index: int, seen: set[str], estimate: Estimate, options: PruneOptions
) -> EditReason | None:
    """Why the result there is stale and worth blanking. One that is both superseded and useless is
    superseded."""
    result = tail.result_at(index)
    if result is None or result.is_error or result.pruned_at_ms is not None or index in tail.protected:
        return None
    reason = _stale_reason(tail, index, seen, options)
    if reason is None or saved_tokens(estimate(result), _notice(reason, 0)) <= 0:
        return None
    return reason


def _stale_reason(tail: LiveTail, index: int, seen: set[str], options: PruneOptions) -> EditReason | None:
    """Why the result is stale; ``seen`` are the keys of newer reads and gets the one of this."""
    call = tail.calls.get(index)
    key = None if call is None else supersede_key(call)
    superseded = key is not None and (key in seen or base_of_key(key) in seen)
    if key is not None:
        seen.add(key)
    if superseded and options.supersede_reads:
        return EditReason.SUPERSEDED
    result = tail.result_at(index)
    return EditReason.USELESS if options.drop_useless and result is not None and result.useless else None


def _stale_results(tail: LiveTail, estimate: Estimate, options: PruneOptions) -> Iterator[SavingEdit]:
    """The stale results to blank. What is blanked already no longer counts as text behind the older ones, so
    that the same pass once more finds nothing."""
    cold = is_cache_cold(tail, options.now_ms)
    gone = 0
    for result in _results(tail, estimate, options):
        if not cold and not _is_near(result.behind - gone, options):
            return  # nor is anything older
        if result.stale is not None:
            gone += _shrinkage(tail, result.index, result.stale, estimate)
            yield _blanked(tail, result.index, result.stale, estimate)


def _old_results(tail: LiveTail, estimate: Estimate, options: PruneOptions) -> Iterator[SavingEdit]:
    covered = gone = 0
    for result in _results(tail, estimate, options):
        if not _is_near(result.behind - gone, options):
            return  # nor is anything older
        tokens = estimate(result.message)
        if result.message.pruned_at_ms is not None:
            covered += tokens
            continue
        if result.stale is None:
            kept = (
                covered < PROTECTED_TOKENS or result.index in tail.protected or tokens < SMALL_RESULT_TOKENS
            )
            covered += tokens
            if kept:
                continue
        reason = result.stale or EditReason.THRESHOLD
        gone += _shrinkage(tail, result.index, reason, estimate)
        yield _blanked(tail, result.index, reason, estimate)


def _is_near(tokens: int, options: PruneOptions) -> bool:
    return options.warm_suffix_tokens is None or tokens <= options.warm_suffix_tokens


def _blanked(tail: LiveTail, index: int, reason: EditReason, estimate: Estimate) -> SavingEdit:
    result = tail.result_at(index)
    tokens = 0 if result is None else estimate(result)
    notice = _notice(reason, tokens)
    return SavingEdit(Edit(tail.items[index].id, notice, reason), saved_tokens(tokens, notice))


def _shrinkage(tail: LiveTail, index: int, reason: EditReason, estimate: Estimate) -> int:
    """By how much the estimate of the result falls, which a count of its notice by characters only nears."""
    result = tail.result_at(index)
    if result is None:
        return 0
    tokens = estimate(result)
    return tokens - estimate(with_content(result, _notice(reason, tokens), 0))


def _notice(reason: EditReason, tokens: int) -> str:
    match reason:
        case EditReason.SUPERSEDED:
            return SUPERSEDED_NOTICE
        case EditReason.USELESS:
            return USELESS_NOTICE
        case _:
            return truncated_notice(tokens)
