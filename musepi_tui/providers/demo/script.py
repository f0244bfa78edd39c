"""The script: which answer follows in which scene.

A topic is a list of steps; a step gives the next answer from the scene alone. What an earlier call printed is
read from its stored result, never remembered.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from musepi_tui.base.text import plural
from musepi_tui.providers.demo import project
from musepi_tui.providers.demo.project import ScratchProject
from musepi_tui.providers.demo.reply import Call, Reply
from musepi_tui.providers.demo.scene import Kind, Result, Scene
from musepi_tui.providers.demo.summary import write_handoff, write_summary

_LABEL_PARTING = "\n\n"
_WORD = re.compile(r"[a-z]+")
_TESTS_RAN = re.compile(r"Ran (\d+) tests?")
_HIT = re.compile(r"(?P<file>[\w./-]+?\.py):(?P<line>\d+): ?\s*(?:def|class) (?P<name>\w+)")
READ_LINES = 200
"""No file of the project is longer."""

_FAILING_TESTS = 2
"""How many tests of the project the bug makes fail."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What a step sees: the scene, the project's folder, and whether that was put back for this turn."""

    scene: Scene
    folder: Path
    was_put_back: bool = False

    def path(self, name: str) -> str:
        """The absolute path of a file of the project."""
        return str(self.folder / name)

    def read(self, *names: str) -> tuple[Call, ...]:
        """Calls that read files: in each turn another number of lines, all more than there are, so that no
        read makes an earlier one superfluous. The context is to fill up, to show what happens then."""
        limit = READ_LINES * max(1, self.scene.turn)
        return tuple(Call("read", {"path": self.path(name), "limit": limit}) for name in names)

    def run_tests(self) -> Call:
        """The call that runs the tests."""
        return Call("bash", {"command": project.tests_command(self.folder), "timeout": 60})


Step = Callable[[Stage], Reply]


@dataclass(frozen=True, slots=True)
class Topic:
    """Something the demo can show. ``words`` of a prompt lead to it; ``restore`` makes the project ready."""

    words: frozenset[str]
    steps: tuple[Step, ...]
    restore: Callable[[ScratchProject], bool] = lambda _: False


def reply_to(scene: Scene, scratch: ScratchProject, tools: Sequence[str]) -> Reply:
    """The next answer. ``tools`` are the names of the tools the model may call. Blocks on the disk."""
    if scene.kind is Kind.SUMMARY:
        return Reply(write_summary(scene.prompt))
    if scene.kind is Kind.HANDOFF:
        return Reply(write_handoff(scene.prompt, scene.earlier, scene.focus))
    if scene.kind is Kind.CONTINUE:
        return Reply(_NOTHING_LEFT)
    topic = find_topic(scene.prompt)
    folder = scratch.folder()
    put_back = scene.step == 0 and topic.restore(scratch)
    step = topic.steps[min(scene.step, len(topic.steps) - 1)]
    reply = step(Stage(scene, folder, put_back))
    missing = sorted({call.tool for call in reply.calls} - set(tools))
    if missing:
        reply = Reply(
            f"Here I would use {', '.join(missing)}, but musepi was started without it.\n\n{_text('help')}"
        )
    if scene.is_first:
        label = _text("label", folder=str(folder))
        return Reply(f"{label}{_LABEL_PARTING}{reply.text}", reply.thinking, reply.calls)
    return reply


def find_topic(prompt: str) -> Topic:
    """The topic most words of the prompt lead to; the list of what there is when none does."""
    words = set(_WORD.findall(prompt.lower()))
    return max(_TOPICS, key=lambda topic: len(topic.words & words))


def _look_around(stage: Stage) -> Reply:
    return Reply(
        "Let me look at what I have here.",
        "That is none of the things I have a script for. I read the project and say what I can show.",
        (
            Call("ls", {"path": str(stage.folder)}),
            *stage.read(project.README, project.LEDGER, project.REPORT),
            *stage.read(project.LEDGER_TESTS, project.REPORT_TESTS),
        ),
    )


def _offer(_: Stage) -> Reply:
    return Reply(_text("help"), "The files are as expected. Now the list of what can be shown.")


def _look_for_bug(stage: Stage) -> Reply:
    again = "I put the bug back so that you can see it fixed again. " if stage.was_put_back else ""
    return Reply(
        f"{again}First I look at the project and for the place where amounts are divided.",
        "A bug is reported, and no file is named. Look at the folder, read what the project promises, and "
        "search for the code that splits an amount. These look-ups do not depend on each other: all at once.",
        (
            Call("ls", {"path": str(stage.folder)}),
            *stage.read(project.README),
            Call("grep", {"pattern": "split_evenly", "path": str(stage.folder), "glob": "*.py"}),
        ),
    )


