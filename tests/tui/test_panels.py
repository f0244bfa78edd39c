import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from musepi_tui.runtime.intents import DeleteSession, OpenSession, RenameSession, SelectModel, SetName
from musepi_tui.storage.listing import Batch, DamagedFile, SessionInfo
from musepi_tui.tui.screens.panel import matches
from musepi_tui.tui.screens.session_rows import age
from tests.support.builders import START_MS
from tests.support.screens import on_stage

TITLES = ("Fix the parser", "Write the notes", "Why is it slow?")


def info(number: int, title: str) -> SessionInfo:
    time = f"2025-06-15T{14 - number:02}:00:00.000Z"
    return SessionInfo(
        Path(f"/s/{number}.jsonl"),
        f"id{number}",
        "/home/ada/parser",
        title,
        time,
        time,
        10 + number,
        1,
        "musepi",
        "complete",
    )


def with_sessions(runtime):
    runtime.sessions = [info(number, title) for number, title in enumerate(TITLES)]


def foreign_info(number: int, title: str, tool: str, **fields: object) -> SessionInfo:
    path = Path(f"/other/{tool}-{number}.jsonl")
    return replace(info(number, title), path=path, id=f"{tool}{number}", tool=tool, is_own=False, **fields)


FOREIGN = (
    foreign_info(3, "Port the lexer to Rust", "pi", imported=True, cwd="/home/ada/parser"),
    foreign_info(4, "Plan the release", "claude", cwd="/home/ada/work/a-rather-long-folder/website"),
    foreign_info(5, "Rename the modules", "codex", messages_exact=False),
    foreign_info(6, "Old notes", "musepi"),
)
DAMAGED = (
    DamagedFile(Path("/s/torn.jsonl"), "line 1: first record is not a session header", "musepi", ""),
    DamagedFile(Path("/s/pipe.jsonl"), "not a regular file", "musepi", ""),
)


def with_foreign_sessions(runtime):
    """Sessions of several tools and files that are none, read in two parts."""
    own = tuple(info(number, title) for number, title in enumerate(TITLES))
    runtime.sessions = (*own, *FOREIGN)
    runtime.batches = (
        Batch(own, done=3, total=9),
        Batch(FOREIGN, DAMAGED, ("s.jsonl was missing; its backup took its place",), done=9, total=9),
    )


async def test_rows_of_other_tools_name_them(tmp_path):
    async with on_stage(tmp_path, size=(120, 40), prepare=with_foreign_sessions) as stage:
        stage.app.host.show("resume")
        await stage.shows("pi, imported · 13 messages · 4h")
        assert "Claude Code · 14 messages" in stage.text
        assert "Codex · 15+ messages" in stage.text
        assert "MusePi · 16 messages" in stage.text
        assert "musepi ·" not in stage.text
        await stage.press("ctrl+a")
        await stage.shows("Claude Code · …her-long-folder/website")
        await stage.type("claude")
        await stage.until(lambda: "Rename the modules" not in stage.text)
        assert "Plan the release" in stage.text


async def test_damaged_files_are_reached_by_keys_and_say_why_they_cannot_be_opened(tmp_path):
    reason = "line 1: first record is not a session header"
    async with on_stage(tmp_path, size=(50, 14), prepare=with_foreign_sessions) as stage:
        stage.app.host.show("resume")
        await stage.shows("Fix the parser")
        await stage.press("end", "up")
        await stage.shows("torn.jsonl")
        assert reason not in stage.text
        await stage.press("enter")
        await stage.shows(reason)
        await stage.press("end")
        await stage.shows("musepi sessions check /s/torn.jsonl")
        await stage.press("escape")
        await stage.press("home", "enter")
        assert stage.sent == [OpenSession("/s/0.jsonl")]


