"""The door to the model: which one, how it thinks, and requests with the settings' limits."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from musepi_tui.base import http
from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.providers.types import (
    AssistantStream,
    Model,
    ProviderSpec,
    Request,
    ThinkingLevel,
    Timeouts,
    ToolSpec,
)
from musepi_tui.session.messages import Message
from musepi_tui.settings.schema import Settings

DEMO_PROVIDER = "demo"

ProviderFinder: TypeAlias = Callable[[str], ProviderSpec]
"""The wire format of an api. Raises ``ProviderError`` when there is none."""


class ModelGateway:
    """The current model and thinking level, and streams from any model.

    It also remembers what the session file says about both: ``opening_entries`` are the state entries that
    are missing there.
    """

    def __init__(self, settings: Settings, registry: ModelRegistry, find_provider: ProviderFinder) -> None:
        self._settings = settings
        self._registry = registry
        self._find_provider = find_provider
        self._model: Model | None = None
        self._stands_in = False
        self._thinking = ThinkingLevel.OFF
        self._missing: str | None = None
        self._recorded: tuple[str | None, str | None] = (None, None)
        self.session_id: str | None = None

    @property
    def model(self) -> Model | None:
        """The model of the next request; None when nothing is configured."""
        return self._model

    @property
    def thinking(self) -> ThinkingLevel:
        """How much it reasons; ``off`` for a model that cannot."""
        if self._model is not None and not self._model.reasoning:
            return ThinkingLevel.OFF
        return self._thinking

    @property
    def wanted_thinking(self) -> ThinkingLevel:
        """The level that was chosen, whether the current model reasons or not."""
        return self._thinking

    @property
    def registry(self) -> ModelRegistry:
        """The model table."""
        return self._registry

    def choose(self, model: Model | None, thinking: ThinkingLevel, *, missing: str | None = None) -> None:
        """Uses this model and level from the next request on. ``missing``: why there is no model."""
        self._model = model
        self._stands_in = False
        self._missing = missing
        self._thinking = thinking

    def promote(self, model: Model) -> None:
        """Uses this model until another is chosen; for the file the session's own model stays what it was."""
        self._model = model
        self._stands_in = True

    def check(self, model: Model) -> None:
        """Raises ``ProviderError`` when there is no key for the model."""
        self._registry.credentials(model)

    def note_recorded(self, model_key: str | None, thinking: str | None) -> None:
        """Remembers what the file says about model (``provider/id``) and level."""
        self._recorded = (model_key, thinking)

    def opening_entries(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """The state entries that bring the file up to date; they count as recorded from now on."""
        entries: list[tuple[str, Mapping[str, Any]]] = []
        model, (model_key, thinking) = self._model, self._recorded
        if model is not None and model.key != model_key and not self._stands_in:
            entries.append(
                ("model_change", {"provider": model.provider, "modelId": model.id, "model": model.key})
            )
            model_key = model.key
        reasons = model is not None and model.reasoning
        if reasons and self._thinking.value != (thinking or ThinkingLevel.OFF.value):
            entries.append(("thinking_level_change", {"thinkingLevel": self._thinking.value}))
            thinking = self._thinking.value
        self._recorded = (model_key, thinking)
        return entries

    def standing_entries(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """The state entries a session begins with that goes on with this model and level. A model that only
        stands in is left behind: the session's own one is named."""
        own = self._recorded[0] if self._stands_in else None
        key = own or (None if self._model is None else self._model.key)
        if key is None:
            return ()
        provider, _, model_id = key.partition("/")
        return (
            ("model_change", {"provider": provider, "modelId": model_id, "model": key}),
            ("thinking_level_change", {"thinkingLevel": self._thinking.value}),
        )

    def available(self) -> tuple[Model, ...]:
        """Models with credentials."""
        return self._registry.available()

    def find(self, text: str) -> Model | None:
        """The model that ``[provider/]id[:level]`` names; None when no row fits."""
        try:
            return self._registry.find_text(text)[0]
        except ProviderError:
            return None

    def require_model(self) -> Model:
        """The current model, when it can be asked. Raises ``ProviderError`` with what to do about it."""
        if self._model is None:
            raise ProviderError(
                self._missing
                or "No model is configured. Set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY, "
                "or choose one with /model or --provider and --model (demo/demo needs no key).",
                kind=ErrorKind.AUTH,
            )
        return self._model

    async def prepare(self, model: Model) -> None:
        """Loads the wire format and checks the key, in a thread. Raises ``ProviderError``."""
        await asyncio.to_thread(self._load, model)

    def open(self, model: Model, request: Request) -> AssistantStream:
        """A stream that starts at its first iteration. Raises ``ProviderError`` when there is no key."""
        return self._find_provider(model.api).stream(model, self._registry.credentials(model), request)

    def request(
        self,
        system: str,
        messages: Sequence[Message],
        *,
        tools: tuple[ToolSpec, ...] = (),
        max_tokens: int | None = None,
        thinking: ThinkingLevel | None = None,
    ) -> Request:
        """A request with the limits of the settings. ``messages`` are converted already; ``thinking`` None is
        the current level."""
        network, retry = self._settings.network, self._settings.retry
        return Request(
            system=system,
            messages=tuple(messages),
            tools=tools,
            max_tokens=max_tokens,
            thinking=self.thinking if thinking is None else thinking,
            session_id=self.session_id,
            cache_retention=self._settings.cache_retention,
            timeouts=Timeouts(
                network.connect_timeout_seconds,
                network.first_event_timeout_seconds,
                network.idle_timeout_seconds,
            ),
            request_retries=retry.request_retries,
            request_base_delay_s=retry.request_base_delay_ms / 1000,
            retry_after_cap_s=network.retry_after_cap_seconds,
        )

    def warm_up(self) -> None:
        """Imports what the first request to the current model needs. Blocking: for a thread."""
        if self._model is None:
            return
        try:
            self._find_provider(self._model.api)
        except ProviderError:
            return  # told with the first prompt
        if self._model.provider != DEMO_PROVIDER:
            http.warm_up()

    async def close(self) -> None:
        """Closes connections, and removes what the current model's provider made."""
        if self._model is not None:
            await asyncio.to_thread(self._close_provider, self._model.api)
        await http.close_shared_client()

    def _close_provider(self, api: str) -> None:
        try:
            self._find_provider(api).close()
        except ProviderError:
            return  # there is none, so it made nothing

    def extra_roots(self) -> tuple[Path, ...]:
        """Folders the current model works in besides the session's (the demo's scratch project). Blocking."""
        try:
            return () if self._model is None else self._find_provider(self._model.api).extra_roots()
        except ProviderError:
            return ()  # told with the first prompt

    def _load(self, model: Model) -> None:
        self._find_provider(model.api)
        self._registry.credentials(model)


def split_level(text: str) -> tuple[str, ThinkingLevel | None]:
    """``provider/model:level`` as model and level; a part behind the colon that is no level belongs to the
    id."""
    name, colon, level = text.rpartition(":")
    if colon and level in {member.value for member in ThinkingLevel}:
        return name, ThinkingLevel(level)
    return text, None
