import re
from dataclasses import replace
from pathlib import Path

import pytest

from musepi_tui.runtime.events import EntryAppended, Notice
from musepi_tui.runtime.exporting import default_stem
from musepi_tui.runtime.intents import ExportSession, SubmitPrompt
from musepi_tui.runtime.options import SessionChoice
from musepi_tui.session.entries import SessionHeader
from musepi_tui.storage.loading import load_session
from tests.support.exports import KEY
from tests.support.fake_provider import Hang
from tests.support.harness import running

TIME = "2026-01-02T03:04:05.678Z"


@pytest.mark.parametrize(
    ("header", "name", "stem"),
    [
        (SessionHeader("0198-abcdefgh", TIME, "/p"), "", "musepi-2026-01-02-abcdefgh"),
        (SessionHeader("x", TIME, "/p"), "Fix the <table>!", "musepi-2026-01-02-fix-the-table"),
        (SessionHeader("x", TIME, "/p"), "../../etc/passwd", "musepi-2026-01-02-etc-passwd"),
        (SessionHeader("../up", "../../etc/x", "/p"), "한국어", "musepi-up"),
        (SessionHeader("../..", "", "/p"), "", "musepi"),
        (SessionHeader("x", TIME, "/p"), "a" * 100, f"musepi-2026-01-02-{'a' * 40}"),
    ],
)
def test_default_name_is_a_plain_file_name(header, name, stem):
    assert default_stem(header, name) == stem


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


async def test_export_is_told_when_it_is_there(scripted, project: Path):
    _, options = scripted((f"the answer {KEY}",))
    async with running(options) as harness:
        await harness.prompt("the question")
        settled = await harness.settle(ExportSession())
        path = Path(settled.data["path"])
        assert (settled.ok, str(path.parent)) == (True, str(project))
        assert re.fullmatch(r"musepi-\d{4}-\d\d-\d\d-the-question\.html", path.name)
        page = read(path)
        assert "the question" in page
        assert "the answer sk…(16+)" in page
        assert KEY not in page
        assert (await harness.notice("Exported to")).text == f"Exported to {path}."
        again = await harness.settle(ExportSession())
        assert Path(again.data["path"]).name == f"{path.stem}-2.html"


async def test_keys_in_use_are_masked_unless_raw(scripted, project: Path):
    _, options = scripted(("ok",))
    async with running(options) as harness:
        await harness.prompt("my secret-key is known")
        await harness.settle(ExportSession("a.txt"))
        await harness.settle(ExportSession("b.jsonl", raw=True))
        file = harness.file
        assert "my se…(8+) is known" in (project / "a.txt").read_text(encoding="utf-8")
        assert (project / "b.jsonl").read_bytes() == file.read_bytes()


async def test_export_that_cannot_be_is_refused_with_the_reason(scripted, project: Path):
    _, options = scripted(("ok",))
    async with running(options) as harness:
        assert (await harness.settle(ExportSession("a.txt"))).error == "There is nothing to export yet."
        await harness.prompt("hello")
        (project / "a.txt").write_text("mine")
        settled = await harness.settle(ExportSession("a.txt"))
        assert not settled.ok
        assert "exists; use --force" in settled.error
        assert "accepted are" in (await harness.settle(ExportSession("a.pdf"))).error
        assert (await harness.settle(ExportSession("a.txt", force=True))).ok
        assert not [event for event in harness.of(Notice) if event.level == "error"]


@pytest.mark.parametrize("suffix", ["html", "jsonl"])
async def test_session_in_memory_can_be_exported(scripted, project: Path, suffix):
    _, options = scripted(("the answer",))
    async with running(replace(options, session=SessionChoice("memory"))) as harness:
        await harness.prompt("the question")
        assert (await harness.settle(ExportSession(f"a.{suffix}"))).ok
    assert "the answer" in (project / f"a.{suffix}").read_text(encoding="utf-8")
    if suffix == "jsonl":
        assert [head.role for head in load_session(project / "a.jsonl").tree.path() if head.role] == [
            "user",
            "assistant",
        ]


async def test_export_goes_on_while_a_turn_runs(scripted, project: Path):
    _, options = scripted((Hang(),), ("late",))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("first"))
        await harness.wait_for(EntryAppended)
        assert (await harness.settle(ExportSession("a.md"))).ok
        assert "first" in (project / "a.md").read_text(encoding="utf-8")