async def test_list_fills_while_the_marked_row_stays(tmp_path):
    parts = [info(number, f"Session number {number}") for number in range(12)]

    def slow(runtime):
        async def read(*, everywhere, progress):
            runtime.progress = progress
            progress(Batch(tuple(parts[4:6]), done=2, total=1200))
            await runtime.go_on.wait()
            return tuple(parts)

        runtime.go_on = asyncio.Event()
        runtime.list_sessions = read

    async with on_stage(tmp_path, size=(100, 40), prepare=slow) as stage:
        stage.app.host.show("resume")
        await stage.shows("Sessions · 2 of 1,200 read")
        await stage.press("down")
        assert stage.app.screen.chosen.label == "Session number 5"
        stage.runtime.progress(Batch(tuple(parts[6:]), done=8, total=1200))
        assert stage.app.screen.chosen.label == "Session number 5"
        await stage.shows("Session number 11")
        stage.runtime.go_on.set()
        await stage.shows("Session number 0")
        assert stage.app.screen.chosen.label == "Session number 5"
        assert "read" not in stage.text


def growing(parts):
    """A listing that tells ``parts[0]``, the other one when it may go on, and ends when it may settle."""

    def prepare(runtime):
        async def read(*, everywhere, progress):
            progress(Batch(tuple(parts[0]), total=1))
            await runtime.go_on.wait()
            progress(Batch(tuple(parts[1]), done=33, total=33))
            await runtime.may_settle.wait()
            return (*parts[1], *parts[0])

        runtime.go_on, runtime.may_settle = asyncio.Event(), asyncio.Event()
        runtime.list_sessions = read

    return prepare


KNOWN = [
    replace(info(number, f"Known {number}"), modified=f"2025-06-14T00:{59 - number}:00Z")
    for number in range(30)
]
NEWER = [
    replace(info(100 + number, f"Newer {number}"), modified=f"2025-06-14T01:{59 - number}:00Z")
    for number in range(3)
]


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 12)])
async def test_newest_session_is_marked_and_seen_when_it_comes_in_later(tmp_path, size):
    async with on_stage(tmp_path, size=size, prepare=growing([KNOWN, NEWER])) as stage:
        stage.app.host.show("resume")
        await stage.shows("› Known 0")
        stage.runtime.go_on.set()
        await stage.shows("› Newer 0")
        stage.runtime.may_settle.set()
        await stage.settle()
        assert "› Newer 0" in stage.text
        await stage.press("enter")
        assert stage.sent == [OpenSession("/s/100.jsonl")]


@pytest.mark.parametrize(("steps", "head_is_seen"), [(1, True), (25, False)])
async def test_session_the_person_marked_stays_marked_and_seen_when_newer_ones_come_in(
    tmp_path, steps, head_is_seen
):
    async with on_stage(tmp_path, size=(80, 24), prepare=growing([KNOWN, NEWER])) as stage:
        stage.app.host.show("resume")
        await stage.shows("› Known 0")
        await stage.press(*["down"] * steps)
        stage.runtime.go_on.set()
        stage.runtime.may_settle.set()
        await stage.until(lambda: len(stage.app.screen.items) == 33)
        await stage.shows(f"› Known {steps}")
        assert ("Newer 0" in stage.text) == head_is_seen


async def test_parts_of_a_list_nobody_wants_any_more_are_dropped(tmp_path):
    def scoped(runtime):
        runtime.progress = []

        async def read(*, everywhere, progress):
            runtime.progress.append(progress)
            return (info(1, "Everywhere" if everywhere else "Here"),)

        runtime.list_sessions = read

    async with on_stage(tmp_path, prepare=scoped) as stage:
        stage.app.host.show("resume")
        await stage.shows("Here")
        await stage.press("ctrl+a")
        await stage.shows("Everywhere")
        stage.runtime.progress[0](Batch((info(2, "Late"),), done=1, total=1))
        await stage.settle()
        assert "Late" not in stage.text


async def test_notices_of_the_listing_are_told(tmp_path):
    async with on_stage(tmp_path, prepare=with_foreign_sessions) as stage:
        stage.app.host.show("resume")
        await stage.shows("Fix the parser")
        await stage.press("escape")
        await stage.shows("its backup took its place")


