"""Puts the parts of a session together."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from musepi_tui.base.errors import ProviderError
from musepi_tui.base.http import HttpPolicy, configure
from musepi_tui.extensions.dispatch import Dispatcher
from musepi_tui.extensions.extensions import Extensions
from musepi_tui.extensions.points import Switched
from musepi_tui.providers.apis import supported_apis
from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.providers.types import Model, ThinkingLevel
from musepi_tui.runtime.approvals import Approvals
from musepi_tui.runtime.bus import EventBus
from musepi_tui.runtime.desk import Desk
from musepi_tui.runtime.events import Notice, QueueChanged
from musepi_tui.runtime.extension_host import ExtensionHost
from musepi_tui.runtime.gateway import DEMO_PROVIDER, ModelGateway
from musepi_tui.runtime.handoff import HandoffDoor, Letter
from musepi_tui.runtime.history import History
from musepi_tui.runtime.idle import IdleClock
from musepi_tui.runtime.maintainer import Maintainer
from musepi_tui.runtime.meter import MeterService
from musepi_tui.runtime.naming import PendingName
from musepi_tui.runtime.options import RuntimeOptions
from musepi_tui.runtime.post import Post
from musepi_tui.runtime.queue import MessageQueue
from musepi_tui.runtime.saving import Saver
from musepi_tui.runtime.services import PhaseSetter, Services
from musepi_tui.runtime.sessions import StoredSession
from musepi_tui.runtime.switching import Prepare, prepare_handoff
from musepi_tui.runtime.tasks import CancelStack, Children
from musepi_tui.runtime.tokens import TokenService
from musepi_tui.runtime.upkeep import Upkeep
from musepi_tui.runtime.worker import Worker
from musepi_tui.runtime.workplace import Workplace
from musepi_tui.session.rebuild import SessionContext
from musepi_tui.settings.schema import NetworkSettings
from musepi_tui.storage.artifacts import ArtifactStore
from musepi_tui.storage.paths import artifact_folder, expand_home

HandOver: TypeAlias = Callable[[Prepare, Callable[[], None]], Awaitable[Services]]
"""Opens a session in place of the open one, whose worker goes on there. The second argument is called when it
is too late to cancel that. Gives what works for the new session."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What outlives a session."""

    options: RuntimeOptions
    registry: ModelRegistry
    bus: EventBus
    children: Children
    cancels: CancelStack
    approvals: Approvals
    phase: PhaseSetter
    extensions: Extensions
    host: ExtensionHost
    hand_over: HandOver


@dataclass(frozen=True, slots=True)
class _Choice:
    """Model and level to start with; ``notices`` say what could not be had, ``missing`` why there is none."""

    model: Model | None
    thinking: ThinkingLevel
    notices: tuple[Notice, ...] = ()
    missing: str | None = None


def approvals_for(options: RuntimeOptions, bus: EventBus) -> Approvals:
    """What asks the person, in every session of a run."""
    return Approvals(bus.emit, interactive=options.interactive, timeout_s=options.approval_timeout_s)


async def load_extensions(
    options: RuntimeOptions, bus: EventBus, call_soon: Callable[[Callable[[], None]], None]
) -> tuple[Extensions, ExtensionHost]:
    """The extensions of the user's folder, of installed packages and of the command line, activated."""
    host = ExtensionHost(bus.emit, call_soon, options.clock)
    extensions = Extensions(Dispatcher(host, host.report))
    folder = options.paths.config / "extensions"
    await extensions.load(folder, options.extensions, only_named=options.only_named_extensions)
    return extensions, host


async def load_registry(options: RuntimeOptions) -> ModelRegistry:
    """The model table, built in a thread when that was put off. Sets how connections are made on the way."""
    configure(_http_policy(options.settings.values.network))
    await asyncio.to_thread(supported_apis)  # imports the wire formats: too long for the event loop
    if isinstance(options.registry, ModelRegistry):
        return options.registry
    return await asyncio.to_thread(options.registry)


def _http_policy(network: NetworkSettings) -> HttpPolicy:
    ca_file = None if network.ca_file is None else expand_home(network.ca_file)
    return HttpPolicy(ca_file=ca_file, plain_http_hosts=network.allow_plain_http)


def build_desk(shared: Shared, stored: StoredSession, old: Desk | None) -> Desk:
    """The desk for a loaded session. ``old``: model, level, mode and queue go on from there when it is
    new, and the worker too when that takes its work along; it has to be moved to ``post`` then."""
    options, settings = shared.options, shared.options.settings.values
    context = stored.loaded.context
    gateway = ModelGateway(settings, shared.registry, options.find_provider)
    gateway.session_id = stored.loaded.header.id
    choice = _choose(shared, context, old)
    if old is not None and stored.takes_over:
        choice = replace(choice, thinking=old.services.gateway.wanted_thinking)
    gateway.choose(choice.model, choice.thinking, missing=choice.missing)
    gateway.note_recorded("/".join(context.model) if context.model else None, context.thinking_level)
    saver = Saver(stored.file, settings.session.fsync, shared.children, options.clock, shared.bus.emit)
    naming = PendingName()
    history = History(
        stored.loaded,
        saver,
        options.clock,
        shared.bus.emit,
        lambda: (*gateway.opening_entries(), *naming.take()),
    )
    saver.on_saved = history.note_saved
    saver.rewrites_edits = settings.session.prune_storage == "rewrite"
    services = _services(shared, history, gateway)
    queue = _queue(shared) if old is None else old.queue
    folder, scratch = _artifact_place(stored.file.path)
    artifacts = ArtifactStore(folder)
    workplace = Workplace(services, options, stored.cwd, artifacts, shared.approvals)
    if old is not None:
        workplace.mode = old.workplace.mode
        services.meter.is_automatic = old.services.meter.is_automatic
    idle = IdleClock(
        services,
        lambda: worker.compact_idle(),
        lambda: worker.occupied,
        lambda cancels: worker.keep_off_idle(cancels=cancels),
    )
    maintainer = Maintainer(services, artifacts, queue, idle.gates)
    maintainer.door = _door_of(shared, services, workplace, stored.file.path)
    post = Post(services, maintainer, workplace, idle)
    if old is not None and stored.takes_over:
        worker = old.worker
        maintainer.ledger = old.post.maintainer.ledger
    else:
        worker = Worker(post, queue)
    return Desk(
        services,
        queue,
        shared.approvals,
        workplace,
        worker,
        Upkeep(services, worker, idle),
        naming,
        post,
        stored.issues,
        (*stored.notices, *choice.notices),
        stored.read_totals,
        stored.read_only,
        scratch,
    )