def _see_it_fail(stage: Stage) -> Reply:
    return Reply(
        "There is one function that splits, and it has tests. I run them to see what is wrong.",
        "Before changing anything: does a test show the bug?",
        (stage.run_tests(),),
    )


def _read_suspects(stage: Stage) -> Reply:
    if (halted := _halted(stage.scene.result(1), _TESTS_RAN)) is not None:
        return halted
    return Reply(
        "The shares do not add up: a cent is lost. I read the function and its tests before I touch it.",
        "99 instead of 100 for three people. That looks like a division whose rest is dropped. The tests say "
        "what is expected, so read both files.",
        stage.read(project.LEDGER, project.LEDGER_TESTS),
    )


def _edit(stage: Stage) -> Reply:
    return Reply(
        "`total_cents // people` drops the rest. I hand it out, one cent each to the first people.",
        "The rules: shares add up to the amount, and nobody pays more than one cent extra. divmod gives "
        "both the share and the rest; the first `rest` people pay one cent more.",
        (
            Call(
                "edit",
                {
                    "path": stage.path(project.LEDGER),
                    "edits": [{"oldText": project.BUG, "newText": project.FIX}],
                },
            ),
        ),
    )


def _see_it_pass(stage: Stage) -> Reply:
    if (halted := _halted(stage.scene.result(3))) is not None:
        return halted
    return Reply("Now the same tests again.", calls=(stage.run_tests(),))


def _report_fix(stage: Stage) -> Reply:
    result = stage.scene.result(4)
    if (halted := _halted(result, _TESTS_RAN)) is not None:
        return halted
    others = plural(max(0, _count_tests(result) - _FAILING_TESTS), "test")
    return Reply(
        _text("fixed", outcome=_outcome(result), others=others),
        "All pass. Say what was wrong, what changed and what was checked.",
    )


def _read_everything(stage: Stage) -> Reply:
    return Reply(
        "I read the files that matter, side by side.",
        "To explain how the parts work together I need the README, the ledger, its tests and the report. No "
        "order between them, so four calls in one answer.",
        stage.read(project.README, project.LEDGER, project.LEDGER_TESTS, project.REPORT),
    )


def _explain(stage: Stage) -> Reply:
    ledger = stage.scene.result(0, 1)
    if (halted := _halted(ledger)) is not None:
        return halted
    has_bug = ledger is not None and "[share] * people" in ledger.text
    state = (
        "Right now `split_evenly` does not keep the first rule: `[share] * people` drops the rest. "
        "Say `fix the bug` to see it repaired."
        if has_bug
        else "`split_evenly` keeps all three: `divmod` gives the rest, and the first people carry it."
    )
    return Reply(
        _text("explain", state=state),
        "The ledger holds the rules, the report is only a view of it. Explain along the way one expense "
        "takes, then why amounts are cents, because that is where the only hard decision is.",
    )


def _search_definitions(stage: Stage) -> Reply:
    return Reply(
        "I search for every definition and read the modules they are in.",
        "For a table of the project: all functions and classes with their lines, the list of files, and the "
        "two modules for what each one is for.",
        (
            Call("grep", {"pattern": r"^\s*(def|class) \w+", "path": str(stage.folder), "glob": "*.py"}),
            Call("find", {"pattern": "**/*.py", "path": str(stage.folder)}),
            *stage.read(project.LEDGER, project.REPORT),
        ),
    )


def _draw_table(stage: Stage) -> Reply:
    found = stage.scene.result(0)
    if (halted := _halted(found)) is not None:
        return halted
    hits = [match.groupdict() for match in _HIT.finditer(found.text if found else "")]
    code = [hit for hit in hits if not hit["name"].startswith("test_")]
    tests = len(hits) - len(code)
    rows = [f"| `{hit['name']}` | `{_short_name(hit['file'])}` | {hit['line']} |" for hit in code]
    return Reply(
        "\n".join(
            (
                "## Definitions of the project",
                "",
                "| Name | File | Line |",
                "| --- | --- | ---: |",
                *rows,
                "",
                f"Besides these there are {plural(tests, 'test')}. The table comes from what the search "
                "found, not from my script: edit a file in the folder and ask again.",
                "",
                "- Short modules: nothing here is longer than a screen.",
                "- The ledger has no import of the project, so it can be tested alone.",
                "- Say `add a feature` and the table will have more rows.",
            )
        ),
        "The search gave file, line and name of each definition. Tests are counted, the rest becomes rows.",
    )


