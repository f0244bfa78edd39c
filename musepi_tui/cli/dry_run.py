"""What ``musepi compact --dry-run`` shows. No model, key, network or lock; the file is only read."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from musepi_tui.base.clock import SystemClock
from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import ProviderError
from musepi_tui.base.resources import read_prompt
from musepi_tui.base.text import group_digits
from musepi_tui.cli.compact import CompactOrder
from musepi_tui.cli.launch import Place
from musepi_tui.cli.options import Options
from musepi_tui.cli.sessions.reading import load_telling, path_to
from musepi_tui.cli.tables import print_error, print_json, print_line
from musepi_tui.context.livetail import read_live_tail
from musepi_tui.context.llm import LlmTemplates
from musepi_tui.context.prepare import PrepareOptions, has_new_messages
from musepi_tui.context.preview import Preview, PreviewOptions, Summarizer, empty_preview, preview_compaction
from musepi_tui.context.shake import AGGRESSIVE, shake_plan
from musepi_tui.context.threshold import (
    Threshold,
    ThresholdSetting,
    budget_reserve,
    parse_threshold,
    resolve_threshold,
    summary_reserve,
)
from musepi_tui.maintenance.notices import ALREADY_COMPACTED, NOTHING_TO_SHAKE, TOO_SMALL
from musepi_tui.providers.registry import AdHoc, ModelRegistry
from musepi_tui.providers.types import Model, ToolSpec
from musepi_tui.runtime.candidates import configured_names, is_harmony
from musepi_tui.runtime.project.context_files import find_context_files
from musepi_tui.runtime.project.system_prompt import render_system_prompt
from musepi_tui.runtime.summary_requests import Extras, PieceMaker
from musepi_tui.runtime.tokens import TokenService
from musepi_tui.session.entries import Entry
from musepi_tui.session.rebuild import read_state
from musepi_tui.settings.schema import CompactionSettings
from musepi_tui.storage.loading import LoadedSession
from musepi_tui.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class _Limits:
    """The window and what follows from it; None where no window is known."""

    window: int | None
    setting: ThresholdSetting
    threshold: Threshold | None
    reserve: int | None


def dry_run(order: CompactOrder, options: Options, place: Place, environ: Mapping[str, str]) -> int:
    """Prints the facts; 0 also where there is nothing to do. Raises ``SessionError``, ``UsageError``."""
    for problem in place.settings.problems:
        print_error(f"{problem.path}: {problem.message}")
    loaded = load_telling(order.file)
    path = path_to(loaded, order.leaf_id)
    registry = _registry(options, place, environ)
    model = _model_of(path, options, registry)
    compaction = place.settings.values.compaction
    tokens = _tokens(loaded, place)
    limits = _limits(compaction, model)
    wanted = _options(order, limits, tokens, _summarizer(compaction, registry, model), compaction)
    if order.strategy == "shake":
        shape = _shake_facts(path, wanted, tokens)
    else:
        preview = preview_compaction(path, wanted, tokens.estimate)
        reason = None if not preview.is_empty else TOO_SMALL if has_new_messages(path) else ALREADY_COMPACTED
        shape = _facts(preview, "summary", reason)
    _print({**shape, **_limits_json(limits)}, as_json=order.as_json)
    return 0


def _options(
    order: CompactOrder,
    limits: _Limits,
    tokens: TokenService,
    summarizer: Summarizer,
    compaction: CompactionSettings,
) -> PreviewOptions:
    templates = LlmTemplates(read_prompt("compaction-summary-context"), read_prompt("branch-summary-context"))
    reserve = summary_reserve(limits.window, compaction.reserve_tokens)
    maker = PieceMaker(tokens.count, templates, reserve, Extras(order.focus), harmony=summarizer.harmony)
    keep, other = compaction.keep_recent_tokens, tokens.non_message_tokens()
    return PreviewOptions(
        PrepareOptions(keep, limits.window, limits.threshold, other),
        reserve,
        templates,
        tokens.count,
        lambda name, previous: maker.frame(name, previous).overhead_tokens,
        summarizer,
    )


def _registry(options: Options, place: Place, environ: Mapping[str, str]) -> ModelRegistry:
    flags = AdHoc(options.provider, options.model, options.base_url, options.api_key)
    registry = ModelRegistry.load(place.paths.config, environ, flags=flags)
    for problem in registry.problems:
        print_error(problem)
    return registry


def _model_of(path: Sequence[Entry], options: Options, registry: ModelRegistry) -> Model | None:
    """The model of the flags, else the one the session names; None when nobody knows it.

    Raises ``ProviderError`` for flags that name none.
    """
    flagged = registry.flag_model() if options.model or options.provider or options.base_url else None
    if flagged is not None:
        return flagged
    recorded = read_state(path).model
    if recorded is None:
        return None
    try:
        return registry.find(*recorded)
    except ProviderError:
        return None


def _summarizer(compaction: CompactionSettings, registry: ModelRegistry, model: Model | None) -> Summarizer:
    """The model that is asked first, whether there is a key for it or not."""
    target = None if model is None else model.compaction_target
    for text in (*configured_names(compaction.model), *(() if target is None else (target,))):
        try:
            found = registry.find_text(text)[0]
        except ProviderError:
            continue
        own_window = compaction.model_context_window if text != target else None
        return Summarizer(own_window or found.context_window, found.max_tokens, is_harmony(found))
    if model is None:
        return Summarizer()
    return Summarizer(model.context_window, model.max_tokens, is_harmony(model))


def _tokens(loaded: LoadedSession, place: Place) -> TokenService:
    """The loaded tokenizer, with the system prompt and the tools a run would send."""
    tokens = TokenService(place.settings.values.tokens.estimator, place.paths.own_ranks, print_error)
    asyncio.run(tokens.ready())
    own = Path(loaded.header.cwd) if loaded.header.cwd else place.cwd
    cwd = own if own.is_dir() else place.cwd
    tools = ToolRegistry.discover()
    files = find_context_files(place.paths.config, cwd).files
    system = render_system_prompt(cwd, tools.names, files, SystemClock().now_ms())
    specs = tuple(ToolSpec(text.name, text.description, text.parameters) for text in tools.specs())
    tokens.set_overhead(system, specs)
    return tokens


def _limits(compaction: CompactionSettings, model: Model | None) -> _Limits:
    window = None if model is None else model.context_window
    setting = parse_threshold(compaction.threshold)
    if not window:
        return _Limits(None, setting, None, None)
    threshold = resolve_threshold(setting, window, compaction.reserve_tokens)
    return _Limits(window, setting, threshold, budget_reserve(window, compaction.reserve_tokens))


def _shake_facts(path: Sequence[Entry], wanted: PreviewOptions, tokens: TokenService) -> dict[str, Any]:
    """A shake: what would leave the context, in the order of the path."""
    plan = shake_plan(read_live_tail(path), tokens.estimate, AGGRESSIVE)
    empty = empty_preview(path, wanted, tokens.estimate)
    shape = _facts(empty, "shake", None if plan else NOTHING_TO_SHAKE)
    changes = plan.edits(None).changes if plan else ()
    return {**shape, "elideEntryIds": [change.target_id for change in changes]}


def _facts(preview: Preview, action: str, reason: str | None) -> dict[str, Any]:
    tokens = preview.tokens
    return {
        "ok": reason is None,
        "reason": reason,
        "action": action,
        "keepRecentTokens": preview.keep_recent_tokens,
        "tokensBefore": preview.tokens_before,
        "tokens": {"history": tokens.history, "prefix": tokens.prefix, "kept": tokens.kept},
        "firstKeptEntryId": preview.first_kept_entry_id,
        "cutIndex": preview.cut_index,
        "isSplit": preview.is_split,
        "turnStartEntryId": preview.turn_start_entry_id,
        "historyEntryIds": list(preview.history_entry_ids),
        "prefixEntryIds": list(preview.prefix_entry_ids),
        "keptEntryIds": list(preview.kept_entry_ids),
        "elideEntryIds": list(preview.elide_entry_ids),
        "previousSummary": preview.previous_summary,
        "previousCompactionId": preview.previous_compaction_id,
        "readFiles": list(preview.files.read_files),
        "modifiedFiles": list(preview.files.modified_files),
        "filesBlock": preview.files_block,
        "conversation": preview.conversation,
        "prefixConversation": preview.prefix_conversation,
        "maxOutputTokens": {"history": preview.history_limit, "prefix": preview.prefix_limit},
        "segments": None if preview.segments is None else [list(ids) for ids in preview.segments],
        "snapcompact": None,
    }


def _limits_json(limits: _Limits) -> dict[str, Any]:
    threshold = limits.threshold
    return {
        "window": limits.window,
        "threshold": None if threshold is None else threshold.tokens,
        "budgetReserve": limits.reserve,
        "thresholdClamped": threshold is not None and threshold.clamped,
        "invalidThreshold": limits.setting.invalid_raw,
    }


def _print(shape: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(shape)
    elif shape["reason"] is not None:
        print_line(shape["reason"])
    elif shape["action"] == "shake":
        print_line(
            f"{len(shape['elideEntryIds'])} messages would be shortened: {', '.join(shape['elideEntryIds'])}"
        )
    else:
        print_line(_sentence(shape))


def _sentence(shape: Mapping[str, Any]) -> str:
    tokens = shape["tokens"]
    split = f", cut inside the turn of {shape['turnStartEntryId']}" if shape["isSplit"] else ""
    return (
        f"{len(shape['historyEntryIds']) + len(shape['prefixEntryIds'])} messages of about "
        f"{group_digits(tokens['history'] + tokens['prefix'])} tokens would be summarised{split}; "
        f"{len(shape['keptEntryIds'])} of about {group_digits(tokens['kept'])} tokens stay, from entry "
        f"{shape['firstKeptEntryId']} on."
    )
