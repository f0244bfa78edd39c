"""Summaries of conversations that fit no single request: in parts, then merged (compaction 6.6)."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from musepi_tui.base.errors import MusepiError
from musepi_tui.base.types import Tokenizer
from musepi_tui.context.stages import merge_groups, plan_segments, segment_budget
from musepi_tui.runtime.summary_requests import Piece

MOST_IN_FLIGHT = 4
"""Requests of one summary at the same time: more run into the rate limits of small accounts."""

Ask: TypeAlias = Callable[[str, int], Awaitable[str]]
"""Prompt and output limit in tokens -> summary."""


class Gate:
    """Lets the requests of one summary out: ``MOST_IN_FLIGHT`` at a time, and none any more once one failed.

    History and turn prefix share one, so that two long ones do not ask for twice as much at once.
    """

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(MOST_IN_FLIGHT)
        self._failure: MusepiError | None = None

    def close(self, failure: MusepiError) -> None:
        """Starts nothing any more; what waits gets this failure."""
        self._failure = self._failure or failure

    def passing(self, ask: Ask) -> Ask:
        """``ask`` through the gate."""

        async def passed(prompt: str, limit_tokens: int) -> str:
            async with self._free:
                if self._failure is not None:
                    raise self._failure
                return await ask(prompt, limit_tokens)

        return passed

    def closing(self, ask: Ask) -> Ask:
        """``ask`` through the gate, which is closed when the request fails."""

        async def passed(prompt: str, limit_tokens: int) -> str:
            try:
                return await ask(prompt, limit_tokens)
            except MusepiError as error:
                self.close(error)
                raise

        return self.passing(passed)


@dataclass(slots=True)
class SummaryMemory:
    """What one session remembers of summary requests until a compaction is stored.

    ``texts``: answers by a key of model, limit and prompt, so that a pass that is tried again sends nothing
    twice. ``staged_models``: models whose last summary took more than one stage.
    """

    texts: dict[str, str] = field(default_factory=dict[str, str])
    staged_models: set[str] = field(default_factory=set[str])

    def forget_texts(self) -> None:
        """A compaction was stored: the answers belong to a context that is gone."""
        self.texts.clear()

    def note_stages(self, model_key: str, stages: int) -> None:
        """Remembers whether the model needed more than one stage."""
        if stages > 1:
            self.staged_models.add(model_key)
        else:
            self.staged_models.discard(model_key)

    def remembering(self, model_key: str, ask: Ask) -> Ask:
        """``ask``, but an answer that was given before is not asked for again."""

        async def remembered(prompt: str, limit_tokens: int) -> str:
            text = f"{model_key}\n{limit_tokens}\n{prompt}"
            key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            if key not in self.texts:
                self.texts[key] = await ask(prompt, limit_tokens)
            return self.texts[key]

        return remembered


@dataclass(frozen=True, slots=True)
class Staged:
    """A finished summary and the rounds of requests it took."""

    text: str
    stages: int


async def summarize_in_stages(
    piece: Piece, window: int | None, ask: Ask, count: Tokenizer, expect: Callable[[int], None]
) -> Staged:
    """Summarises the parts, then merges the summaries until one is left.

    ``expect`` is told how many requests each round adds. A failure is raised once the requests that run are
    over; a ``Gate`` keeps new ones from starting.
    """
    budget = segment_budget(window)
    segments = await asyncio.to_thread(plan_segments, piece.messages, budget)
    prompts = [piece.segment_prompt(segment, index, len(segments)) for index, segment in enumerate(segments)]
    expect(len(prompts))
    texts = await ask_all(prompts, piece.segment_limit_tokens, ask)
    stages = 1
    while True:
        stages += 1
        groups = merge_groups(await asyncio.to_thread(_sizes, texts, count), budget)
        if len(groups) <= 1:
            expect(1)
            return Staged(await ask(piece.merge_prompt(texts, is_last=True), piece.limit_tokens), stages)
        texts = await _merge_round(piece, texts, groups, ask, expect)


async def ask_all(prompts: Sequence[str], limit_tokens: int, ask: Ask) -> list[str]:
    """The answers in the order of the prompts. Raises the first failure when all are over."""
    asked = (ask(prompt, limit_tokens) for prompt in prompts)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    failures = [answer for answer in answers if isinstance(answer, BaseException)]
    if failures:
        raise failures[0]
    return [answer for answer in answers if isinstance(answer, str)]


async def _merge_round(
    piece: Piece, texts: Sequence[str], groups: Sequence[range], ask: Ask, expect: Callable[[int], None]
) -> list[str]:
    """One summary for each group; a group of one goes on as it is."""
    merged = [group for group in groups if len(group) > 1]
    expect(len(merged))
    prompts = [piece.merge_prompt([texts[index] for index in group], is_last=False) for group in merged]
    answers = iter(await ask_all(prompts, piece.limit_tokens, ask))
    return [next(answers) if len(group) > 1 else texts[group.start] for group in groups]


def _sizes(texts: Sequence[str], count: Tokenizer) -> list[int]:
    return [count(text) for text in texts]