@pytest.mark.parametrize(
    ("argument", "path"), [("/a/b.jsonl", "/a/b.jsonl"), ("c.jsonl", "/home/ada/parser/c.jsonl")]
)
async def test_argument_that_is_a_path_is_opened_as_one(tmp_path, argument, path):
    async with on_stage(tmp_path) as stage:
        await stage.paste(f"/resume {argument}")
        await stage.press("enter")
        await stage.until(lambda: bool(stage.sent))
        assert stage.sent == [OpenSession(path)]


async def test_all_folders_can_be_asked_for_with_the_command(tmp_path):
    asked = []

    def scoped(runtime):
        async def read(*, everywhere, progress=None):
            asked.append(everywhere)
            return tuple(info(number, title) for number, title in enumerate(TITLES))

        runtime.list_sessions = read

    async with on_stage(tmp_path, prepare=scoped) as stage:
        await stage.paste("/resume --all slow")
        await stage.press("enter")
        await stage.shows("Why is it slow?")
        assert "Sessions · all folders" in stage.text
        assert "Fix the parser" not in stage.text
        assert set(asked) == {True}


async def test_sessions_of_this_folder_come_first_among_all(tmp_path):
    def mixed(runtime):
        elsewhere = tuple(replace(info(number, f"Elsewhere {number}"), cwd="/srv") for number in (1, 2))
        runtime.sessions = (elsewhere[0], info(3, "Here"), elsewhere[1])

    async with on_stage(tmp_path, prepare=mixed) as stage:
        await stage.paste("/resume --all")
        await stage.press("enter")
        await stage.shows("Elsewhere 2")
        assert [item.label for item in stage.app.screen.items] == ["Here", "Elsewhere 1", "Elsewhere 2"]


async def test_enter_takes_the_best_hit_also_while_the_list_fills(tmp_path):
    long_prompt = replace(info(1, "Other work"), first_message="many or different edits, mode included")
    exact = info(2, "mode")

    def slow(runtime):
        async def read(*, everywhere, progress):
            progress(Batch((long_prompt,), done=1, total=9))
            await runtime.go_on.wait()
            progress(Batch((exact,), done=9, total=9))
            return (long_prompt, exact)

        runtime.go_on = asyncio.Event()
        runtime.list_sessions = read

    async with on_stage(tmp_path, prepare=slow) as stage:
        stage.app.host.show("resume")
        await stage.shows("Other work")
        await stage.type("mode")
        assert stage.app.screen.chosen.label == "Other work"
        stage.runtime.go_on.set()
        await stage.until(lambda: len(stage.app.screen.items) == 2)
        await stage.press("enter")
        assert stage.sent == [OpenSession("/s/2.jsonl")]


async def test_the_open_session_is_marked_by_its_file(tmp_path):
    folder = tmp_path / "sessions"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)

    def copies(runtime):
        same = [replace(info(number, title), id="same") for number, title in enumerate(TITLES)]
        files = (folder / "a.jsonl", folder / "b.jsonl", tmp_path / "a.jsonl")
        runtime.sessions = [replace(row, path=file) for row, file in zip(same, files, strict=True)]
        runtime.view_now = replace(runtime.view_now, file=tmp_path / "link" / "a.jsonl")

    async with on_stage(tmp_path, prepare=copies) as stage:
        stage.app.host.show("resume")
        await stage.shows("Fix the parser ✓")
        assert stage.text.count("✓") == 1


async def test_pasted_text_searches_as_text_and_its_first_line_alone(tmp_path):
    async with on_stage(tmp_path, prepare=with_sessions) as stage:
        stage.app.host.show("resume")
        await stage.shows("Fix the parser")
        await stage.paste("\r\nwri\x1b[31mte\x1b[5;5H\tthe\rrm -rf")
        assert stage.app.screen.query_text.split() == ["write", "the"]
        assert "\x1b" not in stage.app.screen.query_text
        await stage.until(lambda: "Fix the parser" not in stage.text)
        assert "Write the notes" in stage.text