def _read_before_adding(stage: Stage) -> Reply:
    again = "I removed what I added before, so that you can see it again. " if stage.was_put_back else ""
    return Reply(
        f"{again}I will add an export of the balances. First I read its neighbours: the rules, the "
        "ledger, the report and how that is tested.",
        "The new module should look like the others: same names, same way of testing.",
        stage.read(project.README, project.LEDGER, project.REPORT, project.REPORT_TESTS),
    )


def _write_files(stage: Stage) -> Reply:
    if (halted := _halted(stage.scene.result(0))) is not None:
        return halted
    names = (project.EXPORT, project.EXPORT_TESTS)
    return Reply(
        "The report has `format_cents`, which I can use. I write the module and its tests.",
        "Two outputs, Markdown for people and CSV for programs. Tests for order, for cents, and for nobody.",
        tuple(
            Call("write", {"path": stage.path(name), "content": project.sample_text(name)}) for name in names
        ),
    )


def _try_addition(stage: Stage) -> Reply:
    for index in (0, 1):
        if (halted := _halted(stage.scene.result(1, index))) is not None:
            return halted
    return Reply("Both files are there. I run all tests.", calls=(stage.run_tests(),))


def _report_addition(stage: Stage) -> Reply:
    result = stage.scene.result(2)
    if (halted := _halted(result, _TESTS_RAN)) is not None:
        return halted
    remark = (
        "The two that fail are the bug in `split_evenly`, which was there before: say `fix the bug`."
        if result is not None and "FAILED" in result.text
        else "Nothing that was there before changed."
    )
    return Reply(
        _text("added", outcome=_outcome(result), remark=remark),
        "Say what was added and why it looks the way it does, and how the tests went.",
    )


def _halted(result: Result | None, expected: re.Pattern[str] | None = None) -> Reply | None:
    """The answer when a call the script builds on was not carried out; None when it was."""
    if result is not None and (expected.search(result.text) if expected else not result.is_error):
        return None
    reason = (result.text if result else "").strip().splitlines()
    quoted = f"\n\n> {reason[0]}" if reason else ""
    return Reply(
        f"The last call was not carried out, so the script stops here.{quoted}\n\n"
        "Before a command runs or a file changes, musepi asks: **1** allows it once, **2** for this session. "
        "Where nobody can answer, `--approval-mode auto-edit` or `--yolo` let it run. Say the same thing "
        "again to start over."
    )


def _count_tests(result: Result | None) -> int:
    match = _TESTS_RAN.search(result.text if result else "")
    return int(match[1]) if match else 0


def _outcome(result: Result | None) -> str:
    """The verdict of unittest, such as ``12 tests, OK``."""
    lines = [line.strip() for line in (result.text if result else "").splitlines()]
    verdict = next((line for line in reversed(lines) if line.startswith(("OK", "FAILED"))), "no verdict")
    return f"{plural(_count_tests(result), 'test')}, {verdict}"


def _short_name(file: str) -> str:
    """The path from the package of the project on."""
    parts = Path(file).parts
    return "/".join(parts[-2:])


def _text(name: str, **values: str) -> str:
    """A prepared text with its ``{{placeholders}}`` filled."""
    text = _template(name)
    for key, value in values.items():
        text = text.replace("{{" + key + "}}", value)
    return text


@cache
def _template(name: str) -> str:
    packed = files("musepi_tui.providers.demo") / "texts" / f"{name}.md"
    return packed.read_text(encoding="utf-8").strip()


_NOTHING_LEFT = (
    "Nothing is left to do: what was asked for is in the summary or handoff document above. "
    "Say `fix the bug`, `explain the code`, `make a table` or `add a feature`."
)

_TOPICS = (
    Topic(frozenset(), (_look_around, _offer)),
    Topic(
        frozenset(
            [
                "fix",
                "bug",
                "bugs",
                "broken",
                "fails",
                "failing",
                "repair",
                "wrong",
                "error",
                "debug",
                "cent",
                "test",
                "tests",
                "run",
            ]
        ),
        (_look_for_bug, _see_it_fail, _read_suspects, _edit, _see_it_pass, _report_fix),
        ScratchProject.put_bug_back,
    ),
    Topic(
        frozenset(
            [
                "explain",
                "how",
                "why",
                "describe",
                "understand",
                "architecture",
                "code",
                "works",
                "work",
                "mean",
            ]
        ),
        (_read_everything, _explain),
    ),
    Topic(
        frozenset(["table", "tables", "list", "overview", "compare", "functions", "definitions", "files"]),
        (_search_definitions, _draw_table),
    ),
    Topic(
        frozenset(["add", "feature", "write", "create", "new", "export", "implement", "build"]),
        (_read_before_adding, _write_files, _try_addition, _report_addition),
        ScratchProject.remove_additions,
    ),
)
