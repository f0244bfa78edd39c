import re
import uuid

from musepi_tui.base.ids import new_entry_id, new_session_id


def test_entry_id_is_eight_hex_digits():
    assert re.fullmatch(r"[0-9a-f]{8}", new_entry_id(()))


def test_entry_id_is_drawn_again_when_taken():
    class FirstTwoTaken:
        def __init__(self):
            self.asked = []

        def __contains__(self, candidate):
            self.asked.append(candidate)
            return len(self.asked) <= 2

    taken = FirstTwoTaken()
    assert new_entry_id(taken) == taken.asked[2]


def test_session_ids_are_version_7_and_sort_by_time(monkeypatch):
    times = iter([1_750_000_000_000_000_000, 1_750_000_000_001_000_000])
    monkeypatch.setattr("time.time_ns", lambda: next(times))
    first, second = new_session_id(), new_session_id()
    assert first < second
    parsed = uuid.UUID(first)
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert parsed.int >> 80 == 1_750_000_000_000
