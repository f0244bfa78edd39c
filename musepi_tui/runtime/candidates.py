"""Which models may write a summary, and what follows when one fails (compaction 6.7)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from musepi_tui.base.address import address_of
from musepi_tui.base.errors import ErrorKind, MusepiError, ProviderError
from musepi_tui.providers.thinking import clamp_level
from musepi_tui.providers.types import Model, ThinkingLevel
from musepi_tui.runtime.gateway import ModelGateway, split_level
from musepi_tui.settings.schema import ModelRoles, RetrySettings

LONG_WAIT_S = 30.0
"""Beyond this wait another candidate is asked instead, if there is one (compaction 6.7)."""

_TRANSIENT = frozenset(
    {
        ErrorKind.RATE_LIMIT,
        ErrorKind.OVERLOADED,
        ErrorKind.SERVER,
        ErrorKind.TRANSPORT,
        ErrorKind.CONFLICT,
    }
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that may write the summary. ``window`` in tokens, None when nobody knows it.

    ``thinking`` is the level configured with its name, None for the session's. ``endpoint`` is an address
    that is asked in place of the model's provider.
    """

    model: Model
    thinking: ThinkingLevel | None = None
    window: int | None = None
    endpoint: str | None = None

    @property
    def name(self) -> str:
        """How it is called: ``provider/id``, or the host of the endpoint."""
        return self.model.key if self.endpoint is None else address_of(self.endpoint).host

    def level(self, session_level: ThinkingLevel) -> ThinkingLevel:
        """How much it reasons about a summary."""
        return clamp_level(self.model, self.thinking or session_level)


@dataclass(frozen=True, slots=True)
class Chain:
    """The candidates in the order they are asked; ``unknown`` are configured names nobody can be asked by."""

    candidates: tuple[Candidate, ...]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask the same model again after ``delay_s`` seconds."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Switch:
    """Ask these models instead, in order."""

    candidates: tuple[Candidate, ...]


NextAction: TypeAlias = Wait | Switch | None
"""What follows a failure; None: it is final."""


def find_chain(
    configured: str | Sequence[str] | None,
    window_override: int | None,
    roles: ModelRoles,
    gateway: ModelGateway,
    endpoint: str | None = None,
) -> Chain:
    """The models to ask for a summary, each once and only those with credentials.

    ``endpoint`` (``compaction.remoteEndpoint``) first, then ``compaction.model``, the current model's own
    target, the current model, the role models, and the largest other one.
    ``window_override`` is ``compaction.modelContextWindow``; it counts for the configured ones.
    """
    available = {model.key: model for model in gateway.available()}
    current = gateway.model
    names = configured_names(configured)
    wanted = [_resolve(_of_role(name, roles), gateway, available) for name in names]
    unknown = tuple(name for name, found in zip(names, wanted, strict=True) if found is None)
    chosen = [
        Candidate(found.model, found.thinking, window_override or found.window)
        for found in wanted
        if found is not None
    ]
    named = _each_once((*chosen, *_fallbacks(current, roles, gateway, available)))
    known = (*named, *_largest_besides(named, available))
    own = [] if endpoint is None else [_at_endpoint(endpoint, known, window_override)]
    return Chain((*own, *known), unknown)


def configured_names(configured: str | Sequence[str] | None) -> tuple[str, ...]:
    """The entries of ``compaction.model``: a list, or a string with commas."""
    if configured is None:
        return ()
    parts = configured.split(",") if isinstance(configured, str) else configured
    return tuple(part.strip() for part in parts if part.strip())


def is_harmony(model: Model) -> bool:
    """Whether the model reads the control tokens of the harmony format."""
    return "gpt-oss" in model.id.lower()


