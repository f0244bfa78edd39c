import pytest

from musepi_tui.runtime.events import (
    ContextPruned,
    ExtensionFailed,
    MaintenanceEnded,
    MaintenanceResult,
    Meter,
    ModelPromoted,
)
from musepi_tui.session.messages import Cost, Usage
from musepi_tui.tui.advance import NOTICE, Advance
from musepi_tui.tui.endings import (
    ending,
    extension_failure,
    gives_queue_back,
    handoff_refusal,
    promoted,
    pruned,
    refusal,
    shaken,
)

RESULT = MaintenanceResult("c1", "e5", 231_785, 24_100, 12_400, Usage(cost=Cost(total=0.08)))


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            MaintenanceEnded("manual", "summary", result=RESULT),
            ("info", "Compacted 231,785 → 24,100 tokens in 12s ($0.08)"),
        ),
        (MaintenanceEnded("manual", "summary", aborted=True), ("info", "Compaction cancelled")),
        (MaintenanceEnded("manual", "summary", error="no"), ("error", "Compaction failed: no")),
        (
            MaintenanceEnded("manual", "summary", error="Could not save the compaction: disk full"),
            ("error", "Could not save the compaction: disk full"),
        ),
        (
            MaintenanceEnded(
                "manual", "summary", error="Compaction needs a model with credentials (/login, /model)"
            ),
            ("error", "Compaction needs a model with credentials (/login, /model)"),
        ),
        (
            MaintenanceEnded(
                "manual", "summary", error="The model returned an empty summary; nothing was changed"
            ),
            ("error", "Compaction failed: The model returned an empty summary; nothing was changed"),
        ),
        (MaintenanceEnded("manual", "summary", skipped=True), None),
        (MaintenanceEnded("manual", "shake", result=MaintenanceResult(None, None, 90, 20, 10)), None),
        (MaintenanceEnded("manual", "handoff", result=RESULT), None),
        (MaintenanceEnded("manual", "handoff", aborted=True), None),
        (MaintenanceEnded("manual", "handoff", error="x"), None),
        (MaintenanceEnded("threshold", "handoff", error="x"), ("error", "x")),
        (MaintenanceEnded("threshold", "summary", skipped=True), None),
        (MaintenanceEnded("threshold", "summary", result=RESULT), None),
        (MaintenanceEnded("threshold", "summary", aborted=True), ("info", "Auto-compaction cancelled")),
        *(
            (MaintenanceEnded(reason, "summary", error=f"{lead}: x"), ("error", f"{lead}: x"))
            for reason, lead in (
                ("overflow", "Context overflow recovery failed"),
                ("incomplete", "Incomplete response recovery failed"),
                ("threshold", "Auto-compaction failed"),
                ("idle", "Auto-compaction failed"),
            )
        ),
    ],
)
def test_ending_says_what_the_divider_does_not(event, told):
    assert ending(event) == told


@pytest.mark.parametrize(
    ("error", "level"),
    [
        ("Handoff cancelled", "info"),
        ("Nothing to hand off (no messages yet)", "info"),
        ("The model returned an empty handoff document; nothing was changed.", "warning"),
    ],
)
def test_handoff_that_did_nothing_says_why(error, level):
    assert handoff_refusal(error) == (level, error)


def test_refused_compaction_is_a_friendly_line():
    assert refusal("Already compacted", None) == ("info", "Already compacted")
    skipped = MaintenanceEnded("manual", "summary", skipped=True)
    assert refusal("Already compacted", skipped) == ("info", "Already compacted")


@pytest.mark.parametrize("fields", [{"aborted": True}, {"error": "x"}])
def test_what_the_pass_told_is_not_told_again(fields):
    assert refusal("x", MaintenanceEnded("manual", "summary", **fields)) is None


@pytest.mark.parametrize(
    ("event", "gives"),
    [
        (MaintenanceEnded("overflow", "summary", error="x"), True),
        (MaintenanceEnded("overflow", "summary", aborted=True), False),
        (MaintenanceEnded("overflow", "summary", result=RESULT), False),
        (MaintenanceEnded("threshold", "summary", error="x"), False),
    ],
)
def test_only_a_failed_overflow_recovery_gives_the_queue_back(event, gives):
    assert gives_queue_back(event) is gives


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (ContextPruned("threshold", 8, 31_400), "Pruned 8 old tool results (~31k tokens)"),
        (ContextPruned("superseded", 1, 900), "Pruned 1 superseded read (~900 tokens)"),
        (ContextPruned("useless", 2, 0), "Pruned 2 uneventful tool results"),
        (ContextPruned("dedup", 3, 4_100), "Pruned 3 repeated tool results (~4.1k tokens)"),
        (ContextPruned("images", 2, 2_400), "Pruned 2 messages with images (~2.4k tokens)"),
        (ContextPruned("new-kind", 2, 10), "Pruned 2 messages (~10 tokens)"),
    ],
)
def test_pruning_is_told_with_its_kind_and_tokens(event, text):
    assert pruned(event) == ("info", text)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            {"mode": "elide", "toolResults": 12, "blocks": 3, "tokensFreed": 41_200},
            "Shaken: 12 tool results, 3 blocks (~41,200 tokens freed)",
        ),
        (
            {"mode": "elide", "toolResults": 1, "blocks": 0, "tokensFreed": 900},
            "Shaken: 1 tool result (~900 tokens freed)",
        ),
        ({"mode": "elide", "toolResults": 0, "blocks": 0}, "Nothing to shake"),
        ({"mode": "images", "images": 4, "tokensFreed": 4_800}, "4 images dropped"),
        ({"mode": "images", "images": 0}, "No images in this session"),
    ],
)
def test_shake_reports_what_it_took_out(data, text):
    assert shaken(data) == ("info", text)


def test_promotion_and_extension_failure_are_told():
    assert promoted(ModelPromoted("a/small", "a/big", "context")) == (
        "info",
        "Switched to a/big for a larger window",
    )
    assert extension_failure(ExtensionFailed("notes", "session_compact", "no file.")) == (
        "warning",
        "The extension notes failed at session_compact: no file.",
    )
    assert extension_failure(ExtensionFailed("notes", "turn_end", "slow", switched_off=True)) == (
        "warning",
        "The extension notes failed at turn_end: slow. It is not called any more.",
    )


def near(tokens: int | None, **fields: object) -> Meter:
    return Meter(**{"context_tokens": tokens, "window": 200_000, "threshold": 100_000, **fields})


def test_next_compaction_is_announced_once_per_crossing():
    advance = Advance()
    figures = [89_999, 90_000, 95_000, 20_000, 91_000]
    assert [advance.take(near(tokens)) for tokens in figures] == [None, NOTICE, None, None, NOTICE]


def test_nothing_is_announced_that_was_so_at_the_start_or_is_due_or_off():
    advance = Advance()
    advance.start(near(95_000))
    assert advance.take(near(96_000)) is None
    assert Advance().take(near(100_001)) is None
    assert Advance().take(near(95_000, auto_compaction=False)) is None
    assert Advance().take(near(None)) is None
