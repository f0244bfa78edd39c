"""The shared parts of a runtime, handed to everything that works for one session."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from musepi_tui.base.clock import Clock
from musepi_tui.base.resources import read_prompt
from musepi_tui.context.llm import LlmTemplates, convert_to_llm, convert_with_ids
from musepi_tui.extensions.extensions import Extensions
from musepi_tui.runtime.bus import EventBus
from musepi_tui.runtime.events import Phase
from musepi_tui.runtime.gateway import ModelGateway
from musepi_tui.runtime.history import History
from musepi_tui.runtime.meter import MeterService
from musepi_tui.runtime.tasks import CancelStack, Children
from musepi_tui.runtime.tokens import TokenService
from musepi_tui.session.messages import Message
from musepi_tui.settings.schema import Settings

PhaseSetter: TypeAlias = Callable[[Phase], None]
"""Tells what the runtime does now; the same phase again says nothing."""


@dataclass(frozen=True, slots=True)
class Services:
    """What works for a session may use."""

    settings: Settings
    clock: Clock
    bus: EventBus
    children: Children
    cancels: CancelStack
    history: History
    gateway: ModelGateway
    tokens: TokenService
    meter: MeterService
    phase: PhaseSetter
    extensions: Extensions

    def context_messages(self) -> tuple[Message, ...]:
        """The live messages in the roles a model knows."""
        return convert_to_llm(self.history.messages, llm_templates())

    def context_with_ids(self) -> tuple[tuple[str, Message], ...]:
        """The same with the entry each message came from."""
        return convert_with_ids(self.history.messages, self.history.message_entry_ids, llm_templates())


def llm_templates() -> LlmTemplates:
    """How summaries are shown to the model; texts of the prompt files."""
    return LlmTemplates(
        compaction_context=read_prompt("compaction-summary-context"),
        branch_context=read_prompt("branch-summary-context"),
    )
