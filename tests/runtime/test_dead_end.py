from dataclasses import replace

import pytest

from musepi_tui.maintenance.triggers import IdleElapsed
from musepi_tui.runtime.dead_end import DeadEnd
from musepi_tui.settings.schema import CompactionSettings, Settings
from tests.support.builders import a, path, u
from tests.support.fake_services import bench, model


def say_something(desk):
    desk.say(u("and this"))


def choose_another_model(desk):
    desk.gateway.model = model("other")


def say_nothing_new(desk):
    desk.say(a("go on"))


@pytest.mark.parametrize(
    ("change", "holds"), [(say_nothing_new, True), (say_something, False), (choose_another_model, False)]
)
def test_dead_end_holds_until_message_or_model_are_others(change, holds):
    desk, dead_end = bench(path(u("hi"), a("hello"))), DeadEnd()
    dead_end.declare(desk.services, 0)
    change(desk)
    assert dead_end.holds(IdleElapsed(), desk.services) is holds


def test_dead_end_holds_until_a_setting_of_compaction_is_another():
    desk, dead_end = bench(path(u("hi"), a("hello"))), DeadEnd()
    dead_end.declare(desk.services, 0)
    other = Settings(compaction=CompactionSettings(threshold=1_000))
    assert not dead_end.holds(IdleElapsed(), replace(desk.services, settings=other))
