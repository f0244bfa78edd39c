from musepi_tui.context.window import path_items
from musepi_tui.session.messages import text_of
from tests.support.builders import a, branch_summary, compaction, custom, edit, path, state, t, u


def texts(entries):
    return [None if item.message is None else type(item.message).__name__ for item in path_items(entries)]


def test_only_messages_custom_messages_and_branch_summaries_have_a_message():
    entries = path(u("x"), state("label"), custom("c"), branch_summary("b"), branch_summary(""), compaction())
    assert texts(entries) == ["UserMessage", None, "CustomMessage", "BranchSummary", None, None]


def test_the_last_edit_after_its_target_wins():
    entries = path(edit("e2", "too early"), t("long"), edit("e2", "first"), edit("e2", "second"))
    assert text_of(path_items(entries)[1].message.content) == "second"


def test_an_edit_without_replacement_drops_the_message():
    assert texts(path(u("x"), a("y"), edit("e1"))) == [None, "AssistantMessage", None]
