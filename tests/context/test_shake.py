import pytest

from musepi_tui.context.livetail import read_live_tail
from musepi_tui.context.offload import OffloadPlan
from musepi_tui.context.shake import AGGRESSIVE, GENTLE, ShakeConfig, dedup_plan, shake_plan
from musepi_tui.session.messages import (
    BashExecution,
    BranchSummary,
    FileMention,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    text_of,
)
from musepi_tui.session.rebuild import build_session_context
from tests.support.builders import PIXEL, a, branch_summary, call, compaction, custom, dev, t, u, words
from tests.support.tails import ESTIMATE, answered, flat, read, with_edits


def shake(entries, config=AGGRESSIVE, **protected) -> OffloadPlan:
    return shake_plan(read_live_tail(entries, **protected), ESTIMATE, config)


def dedup(entries) -> OffloadPlan:
    return dedup_plan(read_live_tail(entries), ESTIMATE)


def targets(plan):
    return [change.target_id for change in plan.edits("7").changes]


def fenced(tokens):
    """A fenced block of exactly that many tokens."""
    return f"```\n{words(tokens - 2)}\n```"


def test_gentle_shake_takes_what_is_older_than_the_newest_16000_tokens():
    entries = flat(answered("bash", 9_000), answered("grep", 8_000), answered("ls", 16_000))
    assert targets(shake(entries, GENTLE)) == ["e2", "e4"]
    entries = flat(answered("bash", 9_000), answered("grep", 8_000), answered("ls", 15_990))
    assert targets(shake(entries, GENTLE)) == ["e2"]


def test_every_message_counts_for_the_protected_window():
    entries = flat(answered("bash", 9_000), u(words(15_990)))
    assert not shake(entries, GENTLE)
    entries = flat(answered("bash", 9_000), [custom(words(10))], u(words(15_990)))
    assert targets(shake(entries, GENTLE)) == ["e2"]


@pytest.mark.parametrize(("size", "expected"), [(4_016, ["e2"]), (4_015, [])])
def test_gentle_shake_does_nothing_for_less_than_4000_tokens(size, expected):
    entries = flat(answered("bash", size), u(words(16_000)))
    assert targets(shake(entries, GENTLE)) == expected


def test_useless_results_go_inside_the_window_too():
    entries = flat(answered("grep", 5_000, useless=True), answered("bash", 5_000))
    assert targets(shake(entries, GENTLE)) == ["e2"]


@pytest.mark.parametrize(
    "group",
    [
        answered("bash", 500, error=True),
        answered("bash", 500, error=True, useless=True),
        answered("bash", ""),
        answered("bash", 16),
        read("skill://x", 500),
        read("plan.md", 500),
        [a("", [call("bash")]), t(500, tool="bash", pruned_at_ms=5)],
        [
            a("", [call("bash")]),
            t(0, tool="bash", content=(TextBlock(words(500)), ImageBlock(PIXEL, "image/png"))),
        ],
    ],
    ids=["failed", "failed-useless", "empty", "tiny", "skill", "plan", "pruned", "with-a-picture"],
)
def test_results_that_stay(group):
    assert not shake(flat(group), protected_paths={"plan.md"})


@pytest.mark.parametrize(
    "message",
    [u(fenced(400)), dev(fenced(400)), a(fenced(400)), custom(fenced(400))],
    ids=["user", "developer", "assistant", "custom"],
)
def test_large_blocks_in_texts_go(message):
    plan = shake(flat(message, u("newest")))
    assert targets(plan) == ["e1"]
    assert (plan.result_count, plan.block_count) == (0, 1)


@pytest.mark.parametrize(
    "message",
    [
        u(fenced(399)),
        u(words(5_000)),
        BashExecution("cat x", fenced(400)),
        FileMention(({"path": "x", "content": fenced(400)},)),
        branch_summary(fenced(400)),
    ],
    ids=["small-block", "plain-text", "command", "attached-file", "branch-summary"],
)
def test_texts_that_stay(message):
    assert not shake(flat(message, u("newest")))


def test_the_newest_message_of_the_person_stays():
    assert targets(shake(flat(u(fenced(900)), u(fenced(900))))) == ["e1"]


def test_nothing_before_the_kept_part_goes():
    entries = flat(answered("bash", 900), [compaction("s", "e4")], answered("bash", 900))
    assert targets(shake(entries)) == ["e5"]


