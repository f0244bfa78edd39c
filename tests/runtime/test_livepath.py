"""The live part of the path of a resumed session, as maintenance reads it."""

import pytest

from musepi_tui.maintenance.triggers import ManualRequested
from musepi_tui.runtime.history import Loaded
from musepi_tui.runtime.threads import WorkStoppedError
from musepi_tui.session.codec import dump_json, dump_line, encode_header
from musepi_tui.session.entries import CompactionEntry, SessionHeader
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage.loading import load_session
from tests.support.builders import a, call, compaction, edit, path, t, u, words
from tests.support.fake_services import bench

HEADER = SessionHeader("session", "2026-01-01T00:00:00.000Z", "/project")


def resumed(folder, *parts):
    """A session with these parts, read back from a file, and its entries."""
    entries = path(*parts)
    file = folder / "s.jsonl"
    file.write_bytes(b"\n".join([dump_json(encode_header(HEADER)), *map(dump_line, entries), b""]))
    stored = load_session(file)
    context = build_session_context(stored.read_path())
    return bench(loaded=Loaded(stored.header, stored.tree, stored.bodies, context)), entries


def go_on():
    """The checkpoint of work nobody stops."""


def ids(entries):
    return [entry.id for entry in entries]


PARTS = (u("one"), a("two", [call("read", path="x")]), t("three"), edit("e3", "gone"), u("four"), a("five"))


def test_what_is_read_holds_the_messages_that_are_shown_and_nothing_twice(tmp_path):
    desk, _ = resumed(tmp_path, *PARTS)
    live = desk.history.read_live(go_on)
    shown = dict(zip(desk.history.message_entry_ids, desk.history.messages, strict=True))
    assert ids(live) == ["e1", "e2", "e3", "e4", "e5", "e6"]
    unedited = [entry for entry in live if entry.id in ("e1", "e2", "e5", "e6")]
    assert all(entry.message is shown[entry.id] for entry in unedited)
    assert live[2].message.content[0].text == "three"  # an edit changes what is shown, not the entry
    assert build_session_context(live).messages == desk.history.messages
    assert all(entry.raw is None for entry in live)


def test_nothing_is_read_from_the_file_a_second_time(tmp_path):
    desk, _ = resumed(tmp_path, *PARTS)
    first = desk.history.read_live(go_on)
    desk.say(u("six"), a("seven"))
    bodies = desk.history.bodies
    read = bodies.get
    bodies.get = lambda head: pytest.fail(f"{head.id} was read") if head.length else read(head)
    second = desk.history.read_live(go_on)
    assert second[:6] == first
    assert ids(second)[6:] == list(desk.history.message_entry_ids[-2:])


def test_only_the_live_part_is_read_and_lists_of_earlier_compactions_on_request(tmp_path):
    lists = {"readFilesAdded": ["x"], "modifiedFilesAdded": []}
    desk, _ = resumed(
        tmp_path,
        u("one"),
        a("two"),
        compaction("S", "e2", details=lists),
        u("four"),
        a("five"),
        compaction("T", "e5", details={**lists, "base": "e3"}),
        u("seven"),
    )
    assert ids(desk.history.read_live(go_on)) == ["e5", "e6", "e7"]
    assert ids(desk.history.read_live(go_on, with_earlier_lists=True)) == ["e3", "e5", "e6", "e7"]


def test_a_dropped_end_and_a_restored_one_are_followed(tmp_path):
    desk, _ = resumed(tmp_path, *PARTS)
    assert ids(desk.history.read_live(go_on))[-1] == "e6"
    end = desk.history.end()
    desk.history.drop_end("e5")
    assert ids(desk.history.read_live(go_on))[-1] == "e4"
    desk.history.restore_end(end)
    assert ids(desk.history.read_live(go_on)) == ["e1", "e2", "e3", "e4", "e5", "e6"]


async def test_after_a_compaction_the_rest_is_let_go(tmp_path):
    desk, _ = resumed(tmp_path, *(part for _ in range(4) for part in (u(words(3_000)), a(words(3_000)))))
    assert len(desk.history.read_live(go_on)) == 8
    assert (await desk.maintainer.consider(ManualRequested())).error is None
    live = desk.history.read_live(go_on)
    assert isinstance(live[-1], CompactionEntry)
    assert len(live) < 8
    assert build_session_context(live).messages == desk.history.messages


def test_reading_stops_at_a_checkpoint(tmp_path):
    desk, _ = resumed(tmp_path, *PARTS)
    seen = []

    def check():
        seen.append(1)
        if len(seen) == 3:
            raise WorkStoppedError

    with pytest.raises(WorkStoppedError):
        desk.history.read_live(check)
    assert len(desk.history.read_live(go_on)) == 6
