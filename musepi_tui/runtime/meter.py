"""Figures of the status bar: context, threshold, totals (tui 1.2)."""

from collections.abc import Callable

from musepi_tui.context.threshold import Threshold, parse_threshold, resolve_threshold
from musepi_tui.context.usage import ContextMeasure, measure_context
from musepi_tui.runtime.events import Event, Meter, UsageChanged
from musepi_tui.runtime.gateway import ModelGateway
from musepi_tui.runtime.history import History
from musepi_tui.runtime.tokens import TokenService
from musepi_tui.session.messages import Usage
from musepi_tui.session.totals import Totals
from musepi_tui.settings.schema import Settings


class MeterService:
    """Measures the context of one session, for the gauge and for the decisions of maintenance alike."""

    def __init__(
        self,
        settings: Settings,
        history: History,
        gateway: ModelGateway,
        tokens: TokenService,
        emit: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._history = history
        self._gateway = gateway
        self._tokens = tokens
        self._emit = emit
        self._meter = Meter()
        self.is_automatic = settings.compaction.enabled
        """Whether passes start by themselves; the setting, until somebody switches it for this run."""

    @property
    def meter(self) -> Meter:
        """The figures as last measured."""
        return self._meter

    def measure(self, pending_tokens: int = 0) -> ContextMeasure:
        """How full the context is now; ``pending_tokens`` are those of text about to be sent."""
        history = self._history
        return measure_context(
            history.messages,
            self._tokens.estimate,
            fresh_from=history.fresh_from,
            other_tokens=self._tokens.non_message_tokens() + pending_tokens,
        )

    def threshold(self) -> Threshold | None:
        """Where maintenance starts for the current model; None when its window is unknown."""
        window = self.window
        if window is None:
            return None
        compaction = self._settings.compaction
        return resolve_threshold(parse_threshold(compaction.threshold), window, compaction.reserve_tokens)

    def threshold_tokens(self) -> int | None:
        """The same in tokens."""
        threshold = self.threshold()
        return None if threshold is None else threshold.tokens

    def is_exact_enough(self, measured: ContextMeasure) -> bool:
        """Whether the threshold is out of reach however the context is counted, or it is counted exactly.
        Without a threshold nothing is compared. ``measured`` is what was counted just now.

        Loading the tokenizer takes 84 MB and stops every thread for 0.2 s; short sessions do without. A token
        has at least one byte and the estimate takes four, so the true count is at most four times as much.
        """
        if self._tokens.is_exact:
            return True
        threshold = self.threshold_tokens()
        return threshold is None or measured.decision + 3 * measured.stored < threshold

    @property
    def window(self) -> int | None:
        """The context window of the current model in tokens."""
        model = self._gateway.model
        return model.context_window if model is not None and model.context_window else None

    def refresh(self, *, only_changes: bool = False) -> None:
        """Measures anew and tells, or tells only when something changed."""
        totals = self._history.totals
        compaction = self._settings.compaction
        measured = self.measure()
        fresh = Meter(
            context_tokens=measured.measured,
            estimated=not measured.billed,
            window=self.window,
            threshold=self.threshold_tokens(),
            totals=Usage(totals.input, totals.output, totals.cache_read, totals.cache_write),
            cost=self._known_cost(totals),
            auto_compaction=self.is_automatic and compaction.strategy != "off",
        )
        if fresh != self._meter or not only_changes:
            self._meter = fresh
            self._emit(UsageChanged(fresh))

    def _known_cost(self, totals: Totals) -> float | None:
        """US dollars so far; None while nothing had a price."""
        model = self._gateway.model
        return None if not totals.cost and (model is None or model.prices is None) else totals.cost
