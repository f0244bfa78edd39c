"""Every call that changes a file fails, or is the last one: the session is the old or the new one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from musepi_tui.base.errors import SessionError
from musepi_tui.session.codec import dump_line
from musepi_tui.session.entries import Entry
from musepi_tui.storage.entry_file import Changes
from musepi_tui.storage.lines import Title
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.session_file import SessionFile
from tests.support.builders import entry, path, u
from tests.support.faults import dies_at, failing
from tests.support.lines import chain, dump, header_line
from tests.support.minimal_reader import read_session
from tests.support.random_sessions import HEADER
from tests.support.stored import keeps_the_rules

SLOT = b'{"type":"title","v":1,"title":"Tally","source":"user","updatedAt":"2026-01-02T00:00:00.000Z","pad":"'
SOUND = b"".join(map(dump, [header_line(), *chain(*"abcdef")]))
NEW = path(*(u(f"new {number} " * 20) for number in range(4)), ids=["new0", "new1", "new2", "new3"])

Step = Callable[[SessionFile], object]


def append(*entries: Entry) -> Step:
    return lambda session: session.append(entries)


def rewrite(changes: Callable[[SessionFile], Changes]) -> Step:
    return lambda session: session.rewrite(changes(session))


def sync(session: SessionFile) -> None:
    session.sync()


@dataclass(frozen=True)
class Scenario:
    """What the file holds at first (None: there is none) and what is done with it."""

    before: bytes | None
    steps: Sequence[Step]
    new_ids: Sequence[str] = ()


def _old_version() -> bytes:
    records = [{key: line[key] for key in line if key not in ("id", "parentId")} for line in chain(*"abcd")]
    return b"".join(map(dump, [header_line(None), *records]))


def _changed_line(_: SessionFile) -> Changes:
    return Changes(lines={"e2": dump_line(entry(u("another text " * 9), "e2", "e1"))})


def _changed_header(_: SessionFile) -> Changes:
    return Changes(header=replace(HEADER, id="s-1", cwd="/somewhere/else"), tail=(NEW[0],))


def _changed_title(_: SessionFile) -> Changes:
    return Changes(title=Title("Other", "user", "2026-01-03T00:00:00.000Z"))


ALL_NEW = [made.id for made in NEW]
APPENDS = [append(NEW[0]), append(*NEW[1:3]), sync, append(NEW[3])]
SCENARIOS: dict[str, Scenario] = {
    "create": Scenario(None, APPENDS, ALL_NEW),
    "append": Scenario(SOUND, APPENDS, ALL_NEW),
    "append behind a torn tail": Scenario(SOUND + b'{"type":"mess', APPENDS, ALL_NEW),
    "bring an old version up": Scenario(_old_version(), APPENDS, ALL_NEW),
    "change a line": Scenario(SOUND, [rewrite(_changed_line), append(NEW[0])], ALL_NEW[:1]),
    "change the header": Scenario(SOUND, [rewrite(_changed_header), append(NEW[1])], ALL_NEW[:2]),
    "change the title slot": Scenario(
        SLOT.ljust(253) + b'"}\n' + SOUND,
        [rewrite(_changed_title), append(NEW[0])],
        ALL_NEW[:1],
    ),
}


def prepare(scenario: Scenario, folder: Path) -> Path:
    folder.mkdir()
    file = folder / "s.jsonl"
    if scenario.before is not None:
        file.write_bytes(scenario.before)
    return file


def opened(scenario: Scenario, file: Path) -> SessionFile:
    if scenario.before is None:
        return SessionFile.create(file, HEADER)
    return SessionFile.open(file, load_session(file))


def ids_in(file: Path) -> list[str]:
    return [head.id for head in load_session(file, thorough=True).heads]


def old_ids(scenario: Scenario, folder: Path) -> list[str]:
    if scenario.before is None:
        return []
    (folder / "old.jsonl").write_bytes(scenario.before)
    return read_session(folder / "old.jsonl").order


def assert_nothing_is_lost(file: Path, old: list[str], new: Sequence[str], where: str) -> None:
    """The old entries, then the first ones of the new, each once, in a file that keeps the rules."""
    if not old and (not file.exists() or file.stat().st_size == 0):
        return
    ids = ids_in(file)
    assert ids == [*old, *new][: len(ids)], where
    assert len(ids) >= len(old), where
    assert keeps_the_rules(file), where


@pytest.mark.parametrize("halfway", [False, True], ids=["before the call", "halfway"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_process_gone_at_any_call_leaves_a_session_that_goes_on(name, halfway, tmp_path):
    scenario = SCENARIOS[name]
    old = old_ids(scenario, tmp_path)
    at = 0
    while True:
        at += 1
        file = prepare(scenario, tmp_path / f"{at}")

        def work(file: Path = file) -> None:
            session = opened(scenario, file)
            for step in scenario.steps:
                step(session)
            session.close()

        died = dies_at(at, work, halfway=halfway)
        assert_nothing_is_lost(file, old, scenario.new_ids, f"call {at}")
        if not died:
            break
        if file.exists() and file.stat().st_size:
            before = ids_in(file)
            session = SessionFile.open(file, load_session(file))
            session.append([entry(u("after the crash"), "after", before[-1] if before else None)])
            session.close()
            assert ids_in(file) == [*before, "after"], f"call {at}"
    assert at > 8
    assert ids_in(file) == [*old, *scenario.new_ids]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_call_that_fails_can_be_tried_again_and_nothing_is_there_twice(name, tmp_path):
    scenario = SCENARIOS[name]
    old = old_ids(scenario, tmp_path)
    at, reached = 0, True
    while reached:
        at += 1
        file = prepare(scenario, tmp_path / f"{at}")
        session = opened(scenario, file)
        done = 0
        with failing(at) as was_reached:
            try:
                for step in scenario.steps:
                    step(session)
                    done += 1
            except SessionError as error:
                assert str(file) in str(error)
            reached = was_reached()
        assert_nothing_is_lost(file, old, scenario.new_ids, f"call {at}")
        for step in scenario.steps[done:]:
            if step is sync:
                session.rewrite(Changes(tail=tuple(NEW[:3])))  # as the runtime does after a failed sync
            else:
                step(session)
        session.close()
        assert ids_in(file) == [*old, *scenario.new_ids], f"call {at}"
        assert keeps_the_rules(file)
        assert not list(file.parent.glob("*.tmp")), f"call {at}"