def _door_of(shared: Shared, services: Services, workplace: Workplace, path: Path | None) -> HandoffDoor:
    """The way from this session to the one its work is handed off to."""

    history = services.history

    async def open_next(letter: Letter, seal: Callable[[], None]) -> Services:
        states = services.gateway.standing_entries()
        prepare = partial(prepare_handoff, history, workplace.cwd, states, letter, shared.options)
        return await shared.hand_over(prepare, seal)

    async def tell_opened(following: Services) -> None:
        event = Switched("handoff", _file_of(history), _file_of(following.history))
        await shared.extensions.switched(event)

    folder = None if path is None else artifact_folder(path)
    return HandoffDoor(workplace.briefing, open_next, tell_opened, folder)


def _file_of(history: History) -> str | None:
    path = history.saver.path
    return None if path is None else str(path)


def _artifact_place(path: Path | None) -> tuple[Path, Path | None]:
    """Where full outputs go, and that folder once more when it ends with the session."""
    if path is not None:
        return artifact_folder(path), None
    scratch = Path(tempfile.mkdtemp(prefix="musepi-"))
    return scratch, scratch


def _services(shared: Shared, history: History, gateway: ModelGateway) -> Services:
    settings, emit = shared.options.settings.values, shared.bus.emit
    ranks = shared.options.paths.data / "tokenizers" / "cl100k_base.tiktoken"
    tokens = TokenService(
        settings.tokens.estimator,
        ranks if ranks.is_file() else None,
        lambda text: emit(Notice("warning", text, "settings")),
    )
    tokens.live_messages = lambda: history.messages
    return Services(
        settings=settings,
        clock=shared.options.clock,
        bus=shared.bus,
        children=shared.children,
        cancels=shared.cancels,
        history=history,
        gateway=gateway,
        tokens=tokens,
        meter=MeterService(settings, history, gateway, tokens, emit),
        phase=shared.phase,
        extensions=shared.extensions,
    )


def _queue(shared: Shared) -> MessageQueue:
    settings = shared.options.settings.values
    singly = {
        "steer": settings.steering_mode == "one-at-a-time",
        "follow_up": settings.follow_up_mode == "one-at-a-time",
    }

    def changed() -> None:
        shared.bus.emit(QueueChanged(queue.texts("steer"), queue.texts("follow_up")))

    queue = MessageQueue(lambda delivery: singly[delivery], changed)
    return queue


def _choose(shared: Shared, context: SessionContext, old: Desk | None) -> _Choice:
    """Flags, then what a stored session says, then the session before, then settings and keys, then the
    demo."""
    options = shared.options
    level = _level(options.thinking or context.thinking_level, options.settings.values.default_thinking_level)
    if old is not None and context.model is None:
        return _Choice(old.services.gateway.model, old.services.gateway.wanted_thinking)
    try:
        if old is None and (flagged := _flagged(shared, level)) is not None:
            return flagged
        if context.model is not None:
            return _recorded(shared, context.model, level)
        return _Choice(_startup(shared), level)
    except ProviderError as error:
        return _Choice(None, level, (Notice("error", str(error), "model"),), missing=str(error))


def _flagged(shared: Shared, level: ThinkingLevel) -> _Choice | None:
    """The model of the command line; None when it names none. Raises ``ProviderError``."""
    text = shared.options.model
    if text is None:
        model = shared.registry.flag_model()
        return None if model is None else _Choice(model, level)
    model, own_level = shared.registry.find_text(text)
    return _Choice(model, level if shared.options.thinking or own_level is None else own_level)


def _recorded(shared: Shared, recorded: tuple[str, str], level: ThinkingLevel) -> _Choice:
    """The session's own model; another one, with a notice, when it cannot be had here."""
    provider, model_id = recorded
    try:
        model = shared.registry.find(provider, model_id)
        shared.registry.credentials(model)
    except ProviderError as error:
        other = _startup(shared)
        instead = f"{other.key} is used instead" if other is not None else "choose another with /model"
        text = f"This session was on {provider}/{model_id}, which cannot be used: {error} {instead}."
        return _Choice(other, level, (Notice("warning", text, "model"),))
    return _Choice(model, level)


def _startup(shared: Shared) -> Model | None:
    options = shared.options
    model = shared.registry.startup_model(options.settings.values.model_roles.default)
    if model is None and options.allow_demo:
        return shared.registry.find(DEMO_PROVIDER, "demo")
    return model


def _level(wanted: str | None, default: str) -> ThinkingLevel:
    """The level of that name; ``default`` for none, and for one another program made up."""
    known = {member.value for member in ThinkingLevel}
    return ThinkingLevel(wanted if wanted in known else default)
