from musepi_tui.context.livetail import read_live_tail
from musepi_tui.context.rescue import drop_images, truncation_plan
from musepi_tui.session.messages import BashExecution, ImageBlock, TextBlock, UserMessage, text_of
from musepi_tui.session.rebuild import build_session_context
from tests.support.builders import PIXEL, a, branch_summary, call, compaction, t, u, words
from tests.support.tails import ESTIMATE, answered, flat, read, with_edits

PICTURE = ImageBlock(PIXEL, "image/png")
ALL = 10**9


def truncate(entries, needed=ALL, **protected):
    return truncation_plan(read_live_tail(entries, **protected), ESTIMATE, needed)


def targets(plan):
    return [change.target_id for change in plan.edits("7").changes]


def test_every_picture_is_dropped_and_counted():
    shot = [a("", [call("read", path="x.png")]), t("", content=(TextBlock("seen"), PICTURE, PICTURE))]
    entries = flat(u("look", images=1), shot, u("", images=3))
    drop = drop_images(read_live_tail(entries))
    assert drop.images == 6
    assert drop.edits.tokens_saved == 6 * 1_200
    assert [change.replacement for change in drop.edits.changes] == [
        (TextBlock("look"),),
        (TextBlock("seen"),),
        "[image removed]",
    ]
    assert {change.reason for change in drop.edits.changes} == {"images"}


def test_a_message_of_pictures_only_says_so():
    entries = flat(UserMessage((PICTURE,)))
    drop = drop_images(read_live_tail(entries))
    messages = build_session_context(with_edits(entries, drop.edits)).messages
    assert text_of(messages[0].content) == "[image removed]"


def test_pictures_before_the_kept_part_and_of_protected_results_stay():
    entries = flat(
        u("old", images=1),
        [compaction("s", "e3")],
        a("", [call("read", "k", path="skill://x")]),
        t("", "k", content=(TextBlock("rules"), PICTURE)),
    )
    assert not drop_images(read_live_tail(entries)).edits


def test_no_pictures_nothing_to_drop():
    drop = drop_images(read_live_tail(flat(u("x"), a("y"))))
    assert (drop.images, bool(drop.edits)) == (0, False)


def test_long_text_keeps_2000_characters_of_its_head_and_1000_of_its_tail():
    text = "h" * 2_000 + "m" * 4_000 + "t" * 1_000
    plan = truncate(flat(answered("bash", text)))
    note = "[shaken ~1000 tokens; recover: artifact://7 (region 1)]"
    content = plan.edits("7").changes[0].replacement
    assert text_of(content) == "h" * 2_000 + f"\n\n{note}\n\n" + "t" * 1_000
    assert plan.artifact_text() == f"### region 1 (bash, ~1000 tok)\n\n{'m' * 4_000}\n\n"
    assert plan.edits("7").changes[0].reason == "tail"


def test_longest_texts_go_first_until_enough_is_freed():
    entries = flat(answered("bash", 3_000), answered("grep", 9_000), answered("ls", 5_000))
    assert targets(truncate(entries, needed=1)) == ["e4"]
    assert targets(truncate(entries, needed=9_000)) == ["e4", "e6"]
    assert targets(truncate(entries)) == ["e2", "e4", "e6"]
    assert not truncate(entries, needed=0)


def test_every_kind_of_text_can_be_cut_but_the_newest_message_of_the_person():
    entries = flat(
        u(words(2_000)),
        a(words(2_000)),
        BashExecution("cat", words(2_000)),
        branch_summary(words(2_000)),
        answered("bash", 2_000, error=True),
        read("skill://x", 2_000),
        u(words(2_000)),
    )
    assert targets(truncate(entries)) == ["e1", "e2", "e3", "e4", "e6"]


def test_texts_that_would_not_get_shorter_stay():
    assert not truncate(flat(answered("bash", "x" * 3_200)))
    assert truncate(flat(answered("bash", "x" * 3_201)))


def test_a_second_cut_changes_nothing():
    entries = flat(answered("bash", 9_000), a(words(5_000)), BashExecution("cat", words(3_000)), u("newest"))
    once = with_edits(entries, truncate(entries).edits("1"))
    assert not truncate(once)
    estimates = [sum(map(ESTIMATE, build_session_context(path).messages)) for path in (entries, once)]
    assert estimates[1] < estimates[0]


def test_a_cut_command_and_branch_summary_are_what_the_model_gets():
    entries = flat(BashExecution("cat", words(3_000)), branch_summary(words(3_000)), u("newest"))
    command, summary, _ = build_session_context(with_edits(entries, truncate(entries).edits("1"))).messages
    assert "artifact://1 (region 1)" in command.output
    assert "artifact://1 (region 2)" in summary.summary
