"""What a compaction shows to extensions, and what it accepts from them (compaction 6.5, 11)."""

import math

from musepi_tui.base.errors import EmptySummaryError, SummaryRejectedError
from musepi_tui.context.cutpoint import is_valid_cut
from musepi_tui.context.merge import is_degenerate
from musepi_tui.context.prepare import Preparation, messages_of
from musepi_tui.extensions.points import CompactionPreparation, CompactionResult
from musepi_tui.session.entries import KEEP_NOTHING


def public_preparation(preparation: Preparation) -> CompactionPreparation:
    """The part of a preparation that extensions may rely on."""
    files = preparation.file_history.ops | preparation.file_ops
    return CompactionPreparation(
        first_kept_entry_id=preparation.first_kept_entry_id,
        tokens_before=preparation.tokens_before,
        messages=preparation.history_messages,
        turn_prefix=preparation.prefix_messages,
        kept=messages_of(preparation.kept),
        previous_summary=preparation.previous_summary,
        is_split_turn=preparation.is_split_turn,
        read_files=files.read_files,
        modified_files=files.modified_files,
    )


def check_supplied(result: CompactionResult, preparation: Preparation, extension: str | None) -> None:
    """Raises ``MaintenanceError`` for a compaction that cannot be stored; nothing was changed then.

    ``extension`` is the name of the one that gave it.
    """
    ending = "nothing was changed. Try again without the extension."
    if not result.summary.strip():
        raise EmptySummaryError(f"The extension {extension} gave an empty summary; {ending}")
    if is_degenerate(result.summary):
        raise SummaryRejectedError(f"The extension {extension} gave a summary in a loop; {ending}")
    if not math.isfinite(result.tokens_before) or result.tokens_before < 0:
        raise SummaryRejectedError(
            f"The extension {extension} gave tokens_before {result.tokens_before}; "
            "it must be a number from 0 on."
        )
    window = (*preparation.history, *preparation.prefix, *preparation.kept)
    cut_points = {item.id for item in window if is_valid_cut(item)}
    allowed = {preparation.first_kept_entry_id, KEEP_NOTHING, *cut_points}
    if result.first_kept_entry_id not in allowed:
        raise SummaryRejectedError(
            f"The extension {extension} wants to keep from entry {result.first_kept_entry_id} on, which is "
            "no valid cut point of this compaction; "
            f"{preparation.first_kept_entry_id} is the one that was prepared."
        )
