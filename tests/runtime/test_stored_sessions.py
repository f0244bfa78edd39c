import asyncio
from pathlib import Path

import pytest

from musepi_tui.runtime.stored_sessions import list_stored
from musepi_tui.settings.load import LoadedSettings
from musepi_tui.settings.schema import SessionSettings, Settings
from musepi_tui.storage.paths import find_paths
from tests.support.fake_runtime import FakeOptions
from tests.support.lines import chain, header_line, write_lines


def options_of(tmp_path: Path, **session) -> FakeOptions:
    paths = find_paths({"MUSEPI_HOME": str(tmp_path / "musepi"), "HOME": str(tmp_path)})
    return FakeOptions(paths, tmp_path, LoadedSettings(Settings(session=SessionSettings(**session))))


def put(folder: Path, count: int, cwd: Path) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        write_lines(folder / f"s{number}.jsonl", header_line(id=f"s{number}", cwd=str(cwd)), *chain("x"))


async def test_parts_are_told_in_the_event_loop_before_the_list_is_there(tmp_path: Path):
    options = options_of(tmp_path)
    put(options.paths.sessions / "--x--", 70, tmp_path)
    told: list[str] = []
    loop = asyncio.get_running_loop()

    def take(batch) -> None:
        assert asyncio.get_running_loop() is loop
        told.extend(row.id for row in batch.rows)

    rows = await list_stored(options, None, take)
    assert sorted(told) == sorted(row.id for row in rows)
    assert len(rows) == 70


@pytest.mark.parametrize(("foreign", "expected"), [(True, ["s0"]), (False, [])])
async def test_setting_decides_about_other_tools(tmp_path: Path, foreign, expected):
    options = options_of(tmp_path, foreign_roots=foreign)
    put(tmp_path / ".pi" / "agent" / "sessions" / "--x--", 1, tmp_path)
    assert [row.id for row in await list_stored(options, None, None)] == expected


async def test_folder_of_the_settings_takes_the_place_of_the_usual_one(tmp_path: Path):
    options = options_of(tmp_path, dir=str(tmp_path / "flat"))
    put(tmp_path / "flat", 2, tmp_path)
    put(options.paths.sessions / "--x--", 5, tmp_path)
    assert len(await list_stored(options, tmp_path, None)) == 2


async def test_reading_ends_when_nobody_waits(tmp_path: Path):
    options = options_of(tmp_path)
    put(options.paths.sessions / "--x--", 700, tmp_path)
    told: list[int] = []
    started = asyncio.Event()

    def take(batch) -> None:
        told.append(batch.done)
        started.set()

    task = asyncio.create_task(list_stored(options, None, take))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.get_running_loop().shutdown_default_executor()
    await asyncio.sleep(0)
    assert max(told) < 700
