import pytest

from musepi_tui.maintenance.triggers import TurnFinished
from musepi_tui.settings.schema import CompactionSettings, Settings
from tests.support.builders import a, path, u, words
from tests.support.fake_services import bench, model


def _desk(tokens, *, window=40_000, usage=None, **settings):
    last = a("done", usage=usage) if usage else a("done")
    return bench(
        path(u(words(tokens)), last),
        models=(model(context_window=window),),
        settings=Settings(compaction=CompactionSettings(threshold=20_000, **settings)),
    )


@pytest.mark.parametrize(
    ("tokens", "window", "expected"),
    [
        pytest.param(4_000, 40_000, True, id="four times as much would fit"),
        pytest.param(6_000, 40_000, False, id="four times as much would not"),
        pytest.param(30_000, 40_000, False, id="over it by any count"),
        pytest.param(30_000, None, True, id="no window and so no threshold"),
    ],
)
async def test_rough_count_is_enough_while_no_other_could_reach_the_threshold(tokens, window, expected):
    meter = _desk(tokens, window=window).services.meter
    assert meter.is_exact_enough(meter.measure()) is expected


async def test_exact_count_is_always_enough():
    desk = _desk(30_000)
    await desk.services.tokens.ready()
    assert desk.services.meter.is_exact_enough(desk.services.meter.measure())


@pytest.mark.parametrize(("tokens", "loaded"), [(4_000, False), (6_000, True)])
async def test_turn_loads_the_tokenizer_only_where_it_could_matter(tokens, loaded):
    desk = _desk(tokens)
    await desk.maintainer.consider(TurnFinished(desk.history.messages[-1]))
    assert desk.services.tokens.is_exact is loaded
