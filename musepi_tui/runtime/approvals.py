"""Questions to the person: which are open, what was granted, what nobody could answer (safety 7.1)."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from musepi_tui.runtime.events import ApprovalAsked, ApprovalClosed, Event
from musepi_tui.tools.types import ToolView

Answer = Literal["allow", "allow_session", "deny", "deny_and_stop"]


@dataclass(frozen=True, slots=True)
class Question:
    """A call that needs a person. ``rule`` is what ``allow_session`` grants; None offers no such answer."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    reason: str
    rule: str | None
    view: ToolView


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a question ended. ``refusal`` is the error text for the model, None when the call may run."""

    refusal: str | None = None
    stop: bool = False


class Approvals:
    """Open questions under their request ids, which come once in a run, and the grants of the open session.

    ``interactive`` is false where nobody can answer: then every question is refused at once and counted.
    ``timeout_s`` None waits for ever.
    """

    def __init__(self, emit: Callable[[Event], None], *, interactive: bool, timeout_s: float | None) -> None:
        self._emit = emit
        self._interactive = interactive
        self._timeout_s = timeout_s
        self._ids = count(1)
        self._open: dict[str, tuple[Question, asyncio.Future[Verdict]]] = {}
        self._grants: list[str] = []
        self._withheld = 0

    @property
    def grants(self) -> tuple[str, ...]:
        """Rules allowed for the rest of the session."""
        return tuple(self._grants)

    @property
    def withheld(self) -> int:
        """How many calls of the run were refused because nobody could be asked (exit code 4)."""
        return self._withheld

    def forget_grants(self) -> None:
        """Another session starts without the grants of this one."""
        self._grants.clear()

    async def ask(self, question: Question) -> Verdict:
        """The person's verdict; cancelled with the turn."""
        request_id = f"approval-{next(self._ids)}"
        answer: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._open[request_id] = (question, answer)
        self._emit(
            ApprovalAsked(
                request_id,
                question.call_id,
                question.tool,
                question.arguments,
                question.reason,
                question.rule,
                question.view,
            )
        )
        if self._interactive:
            return await self._wait(request_id, question, answer)
        self._withheld += 1
        refusal = _nobody_to_ask(question)
        self._close(request_id, refusal)
        return Verdict(refusal)

    def answer(self, request_id: str, decision: Answer, feedback: str | None) -> str | None:
        """Settles a question. A text when that is impossible: the id is unknown or was used already."""
        if request_id not in self._open:
            return f"No open approval request has the id {request_id}."
        question, future = self._open[request_id]
        if decision == "allow_session" and question.rule is None:
            return "This call can only be allowed once."
        del self._open[request_id]
        if not future.done():
            future.set_result(_verdict(decision, feedback))
        shown = "deny" if decision == "deny_and_stop" else decision
        self._emit(ApprovalClosed(request_id, shown, feedback or ""))
        if decision == "allow_session" and question.rule is not None:
            self._grant(question.rule)
        return None

    def _grant(self, rule: str) -> None:
        """Allows the rule from now on, and the open questions that would ask for it again."""
        if rule not in self._grants:
            self._grants.append(rule)
        for request_id, (question, _) in tuple(self._open.items()):
            if question.rule == rule:
                self.answer(request_id, "allow_session", None)

    async def _wait(self, request_id: str, question: Question, answer: "asyncio.Future[Verdict]") -> Verdict:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await answer
        except TimeoutError:
            self._withheld += 1
            self._close(request_id, f"no answer within {self._timeout_s:g} s")
            return Verdict(_nobody_to_ask(question))
        except asyncio.CancelledError:
            self._close(request_id, "the turn was stopped")
            raise

    def _close(self, request_id: str, reason: str) -> None:
        if self._open.pop(request_id, None) is not None:
            self._emit(ApprovalClosed(request_id, "deny", reason))


def _verdict(decision: Answer, feedback: str | None) -> Verdict:
    if decision in ("allow", "allow_session"):
        return Verdict()
    said = f": {feedback}" if feedback else "."
    return Verdict(f"The user denied this call{said}", stop=decision == "deny_and_stop")


def _nobody_to_ask(question: Question) -> str:
    rule = question.rule or question.tool
    return (
        f"needs approval and nobody can give it: {question.reason}. "
        f"Allow it with --set 'permissions.allow=[\"{rule}\"]' or --approval-mode."
    )
