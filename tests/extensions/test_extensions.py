"""Extensions through their own door: files in a folder, ``activate``, hooks and what they answer."""

import asyncio
from pathlib import Path

import pytest

from musepi_tui.base.errors import UsageError
from musepi_tui.extensions import extensions as extensions_module
from musepi_tui.extensions.api import Level, SessionFacts
from musepi_tui.extensions.dispatch import FAILURES_IN_A_ROW, Dispatcher, Failure
from musepi_tui.extensions.extensions import Extensions
from musepi_tui.extensions.points import (
    BeforeCompact,
    BeforeSwitch,
    BeforeTree,
    BranchSummaryResult,
    CancelSignal,
    Compacted,
    Compacting,
    CompactionPreparation,
    CompactionResult,
    Hook,
    Switched,
    TreeMoved,
    TreePreparation,
)
from musepi_tui.session.entries import KEEP_NOTHING, CompactionEntry
from musepi_tui.session.messages import UserMessage

HEADER = "from musepi_tui.extensions.api import *\n"
DIVIDER = CompactionEntry("c", None, "t", summary="S", first_kept_entry_id=KEEP_NOTHING)


class RecordingHost:
    """Lends what an extension asks for and writes down what it said."""

    def __init__(self) -> None:
        self.notices: list[tuple[str, Level, str]] = []
        self.prompts: list[tuple[str, str, int]] = []

    def notify(self, extension: str, level: Level, text: str) -> None:
        self.notices.append((extension, level, text))

    def context(self) -> SessionFacts:
        return SessionFacts("/p", "s-1", "/p/s.jsonl", "demo/demo")

    async def complete(self, system: str, prompt: str, max_tokens: int) -> str:
        self.prompts.append((system, prompt, max_tokens))
        return f"answer to {prompt}"