async def test_other_orders_and_named_sessions_only(tmp_path):
    def rows(runtime):
        prompt = replace(info(0, "Make it fast"), first_message="Make it fast", size=10)
        named = replace(info(1, "Speed"), first_message="Make it faster", size=2_000)
        bare = replace(info(2, "Untitled · 12:00"), is_named=False, size=30)
        runtime.sessions = (prompt, replace(named, created="2025-06-15T15:00:00.000Z"), bare)

    def labels() -> list[str]:
        return [item.label for item in stage.app.screen.items]

    async with on_stage(tmp_path, size=(120, 24), prepare=rows) as stage:
        stage.app.host.show("resume")
        await stage.shows("Make it fast")
        await stage.press("ctrl+s")
        await stage.shows("Sessions · newest first")
        await stage.press("ctrl+s")
        await stage.shows("Sessions · by creation")
        assert labels() == ["Speed", "Make it fast", "Untitled · 12:00"]
        await stage.press("ctrl+s")
        await stage.shows("2.0kB")
        assert labels() == ["Speed", "Untitled · 12:00", "Make it fast"]
        await stage.press("ctrl+s", "ctrl+p")
        await stage.shows("/s/0.jsonl")
        await stage.press("ctrl+n")
        await stage.shows("Sessions · named")
        assert labels() == ["Speed"]


async def test_a_session_is_deleted_after_a_yes_only(tmp_path):
    async with on_stage(tmp_path, prepare=with_sessions) as stage:
        stage.app.host.show("resume")
        await stage.shows("Write the notes")
        await stage.press("down", "ctrl+d")
        await stage.shows("Delete Write the notes?")
        await stage.press("enter")
        assert stage.sent == []
        await stage.press("ctrl+d")
        await stage.shows("move it to the trash")
        await stage.press("down", "enter")
        assert stage.sent == [DeleteSession("/s/1.jsonl")]
        stage.runtime.settle(left=["/s/1.artifacts"])
        await stage.until(lambda: len(stage.app.screen.items) == 2)
        assert stage.app.screen.chosen.label == "Why is it slow?"
        await stage.press("escape")
        await stage.shows("Moved to the trash: Write the notes")
        assert "/s/1.artifacts belonged to the session" in stage.text


async def test_a_session_that_cannot_be_deleted_stays_in_the_list(tmp_path):
    async with on_stage(tmp_path, prepare=with_sessions) as stage:
        stage.app.host.show("resume")
        await stage.shows("Write the notes")
        await stage.press("ctrl+d", "down", "enter")
        stage.runtime.settle(error="/s/0.jsonl could not be moved to the trash: no room")
        await stage.settle()
        assert len(stage.app.screen.items) == 3
        assert "could not be moved to the trash: no room" in stage.text.split("─ Sessions ─")[1]
        await stage.press("escape")
        await stage.shows("could not be moved to the trash")


async def test_long_title_is_cut_where_it_is_asked_about_and_shows_its_end_where_it_is_typed(tmp_path):
    def long_title(runtime):
        runtime.sessions = [info(0, "Read the manual " * 8 + "and stop")]

    async with on_stage(tmp_path, prepare=long_title) as stage:
        stage.app.host.show("resume")
        await stage.shows("Read the manual")
        await stage.press("ctrl+d")
        await stage.shows("─ Delete Read the manual")
        lines = stage.text.split("\n")
        assert next(line for line in lines if line.startswith("─ Delete")).endswith("… ─")
        await stage.press("escape", "ctrl+r")
        await stage.type("ped")
        await stage.shows("manual and stopped")


