from musepi_tui.context.window import path_items
from musepi_tui.session.messages import BashExecution, text_of
from tests.support.builders import a, branch_summary, call, compaction, custom, edit, path, state, t, u


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


def test_an_edit_of_a_command_or_branch_summary_is_seen():
    entries = path(BashExecution("ls", "long"), branch_summary("long"), edit("e1", "cut"), edit("e2", "cut"))
    command, summary, *_ = path_items(entries)
    assert (command.message.output, summary.message.summary) == ("cut", "cut")


def test_an_answer_a_retry_replaced_gives_no_message_nor_do_its_results():
    replaced = a("half", [call("read", "1")], extra={"retryRecovery": {"status": "recovered"}})
    entries = path(
        u("x"), replaced, state("label"), t("lost", "1"), a("", [call("read", "2")]), t("kept", "2")
    )
    assert [item.id for item in path_items(entries) if item.message is not None] == ["e1", "e5", "e6"]