def test_placeholders_and_artifact_of_a_shake():
    text = f"before\n{fenced(400)}\nbetween\n<log>\n{words(500)}\n</log>\nafter"
    plan = shake(flat(answered("bash", 900), a(text), u("newest")))
    edits = plan.edits("7")
    assert edits.changes[0].replacement == "[shaken ~900 tokens; recover: artifact://7 (region 1)]"
    assert text_of(edits.changes[1].replacement) == (
        "before\n[shaken ~400 tokens; recover: artifact://7 (region 2)]\nbetween\n"
        "[shaken ~504 tokens; recover: artifact://7 (region 3)]\nafter"
    )
    assert plan.artifact_text() == (
        f"### region 1 (bash, ~900 tok)\n\n{words(900)}\n\n"
        f"### region 2 (code, ~400 tok)\n\n{fenced(400)}\n\n"
        f"### region 3 (log, ~504 tok)\n\n<log>\n{words(500)}\n</log>\n\n"
    )
    assert plan.tokens_saved == edits.tokens_saved == 900 + 400 + 504 - 3 * 16
    assert (plan.result_count, plan.block_count) == (1, 2)


def test_placeholder_without_an_artifact_names_none():
    plan = shake(flat(answered("bash", 900)))
    assert plan.edits(None).changes[0].replacement == "[shaken ~900 tokens]"


def test_a_changed_answer_loses_signatures_but_keeps_its_calls_and_reasoning():
    answer = a(
        "",
        content=(
            ThinkingBlock("why", "sig"),
            ThinkingBlock("", "secret", redacted=True),
            TextBlock(fenced(400), "text-sig"),
            call("bash"),
        ),
    )
    content = shake(flat(answer, t("x", tool="bash"), u("newest"))).edits("7").changes[0].replacement
    assert content[0] == ThinkingBlock("why", None)
    assert content[1].signature is None
    assert content[1].text.startswith("[shaken ")
    assert content[2] == call("bash")
    assert len(content) == 3


def test_repeated_results_go_but_for_the_last():
    entries = flat(
        answered("bash", 100, command="ls", cwd="x"),
        answered("bash", 100, cwd="x", command="ls"),
        answered("bash", 100, command="ls -l"),
        answered("ls", 100, command="ls", cwd="x"),
        answered("bash", 100, command="ls", cwd="x"),
    )
    plan = dedup(entries)
    assert targets(plan) == ["e2", "e4"]
    assert plan.edits("3").changes[0].replacement == "[shaken ~100 tokens; recover: artifact://3 (region 1)]"
    assert plan.edits("3").changes[0].reason == "dedup"


@pytest.mark.parametrize(
    "groups",
    [
        (answered("bash", 100, error=True), answered("bash", 100)),
        (answered("bash", 100), answered("bash", 100, error=True)),
        (answered("bash", ""), answered("bash", "")),
        (answered("bash", 16), answered("bash", 16)),
        (read("skill://x", 100), read("skill://x", 100)),
        (answered("bash", 100), answered("bash", 101)),
    ],
    ids=["failed", "failed-later", "empty", "tiny", "protected", "other-text"],
)
def test_results_that_are_no_repetition(groups):
    assert not dedup(flat(*groups))


def test_results_without_calls_are_the_same_by_tool_and_text():
    lost = [t(100, "gone1", "bash"), t(100, "gone2", "bash"), t(100, "gone3", "grep")]
    assert [region.index for region in dedup(flat(lost)).regions] == [0]


def test_a_second_shake_changes_nothing():
    entries = flat(answered("bash", 900), a(fenced(900)), u("newest"))
    plan = shake(entries)
    assert not shake(with_edits(entries, plan.edits("1")))


def test_a_shaken_text_is_what_the_model_gets():
    entries = flat(u(fenced(900)), u("newest"))
    plan = shake(entries)
    messages = build_session_context(with_edits(entries, plan.edits("1"))).messages
    assert text_of(messages[0].content) == "[shaken ~900 tokens; recover: artifact://1 (region 1)]"


def test_limits_can_be_chosen():
    config = ShakeConfig(protect_tokens=0, min_savings=0, block_tokens=10)
    assert targets(shake(flat(a(fenced(10)), a(fenced(17)), u("x")), config)) == ["e2"]


def test_a_branch_summary_is_rebuilt_as_it_was():
    entries = flat(branch_summary("left"), answered("bash", 900))
    rebuilt = build_session_context(with_edits(entries, shake(entries).edits("1"))).messages[0]
    assert isinstance(rebuilt, BranchSummary)
    assert rebuilt.summary == "left"
