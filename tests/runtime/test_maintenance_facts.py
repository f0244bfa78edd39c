from musepi_tui.maintenance.chain import Chain
from musepi_tui.maintenance.facts import IdleGates
from musepi_tui.maintenance.triggers import IdleElapsed
from musepi_tui.runtime.maintenance_facts import Standing, read_facts
from musepi_tui.settings.schema import CompactionSettings, Settings
from tests.support.builders import a, path, u, words
from tests.support.fake_services import bench, model


async def test_what_the_idle_clock_knows_is_asked_after_the_tokenizer_was_waited_for():
    desk = bench(
        path(u(words(30_000)), a("done")),
        models=(model(context_window=40_000),),
        settings=Settings(compaction=CompactionSettings(threshold=20_000)),
    )
    counted_exactly: list[bool] = []

    def gates() -> IdleGates:
        counted_exactly.append(desk.services.tokens.is_exact)
        return IdleGates(editor_empty=False)

    facts = await read_facts(desk.services, IdleElapsed(), Standing(Chain(), gates))
    assert counted_exactly == [True]
    assert facts.idle.editor_empty is False