async def test_a_session_gets_another_name(tmp_path):
    async with on_stage(tmp_path, prepare=with_sessions) as stage:
        stage.app.host.show("resume")
        await stage.shows("Write the notes")
        await stage.press("down", "ctrl+r")
        await stage.shows("Call it Write the notes")
        await stage.press("ctrl+u")
        await stage.shows("Take its name away")
        await stage.type("The big plan")
        await stage.press("enter")
        assert stage.sent == [RenameSession("/s/1.jsonl", "The big plan")]
        stage.runtime.settle(name="The big plan")
        await stage.shows("The big plan")
        assert stage.app.screen.chosen.label == "The big plan"


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (("ctrl+d",), "go to another one first"),
        (("down", "ctrl+d"), "pi keeps this session"),
        (("down", "ctrl+r"), "pi keeps this session"),
    ],
)
async def test_what_may_not_be_changed_says_so_in_the_list(tmp_path, keys, told):
    def rows(runtime):
        runtime.sessions = (info(0, "Mine"), FOREIGN[0])
        runtime.view_now = replace(runtime.view_now, file=Path("/s/0.jsonl"))

    async with on_stage(tmp_path, prepare=rows) as stage:
        stage.app.host.show("resume")
        await stage.shows("Port the lexer")
        await stage.press(*keys)
        await stage.shows(told)
        assert stage.sent == []


async def test_the_open_session_is_renamed_as_the_open_one(tmp_path):
    def rows(runtime):
        with_sessions(runtime)
        runtime.view_now = replace(runtime.view_now, file=Path("/s/0.jsonl"))

    async with on_stage(tmp_path, prepare=rows) as stage:
        stage.app.host.show("resume")
        await stage.shows("Fix the parser")
        await stage.press("ctrl+r")
        await stage.type("!")
        await stage.press("enter")
        assert stage.sent == [SetName("Fix the parser!")]


async def test_resume_lists_sessions_and_opens_the_marked_one(tmp_path):
    async with on_stage(tmp_path, prepare=with_sessions) as stage:
        await stage.paste("/resume")
        await stage.press("enter")
        await stage.shows("Fix the parser")
        assert "10 messages · 1h" in stage.text
        await stage.press("down", "enter")
        assert stage.sent == [OpenSession("/s/1.jsonl")]


async def test_resume_search_narrows_the_list(tmp_path):
    async with on_stage(tmp_path, prepare=with_sessions) as stage:
        await stage.paste("/resume slow")
        await stage.press("enter")
        await stage.shows("Why is it slow?")
        assert "Write the notes" not in stage.text
        await stage.press("ctrl+u")
        await stage.shows("Write the notes")
        await stage.type("zzz")
        await stage.shows("no session fits")
        await stage.press("enter")
        await stage.press("escape")
        assert stage.sent == []


async def test_enter_keeps_the_list_open_when_the_search_found_nothing(tmp_path):
    async with on_stage(tmp_path, prepare=with_sessions) as stage:
        await stage.paste("/resume")
        await stage.press("enter")
        await stage.shows("Fix the parser")
        await stage.type("zzz")
        await stage.shows("no session fits")
        await stage.press("enter")
        await stage.press("backspace", "backspace", "backspace")
        await stage.shows("Fix the parser")
        assert stage.sent == []


async def test_hostile_title_is_shown_as_text(tmp_path):
    def hostile(runtime):
        runtime.sessions = [info(0, "[red]x\x1b]52;c;aGk=\x07 [/nope]")]

    async with on_stage(tmp_path, prepare=hostile) as stage:
        stage.app.host.show("resume")
        await stage.shows("[red]x [/nope]")


async def test_failed_listing_is_told_in_the_panel(tmp_path):
    def broken(runtime):
        async def fail(**_):
            raise OSError("disk gone")

        runtime.list_sessions = fail

    async with on_stage(tmp_path, prepare=broken) as stage:
        stage.app.host.show("resume")
        await stage.shows("cannot be listed: disk gone")


