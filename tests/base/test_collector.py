import gc

import pytest

from musepi_tui.base.collector import pause_collector, resume_collector


@pytest.fixture(autouse=True)
def _usual_collector():
    yield
    gc.enable()


def test_what_exists_at_the_end_of_the_pause_is_not_looked_at_again():
    pause_collector()
    assert not gc.isenabled()
    kept = [[] for _ in range(100)]
    resume_collector()
    assert gc.isenabled()
    assert gc.get_freeze_count() >= len(kept)


def test_resuming_without_a_pause_keeps_everything_collectable():
    before = gc.get_freeze_count()
    resume_collector()
    assert gc.get_freeze_count() == before