class Stage:
    """A folder of extensions and what became of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = RecordingHost()
        self.failures: list[Failure] = []
        self.extensions = Extensions(Dispatcher(self.host, self.failures.append))

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEADER + text, "utf-8")
        return path

    async def load(self, *named: str) -> Extensions:
        await self.extensions.load(self.folder, named)
        return self.extensions


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "extensions")


def before_compact(reason: str = "threshold") -> BeforeCompact:
    preparation = CompactionPreparation(
        first_kept_entry_id="k1",
        tokens_before=900,
        messages=(UserMessage("old"),),
        turn_prefix=(),
        kept=(UserMessage("new"),),
        previous_summary=None,
        is_split_turn=False,
    )
    return BeforeCompact(preparation, (), None, CancelSignal(), reason)


async def test_a_folder_that_is_not_there_gives_no_extensions(stage: Stage):
    extensions = await stage.load()

    assert extensions.loaded == ()
    assert stage.failures == []
    assert (await extensions.before_compact(before_compact())).compaction is None


async def test_files_and_packages_are_activated_in_the_order_of_their_names(stage: Stage):
    stage.write(
        "b_second.py", "def activate(api):\n    api.on('session_compact', lambda e, c: c.notify('b'))\n"
    )
    stage.write(
        "a_first/__init__.py",
        "from .part import say\n"
        "def activate(api):\n    api.on('session_compact', lambda e, c: c.notify(say()))\n",
    )
    stage.write("a_first/part.py", "def say():\n    return 'a'\n")
    stage.write(".hidden.py", "raise RuntimeError\n")
    stage.write("notes.txt", "raise RuntimeError\n")
    extensions = await stage.load()

    await extensions.compacted(Compacted(DIVIDER, from_extension=False))

    assert [each.name for each in extensions.loaded] == ["a_first", "b_second"]
    assert [text for _, _, text in stage.host.notices] == ["a", "b"]
    assert stage.failures == []


async def test_an_async_activate_is_awaited(stage: Stage):
    stage.write(
        "late.py",
        "import asyncio\nasync def activate(api):\n    await asyncio.sleep(0)\n"
        "    api.on('session_switch', lambda e, c: c.notify(e.file))\n",
    )
    extensions = await stage.load()

    await extensions.switched(Switched("resume", None, "/x.jsonl"))

    assert [text for _, _, text in stage.host.notices] == ["/x.jsonl"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def activate(api)\n", "SyntaxError"),
        ("import no_such_module_at_all\n", "ModuleNotFoundError"),
        ("raise SystemExit(3)\n", "SystemExit"),
        ("x = 1\n", "it has no function activate(api)"),
        ("def activate(api):\n    raise ValueError('no licence')\n", "no licence"),
        (
            "def activate(api):\n    api.on('session_befor_compact', print)\n",
            "did you mean session_before_compact?",
        ),
        ("def activate(api):\n    api.on('session_compact', 5)\n", "cannot be called"),
    ],
)
async def test_one_that_cannot_be_used_is_told_and_stops_no_other(stage: Stage, text: str, says: str):
    stage.write("a_broken.py", text)
    stage.write(
        "b_sound.py", "def activate(api):\n    api.on('session_compact', lambda e, c: c.notify('here'))\n"
    )
    extensions = await stage.load()

    await extensions.compacted(Compacted(DIVIDER, from_extension=False))

    assert [each.name for each in extensions.loaded] == ["b_sound"]
    assert len(stage.failures) == 1
    assert stage.failures[0].extension == "a_broken"
    assert says in stage.failures[0].error
    assert [text for _, _, text in stage.host.notices] == ["here"]


async def test_activating_must_not_take_long(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(extensions_module, "USUAL_LIMIT_S", 0.05)
    stage.write("slow.py", "import asyncio\nasync def activate(api):\n    await asyncio.sleep(30)\n")

    extensions = await stage.load()

    assert extensions.loaded == ()
    assert "took more than 0.05 s" in stage.failures[0].error


async def test_a_named_path_is_loaded_and_one_that_is_missing_is_refused(stage: Stage, tmp_path: Path):
    path = stage.write("../extra/mine.py", "def activate(api):\n    pass\n")

    extensions = await stage.load(str(path))

    assert [(each.name, each.origin) for each in extensions.loaded] == [("mine", str(path.resolve()))]
    with pytest.raises(UsageError, match="there is no such file"):
        await stage.load(str(tmp_path / "gone.py"))
    with pytest.raises(UsageError, match="nobody knows whose home folder that is"):
        await stage.load("~nobody-of-that-name/mine.py")


async def test_the_last_compaction_supplied_counts(stage: Stage):
    for name in ("one", "two"):
        stage.write(
            f"{name}.py",
            "def activate(api):\n    api.on('session_before_compact', supply)\n"
            "async def supply(event, ctx):\n"
            f"    return {{'compaction': {{'summary': '{name}', 'first_kept_entry_id': KEEP_NOTHING,"
            " 'tokens_before': event.preparation.tokens_before}}\n",
        )
    extensions = await stage.load()

    answer = await extensions.before_compact(before_compact())

    assert answer.compaction == CompactionResult("two", KEEP_NOTHING, 900)
    assert answer.by == "two"


async def test_answer_that_says_nothing_leaves_the_one_before(stage: Stage):
    for name, given in (("a", "{'summary': {'summary': 'text'}}"), ("b", "{}"), ("c", "{'cancel': False}")):
        stage.write(
            f"{name}.py", f"def activate(api):\n    api.on('session_before_tree', lambda e, c: {given})\n"
        )
    extensions = await stage.load()

    answer = await extensions.before_tree(before_tree())

    assert (answer.summary, answer.by) == (BranchSummaryResult("text"), "a")


async def test_a_cancel_ends_the_chain(stage: Stage):
    stage.write(
        "a.py", "def activate(api):\n    api.on('session_before_compact', lambda e, c: {'cancel': True})\n"
    )
    stage.write(
        "b.py", "def activate(api):\n    api.on('session_before_compact', lambda e, c: c.notify('called'))\n"
    )
    extensions = await stage.load()

    answer = await extensions.before_compact(before_compact())

    assert (answer.cancelled, answer.by) == (True, "a")
    assert stage.host.notices == []


async def test_instructions_lines_and_data_of_all_are_merged(stage: Stage):
    stage.write(
        "a.py",
        "def activate(api):\n    api.on('session.compacting', add)\n"
        "def add(event, ctx):\n"
        "    lines = [text_of(event.messages[0])]\n"
        "    return {'prompt': 'first', 'context': lines, 'preserve_data': {'k': 1, 'a': 1}}\n",
    )
    stage.write(
        "b.py",
        "def activate(api):\n    api.on('session_compacting', add)\n"
        "def add(event, ctx):\n"
        "    return CompactingResult(prompt='second', context=['two'], preserve_data={'k': 2})\n",
    )
    extensions = await stage.load()

    answer = await extensions.compacting(Compacting("s-1", (UserMessage("said"),)))

    assert answer.prompt == "second"
    assert answer.context == ("said", "two")
    assert answer.preserve_data == {"k": 2, "a": 1}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("'yes'", "BeforeCompactResult"),
        ("{'cancle': True}", "cancle"),
        (
            "{'compaction': {'summary': 5, 'first_kept_entry_id': 'k1', 'tokens_before': 1}}",
            "compaction.summary",
        ),
        ("{'compaction': {'summary': 'S'}}", "first_kept_entry_id"),
        ("CompactingResult()", "BeforeCompactResult"),
    ],
)
async def test_an_unusable_answer_is_told_and_passed_over(stage: Stage, answer: str, says: str):
    stage.write(
        "odd.py", f"def activate(api):\n    api.on('session_before_compact', lambda e, c: {answer})\n"
    )
    extensions = await stage.load()

    outcome = await extensions.before_compact(before_compact())

    assert (outcome.cancelled, outcome.compaction) == (False, None)
    assert says in stage.failures[0].error


async def test_a_handler_that_keeps_failing_is_switched_off(stage: Stage):
    stage.write(
        "bad.py",
        "calls = []\n"
        "def activate(api):\n    api.on('session_before_switch', fail)\n"
        "def fail(event, ctx):\n    ctx.notify('called')\n    raise KeyError('x')\n",
    )
    extensions = await stage.load()

    for _ in range(FAILURES_IN_A_ROW + 2):
        assert await extensions.before_switch(BeforeSwitch("new", None)) is None

    assert len(stage.host.notices) == FAILURES_IN_A_ROW
    assert [failure.switched_off for failure in stage.failures] == [False, False, True]
    assert not extensions.listens(Hook.BEFORE_SWITCH)


async def test_a_handler_that_takes_too_long_is_passed_over(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("musepi_tui.extensions.dispatch.USUAL_LIMIT_S", 0.05)
    stage.write(
        "slow.py",
        "import asyncio\n"
        "def activate(api):\n    api.on('session_before_switch', wait)\n"
        "async def wait(event, ctx):\n    await asyncio.sleep(30)\n",
    )
    extensions = await stage.load()

    assert await extensions.before_switch(BeforeSwitch("new", None)) is None
    assert "took more than 0.05 s" in stage.failures[0].error


async def test_cancelling_reaches_the_handler_and_the_caller(stage: Stage):
    stage.write(
        "patient.py",
        "import asyncio\n"
        "def activate(api):\n    api.on('session_before_compact', wait)\n"
        "async def wait(event, ctx):\n"
        "    try:\n        await asyncio.sleep(30)\n"
        "    finally:\n        ctx.notify(f'stopped {event.signal.aborted}')\n",
    )
    extensions = await stage.load()
    event = before_compact()
    running = asyncio.create_task(extensions.before_compact(event))
    await asyncio.sleep(0.01)

    event.signal.abort()
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert [text for _, _, text in stage.host.notices] == ["stopped True"]
    assert stage.failures == []


async def test_a_handler_may_ask_the_model_and_see_the_session(stage: Stage):
    stage.write(
        "asks.py",
        "def activate(api):\n    api.on('session_before_compact', supply)\n"
        "async def supply(event, ctx):\n"
        "    text = await ctx.complete('sum up', system='be brief', max_tokens=7)\n"
        "    ctx.notify(f'{ctx.session.session_id} {text}', 'warning')\n",
    )
    extensions = await stage.load()

    await extensions.before_compact(before_compact())

    assert stage.host.prompts == [("be brief", "sum up", 7)]
    assert stage.host.notices == [("asks", "warning", "s-1 answer to sum up")]


def before_tree() -> BeforeTree:
    return BeforeTree(TreePreparation("t", "l", "c", (DIVIDER,), user_wants_summary=True), CancelSignal())


async def test_last_branch_summary_that_is_given_counts(stage: Stage):
    for name in "ab":
        stage.write(
            f"{name}.py",
            "def activate(api):\n    api.on('session_before_tree', lambda e, c: "
            f"{{'summary': {{'summary': '{name} ' + e.preparation.target_id, 'details': [1]}}}})\n",
        )
    extensions = await stage.load()

    answer = await extensions.before_tree(before_tree())

    assert (answer.cancelled, answer.by) == (False, "b")
    assert answer.summary == BranchSummaryResult("b t", [1])


async def test_first_extension_that_stops_a_move_ends_the_question(stage: Stage):
    stage.write(
        "a.py",
        "def activate(api):\n"
        "    api.on('session_before_tree', lambda e, c: BeforeTreeResult(cancel=True))\n"
        "    api.on('session_before_tree', lambda e, c: c.notify('asked'))\n",
    )
    extensions = await stage.load()

    answer = await extensions.before_tree(before_tree())

    assert (answer.cancelled, answer.by, answer.summary) == (True, "a", None)
    assert stage.host.notices == []


@pytest.mark.parametrize("given", ["{'summary': 'text'}", "{'summary': {'text': 'x'}}", "{'stop': True}"])
async def test_branch_summary_of_another_shape_is_refused(stage: Stage, given: str):
    stage.write("a.py", f"def activate(api):\n    api.on('session_before_tree', lambda e, c: {given})\n")
    extensions = await stage.load()

    assert (await extensions.before_tree(before_tree())).summary is None
    assert "BeforeTreeResult" in stage.failures[0].error


async def test_move_that_was_made_is_told(stage: Stage):
    stage.write(
        "a.py",
        "def activate(api):\n    api.on('session_tree', lambda e, c: "
        "c.notify(f'{e.old_leaf_id} {e.new_leaf_id} {e.summary_entry} {e.from_extension}'))\n",
    )
    extensions = await stage.load()

    await extensions.tree_moved(TreeMoved("n", "o", None, None))

    assert [text for _, _, text in stage.host.notices] == ["o n None None"]
