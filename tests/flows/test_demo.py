import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from musepi_tui.base.tokenizer import load_tokenizer
from musepi_tui.providers import apis
from musepi_tui.providers.demo import spec
from musepi_tui.providers.demo.stream import Pace
from musepi_tui.runtime.events import EntryAppended, MaintenanceEnded, Notice, RuntimeFault, ToolEnded
from musepi_tui.runtime.intents import Compact, Handoff, NavigateTree
from musepi_tui.session.entries import CompactionEntry, MessageEntry
from musepi_tui.session.messages import UserMessage
from tests.support.harness import running, runtime_options

_load_once = functools.cache(load_tokenizer)


@pytest.fixture(autouse=True)
def quick_demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The demo of this test does not wait between words, and the ranks of all of them are read once."""
    provider = spec.make_provider(pace=Pace(0, 0, words=50))
    monkeypatch.setattr(spec, "PROVIDER", provider)
    monkeypatch.setattr("musepi_tui.runtime.tokens.load_tokenizer", _load_once)
    apis.load_provider.cache_clear()
    yield
    provider.close()
    apis.load_provider.cache_clear()


@pytest.fixture
def options(musepi_home: Path, tmp_path: Path):
    """A start with nothing configured, in an empty folder."""
    project = tmp_path / "project"
    project.mkdir()
    return runtime_options(
        musepi_home, project, "tokens.estimator=auto", mode="yolo", model=None, allow_demo=True
    )


@pytest.mark.parametrize(
    "prompts",
    [
        ("fix the bug", "explain the code", "add a feature"),
        ("hi", "what can you do?", "thanks"),
        ("make a table", "explain", "fix the bug"),
        ("explain", "fix it", "fix it"),
    ],
    ids=" / ".join,
)
async def test_the_first_three_prompts_lead_to_exactly_one_compaction(options, prompts):
    async with running(options) as harness:
        for prompt in prompts:
            await harness.prompt(prompt)
        ended = harness.of(MaintenanceEnded)
        assert [(event.reason, event.error) for event in ended] == [("threshold", None)]
        result = ended[0].result
        assert result is not None
        # the figure before is that of the last answer; what came after it made the context too large
        assert result.tokens_after <= 0.8 * 7820 < result.tokens_before
        entry = harness.runtime.read_entry(result.entry_id)
        assert isinstance(entry, CompactionEntry)
        assert f'"{prompts[0]}"' in entry.summary
        assert not harness.of(RuntimeFault)
        assert not [notice for notice in harness.of(Notice) if notice.level == "error"]


async def test_the_demo_edits_and_runs_its_own_project_only(options):
    async with running(options) as harness:
        await harness.prompt("fix the bug")
        runs = [event.text for event in harness.of(ToolEnded) if event.tool == "bash"]
        assert ["FAILED" in text for text in runs] == [True, False]
        assert list(options.cwd.iterdir()) == []


async def test_compacting_by_hand_works_with_the_demo_too(options):
    async with running(options) as harness:
        await harness.prompt("fix the bug")
        await harness.prompt("make a table")
        settled = await harness.settle(Compact(focus="the failing test"))
        assert settled.ok, settled.error
        entry = harness.runtime.read_entry(harness.of(MaintenanceEnded)[0].result.entry_id)
        assert "Focus asked for: the failing test" in entry.summary


async def test_a_handoff_works_with_the_demo_too(options):
    async with running(options) as harness:
        await harness.prompt("fix the bug")
        settled = await harness.settle(Handoff("the failing test"))
        assert settled.ok, settled.error
        document = settled.data["document"]
        assert '- First request: "fix the bug"' in document
        assert "Focus asked for: the failing test" in document
        assert document.rstrip().endswith("</files>")
        await harness.prompt("explain the code")
        assert not harness.of(RuntimeFault)
        assert "script" not in harness.texts()[-1].partition("\n")[0]


async def test_a_branch_summary_works_with_the_demo_too(options):
    async with running(options) as harness:
        await harness.prompt("fix the bug")
        prompts = [
            event.entry.id
            for event in harness.of(EntryAppended)
            if isinstance(event.entry, MessageEntry) and isinstance(event.entry.message, UserMessage)
        ]
        settled = await harness.settle(NavigateTree(prompts[0], summarize=True))
        assert settled.ok, settled.error
        summary = harness.runtime.read_entry(settled.data["summaryEntryId"]).summary
        assert "- What was asked for before this branch." in summary
        assert "- Changed `tally/ledger.py`." in summary
        assert "## Critical Context" not in summary
