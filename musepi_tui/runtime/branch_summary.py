"""Has the branch that is left summarised by a model (compaction 10.2)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from musepi_tui.base.errors import MaintenanceError, ProviderError
from musepi_tui.base.resources import read_prompt
from musepi_tui.base.text import plural
from musepi_tui.context.branch import BranchMaterial, branch_budget, prepare_branch_entries
from musepi_tui.context.estimate import estimate_tokens
from musepi_tui.context.fileops import render_files, upsert_files
from musepi_tui.context.merge import validate_summary
from musepi_tui.maintenance import notices
from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.runtime.candidates import Chain, find_chain
from musepi_tui.runtime.edits import BranchDraft
from musepi_tui.runtime.events import Notice
from musepi_tui.runtime.services import Services, llm_templates
from musepi_tui.runtime.summarizer import BranchOrder, Summary, Tools, summarize_branch
from musepi_tui.runtime.summary_call import Progress
from musepi_tui.runtime.threads import run_stoppable, stopping
from musepi_tui.session.entries import Entry

NO_MODEL = "A branch summary needs a model with credentials (/login, /model)"
TOO_LONG = (
    "The newest message of the branch is too long for a summary of it. Go on without a summary, "
    "or set compaction.model to a model with a larger window."
)
FAILED = (
    "Branch summary failed: {cause}; nothing was moved. Try again, go on without a summary, "
    "or have another model write it (compaction.model)."
)


@dataclass(frozen=True, slots=True)
class BranchSummarizer:
    """Writes the summary of a branch. ``started`` is called right before a model is asked."""

    services: Services
    started: Callable[[], None]

    async def write(self, entries: Sequence[Entry], instructions: str | None) -> BranchDraft | None:
        """The summary of these entries, oldest first; None when they say nothing that could be summarised.

        Raises ``MaintenanceError`` when nobody could write it.
        """
        chain = self._chain()
        await self.services.tokens.ready()
        material = await self._prepare(entries, chain)
        if not material.messages and not material.left_out:
            return None
        self._tell_left_out(material)
        self.started()
        order = BranchOrder(material.messages, chain, instructions)
        try:
            summary = await summarize_branch(order, self._tools())
        except ProviderError as error:
            raise MaintenanceError(FAILED.format(cause=str(error).rstrip("."))) from error
        return _draft(summary, material)

    def _chain(self) -> Chain:
        settings = self.services.settings
        compaction = settings.compaction
        chain = find_chain(
            compaction.model,
            compaction.model_context_window,
            settings.model_roles,
            self.services.gateway,
            compaction.remote_endpoint,
        )
        if not chain.candidates:
            raise MaintenanceError(NO_MODEL)
        if chain.unknown:
            self._tell(notices.unknown_candidates(chain.unknown))
        return chain

    async def _prepare(self, entries: Sequence[Entry], chain: Chain) -> BranchMaterial:
        """What fits the first candidate; one with a smaller window is asked in parts."""
        budget = branch_budget(
            chain.candidates[0].window, self.services.settings.branch_summary.reserve_tokens
        )
        count = self.services.tokens.count
        return await run_stoppable(
            lambda check: prepare_branch_entries(
                entries, budget, stopping(lambda message: estimate_tokens(message, count), check)
            )
        )

    def _tools(self) -> Tools:
        services = self.services
        return Tools(
            services.gateway,
            services.clock,
            services.tokens.count,
            llm_templates(),
            services.settings.retry,
            self._tell,
            _ignore,
            services.bus.emit,
        )

    def _tell_left_out(self, material: BranchMaterial) -> None:
        """Says that the summary is made from a part only. Raises when it would be made from nothing."""
        if not material.messages:
            raise MaintenanceError(TOO_LONG)
        if material.left_out:
            older = plural(material.left_out, "older message")
            self._tell(NoticeText("info", f"The summary leaves out {older} of the branch: too long."))

    def _tell(self, text: NoticeText) -> None:
        self.services.bus.emit(Notice(text.level, text.text, "tree"))


def _draft(summary: Summary, material: BranchMaterial) -> BranchDraft:
    """The summary as it is stored: what it is, the text, the files."""
    text = upsert_files(summary.text, render_files(material.file_ops))
    validate_summary(text)
    return BranchDraft(
        f"{read_prompt('branch-summary-preamble')}\n\n{text}",
        details={
            "readFiles": list(material.file_ops.read_files),
            "modifiedFiles": list(material.file_ops.modified_files),
        },
        usage=summary.usage,
    )


def _ignore(_: Progress) -> None:
    return None
