"""What one prompt has cost so far: the counters behind the caps of compaction 2.5."""

from dataclasses import dataclass, replace

MAX_INCOMPLETE = 3
"""Recoveries of cut-off answers without output in between (compaction 2.4). A model that spends every answer
on reasoning would go on for ever."""

MAX_AUTO_CONTINUES = 3
"""Automatic continuations in a row without a message of the person (compaction 2.8)."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The counters of one prompt; the executor keeps one and changes it with these methods.

    ``overflow_recovered``: one compact-and-retry was made since the last successful answer.
    ``tokens_after_pass`` is the local count right after the newest pass, until an answer has told what that
    is billed as. It goes on into the next prompt: only its answer can tell.
    ``handed_off_tokens`` is what the session that the newest handoff began took at its start, pending
    prompts left out; None before the first one, and after a pass somebody asked for.
    """

    incomplete_attempts: int = 0
    overflow_recovered: bool = False
    auto_continues: int = 0
    tokens_after_pass: int | None = None
    handed_off_tokens: int | None = None

    def after_prompt(self) -> "Chain":
        """Once a message of the person is stored: what earlier ones have cost does not count any more."""
        return Chain(tokens_after_pass=self.tokens_after_pass, handed_off_tokens=self.handed_off_tokens)

    def after_answer(self, *, delivered: bool, succeeded: bool) -> "Chain":
        """Once an answer is stored: with text or a call (``delivered``), neither failed nor cut off."""
        return replace(
            self,
            incomplete_attempts=0 if delivered else self.incomplete_attempts,
            overflow_recovered=self.overflow_recovered and not succeeded,
        )

    def after_promotion(self) -> "Chain":
        """Once a larger model has taken over."""
        return replace(self, incomplete_attempts=0)

    def after_overflow_pass(self) -> "Chain":
        """Once the recovery of an overflow has begun."""
        return replace(self, overflow_recovered=True)

    def after_incomplete(self) -> "Chain":
        """Once a cut-off answer was dropped to be given again."""
        return replace(self, incomplete_attempts=self.incomplete_attempts + 1)

    def after_auto_continue(self) -> "Chain":
        """Once an automatic continuation is due."""
        return replace(self, auto_continues=self.auto_continues + 1)

    def after_pass(self, tokens: int) -> "Chain":
        """Once a pass has left so much by the local count."""
        return replace(self, tokens_after_pass=tokens)

    def after_handoff(self, tokens: int | None) -> "Chain":
        """Once a handoff has begun a session that takes so much; None forgets the one before."""
        return replace(self, handed_off_tokens=tokens)

    def after_verdict(self) -> "Chain":
        """Once it is known whether the newest pass helped, or something else has changed the context."""
        return replace(self, tokens_after_pass=None)