def next_action(
    error: MusepiError, attempt: int, rest: Sequence[Candidate], retry: RetrySettings, *, manual: bool
) -> NextAction:
    """What follows when a candidate failed: it was repeated ``attempt`` times, ``rest`` are those behind it.

    A pass somebody asked for shows its failure at once, unless another key may help.
    """
    if isinstance(error, ProviderError) and error.kind is ErrorKind.ABORTED:
        return None
    if manual and not (isinstance(error, ProviderError) and error.kind is ErrorKind.AUTH):
        return None
    following = tuple(rest)
    if _is_repeatable(error) and retry.enabled and attempt < retry.max_retries:
        delay_s = _delay_s(error, attempt, retry)
        if delay_s <= LONG_WAIT_S or not following:
            return Wait(delay_s)
    return Switch(following) if following else None


def after_failure(failed: Candidate, error: MusepiError, rest: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The candidates behind ``failed`` that such a failure leaves a chance: other providers after a refused
    key, larger windows after an overflow."""
    if not isinstance(error, ProviderError):
        return tuple(rest)
    if error.kind is ErrorKind.AUTH and failed.endpoint is None:
        return tuple(other for other in rest if other.model.provider != failed.model.provider)
    if error.kind is ErrorKind.OVERFLOW and failed.window is not None:
        return tuple(other for other in rest if other.window is None or other.window > failed.window)
    return tuple(rest)


def _is_repeatable(error: MusepiError) -> bool:
    """Whether the same request may work a little later. A time-out will time out again."""
    if not isinstance(error, ProviderError) or error.cause == "timeout" or error.kind is ErrorKind.QUOTA:
        return False
    return error.kind in _TRANSIENT or error.retry_after_s is not None


def _delay_s(error: MusepiError, attempt: int, retry: RetrySettings) -> float:
    hint_s = error.retry_after_s if isinstance(error, ProviderError) else None
    doubled_ms = retry.base_delay_ms * 2 ** min(attempt, 30)
    return max(min(doubled_ms, retry.max_delay_ms) / 1000, hint_s or 0.0)


def _fallbacks(
    current: Model | None, roles: ModelRoles, gateway: ModelGateway, available: Mapping[str, Model]
) -> Iterator[Candidate]:
    if current is not None and current.compaction_target is not None:
        yield from _found(_resolve(current.compaction_target, gateway, available))
    if current is not None and current.key in available:
        yield Candidate(current, None, current.context_window)
    for name in (roles.default, roles.small, roles.slow):
        if name is not None:
            yield from _found(_resolve(name, gateway, available))


def _largest_besides(named: Sequence[Candidate], available: Mapping[str, Model]) -> tuple[Candidate, ...]:
    """The model with the largest window that nobody named, the demo left out."""
    keys = {candidate.model.key for candidate in named}
    others = [model for model in available.values() if model.source != "demo" and model.key not in keys]
    largest = max(others, key=lambda model: model.context_window or 0, default=None)
    return () if largest is None else (Candidate(largest, None, largest.context_window),)


def _of_role(text: str, roles: ModelRoles) -> str:
    """The model of a role, with the level of the text if it gives one; any other text as it is."""
    by_role = {"default": roles.default, "small": roles.small, "smol": roles.small, "slow": roles.slow}
    name, level = split_level(text)
    model = by_role.get(name)
    if model is None:
        return text
    return model if level is None else f"{split_level(model)[0]}:{level.value}"


def _at_endpoint(endpoint: str, known: Sequence[Candidate], window: int | None) -> Candidate:
    """The endpoint; what it is told to use is the name of the first model it stands in for."""
    nameless = Model(provider="endpoint", id="default", api="", base_url=endpoint)
    model = known[0].model if known else nameless
    return Candidate(model, None, window, endpoint)


def _found(candidate: Candidate | None) -> tuple[Candidate, ...]:
    return () if candidate is None else (candidate,)


def _resolve(text: str, gateway: ModelGateway, available: Mapping[str, Model]) -> Candidate | None:
    name, level = split_level(text)
    model = gateway.find(name)
    if model is None or model.key not in available:
        return None
    return Candidate(model, level, model.context_window)


def _each_once(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    by_key: dict[str, Candidate] = {}
    for candidate in candidates:
        by_key.setdefault(candidate.model.key, candidate)
    return tuple(by_key.values())
