from pathlib import Path

import pytest

from musepi_tui.base.errors import SessionError
from musepi_tui.session.entries import SessionHeader
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.entry_file import Changes
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.seeded_file import SeededFile
from musepi_tui.storage.session_file import SessionFile
from tests.support.builders import path, state, u

HEADER = SessionHeader("s-1", "2026-01-01T00:00:00.000Z", "/p")
SEED = path(state("model_change", model="a/b"), state("custom", customType="x"))
NEXT = path(*SEED, u("hi"), u("ho"))[2:]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


def seeded(file: Path) -> SeededFile:
    return SeededFile(SessionFile.create(file, HEADER, Bodies(file)), SEED)


def test_nothing_is_written_before_the_first_append(file):
    session = seeded(file)
    session.append(())
    session.sync()
    session.close()
    assert not file.exists()


@pytest.mark.parametrize("way", ["append", "rewrite"])
def test_the_seed_goes_in_front_once_and_gets_its_places(way, file):
    session = seeded(file)
    first = session.append(NEXT[:1]) if way == "append" else session.rewrite(Changes(tail=NEXT[:1]))
    second = session.append(NEXT[1:])
    session.close()
    loaded = load_session(file)
    assert [head.id for head in loaded.heads] == [entry.id for entry in (*SEED, *NEXT)]
    assert loaded.issues == ()
    assert (first.heads, second.heads) == (loaded.heads[2:3], loaded.heads[3:])
    assert dict(first.moved or {}) == {head.id: head for head in loaded.heads[:2]}


def test_an_append_that_failed_brings_the_seed_again(file):
    session = seeded(file)
    file.mkdir()
    with pytest.raises(SessionError):
        session.append(NEXT[:1])
    file.rmdir()
    session.append(NEXT[:1])
    session.close()
    assert len(load_session(file).heads) == 3