async def test_model_picker_filters_and_selects(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.press("alt+m")
        await stage.shows("anthropic/claude-sonnet ✓")
        assert "200k window · thinking" in stage.text
        await stage.type("gpt")
        await stage.press("enter")
        assert stage.sent == [SelectModel("openai", "gpt-large")]


async def test_model_argument_with_one_match_selects_at_once(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.paste("/model gpt")
        await stage.press("enter")
        assert stage.sent == [SelectModel("openai", "gpt-large")]


async def test_model_with_a_window_smaller_than_the_context_is_pointed_out(tmp_path):
    from musepi_tui.runtime.events import Meter

    meter = Meter(context_tokens=150_000, window=200_000)
    async with on_stage(tmp_path, meter=meter) as stage:
        await stage.paste("/model gpt")
        await stage.press("enter")
        await stage.shows("larger than the window of gpt-large")


async def test_theme_panel_previews_and_escape_restores(tmp_path):
    async with on_stage(tmp_path) as stage:
        stage.app.host.show("theme")
        await stage.settle()
        await stage.press("end")
        await stage.settle()
        assert stage.app.looks.palette.name == "mono"
        await stage.press("escape")
        await stage.settle()
        assert stage.app.looks.palette.name == "dark"
        assert not (tmp_path / "config" / "settings.json").exists()


async def test_chosen_theme_is_remembered(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.paste("/theme light")
        await stage.press("enter")
        await stage.settle()
        assert stage.app.looks.palette.name == "light"
        assert json.loads((tmp_path / "config" / "settings.json").read_text())["theme"] == "light"


async def test_unknown_theme_changes_nothing(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.paste("/theme pink")
        await stage.press("enter")
        await stage.shows('There is no theme "pink"')
        assert stage.app.looks.palette.name == "dark"


async def test_broken_theme_setting_starts_with_a_notice(tmp_path):
    from musepi_tui.settings.load import LoadedSettings
    from musepi_tui.settings.schema import Settings

    def pink(runtime):
        runtime.options.settings = LoadedSettings(Settings(theme="pink"))

    async with on_stage(tmp_path, prepare=pink) as stage:
        await stage.shows('There is no theme "pink"')


async def test_help_scrolls_and_searches(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.paste("/help")
        await stage.press("enter")
        await stage.shows("/compact [mode] [focus]")
        assert "Modes (/mode)" not in stage.text
        await stage.press("end")
        await stage.shows("everything runs without asking")
        await stage.type("yolo")
        await stage.settle()
        assert "/compact" not in stage.text
        await stage.press("escape")
        await stage.type("a")
        assert stage.draft == "a"


async def test_hotkeys_show_the_keys_of_the_user(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "keybindings.json").write_text(
        json.dumps({"app.tools.expand": "f2", "app.retry": []})
    )
    async with on_stage(tmp_path, size=(110, 40)) as stage:
        stage.app.host.show("hotkeys", "app.")
        await stage.shows("f2")
        assert "no key" in stage.text


@pytest.mark.parametrize(
    "size", [(1, 1), (40, 12), *(pytest.param(size, marks=pytest.mark.slow) for size in ((5, 3), (200, 60)))]
)
@pytest.mark.parametrize("screen", ["resume", "model", "theme", "help", "hotkeys", "yolo"])
async def test_panels_open_at_every_size(tmp_path, size, screen):
    async with on_stage(tmp_path, size=size, prepare=with_sessions) as stage:
        stage.app.host.show(screen)
        await stage.settle()
        await stage.press("down", "pagedown", "pageup", "home", "end", "up")
        await stage.press("escape")
        await stage.type("a")
        assert stage.draft == "a"


@pytest.mark.parametrize(
    ("query", "text", "fits"),
    [
        ("", "anything", True),
        ("sonnet", "anthropic/claude-sonnet", True),
        ("ant son", "anthropic/claude-sonnet", True),
        ("acs", "anthropic/claude-sonnet", True),
        ("sca", "anthropic/claude", False),
        ("GPT", "openai/gpt-large", True),
    ],
)
def test_search_takes_letters_in_order(query, text, fits):
    assert matches(query, text) is fits


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        ("2025-06-15T15:06:00.000Z", "now"),
        ("2025-06-15T15:01:00.000Z", "5m"),
        ("2025-06-15T12:00:00.000Z", "3h"),
        ("2025-06-10T12:00:00.000Z", "5d"),
        ("2030-01-01T00:00:00.000Z", "now"),
        ("nonsense", ""),
    ],
)
def test_age_is_short(time, shown):
    assert age(time, START_MS) == shown
