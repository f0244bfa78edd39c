from musepi_tui.runtime.edits import Edit
from musepi_tui.runtime.relief import Relief
from musepi_tui.session.messages import text_of
from tests.support.builders import a, call, t, u
from tests.support.history_desk import desk_at


async def test_relief_lasts_until_the_next_answer_is_billed(tmp_path):
    async with desk_at(tmp_path / "s.jsonl") as desk:
        for message in (u("one"), a(calls=[call("read", path="x")]), t("long"), a("two")):
            desk.history.append_message(message)
        relief = Relief(desk.history)
        await desk.history.commit_edits([Edit(desk.history.message_entry_ids[2], "short")])
        relief.note(100)
        desk.history.append_message(u("three"))
        assert relief.tokens == 100
        desk.history.append_message(a("four"))
        assert relief.tokens == 0


async def test_relief_ends_where_the_edits_are_not_on_the_path(tmp_path):
    async with desk_at(tmp_path / "s.jsonl") as desk:
        for message in (u("one"), a(calls=[call("read", path="x")]), t("long"), a("two")):
            desk.history.append_message(message)
        relief = Relief(desk.history)
        answer = desk.history.tree.leaf_id
        await desk.history.commit_edits([Edit(desk.history.message_entry_ids[2], "short")])
        relief.note(100)
        edited = desk.history.tree.leaf_id
        await desk.history.move_leaf(answer)
        assert (relief.tokens, text_of(desk.history.messages[2].content)) == (0, "long")
        await desk.history.move_leaf(edited)
        assert (relief.tokens, text_of(desk.history.messages[2].content)) == (100, "short")
