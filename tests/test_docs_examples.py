"""The examples of the documentation, run as they stand there."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from musepi_tui.cli.main import main
from musepi_tui.commands.registry import CommandRegistry
from musepi_tui.context.cutpoint import KeepFacts, adapt_keep_recent
from musepi_tui.context.stages import answer_limits
from musepi_tui.context.threshold import budget_reserve, parse_threshold, resolve_threshold, summary_reserve
from musepi_tui.extensions.points import Hook
from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.session.codec import encode_entry, encode_header
from musepi_tui.session.entries import SessionHeader
from musepi_tui.settings.load import known_keys
from musepi_tui.tools.approval.rules import rule_problems
from musepi_tui.tui.keys import load_keymap
from tests.support.builders import a, path, u, words
from tests.support.checkout import ROOT
from tests.support.lines import write_lines
from tests.support.program import run_musepi

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
DEMO = ("--provider", "demo", "--model", "demo")
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks(page, language):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [body for found, body in _FENCE.findall(text) if found == language]


def _block(page, language, word):
    [body] = [body for body in _blocks(page, language) if word in body]
    return body


def _shell_lines():
    for page in PAGES:
        for language, body in _FENCE.findall(page.read_text(encoding="utf-8")):
            if language == "sh":
                for line in body.splitlines():
                    said = shlex.split(line, comments=True)
                    if said[:1] == ["musepi"] and "|" not in said:
                        yield pytest.param(said[1:], id=f"{page.name}: {' '.join(said)}")


@pytest.fixture
def shell(tmp_path):
    """Environment of a person who has ``musepi`` installed, in an empty folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "musepi"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m musepi_tui "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize("said", list(_shell_lines()))
def test_options_of_the_example_are_understood(said, monkeypatch, capsys, tmp_path):
    from musepi_tui.cli.options import SUBCOMMANDS, parse_options

    monkeypatch.chdir(tmp_path)
    if said[:1] and said[0] in SUBCOMMANDS:
        assert main(said) in (0, 1)  # 1: the FILE of the example is not there
        assert "usage" not in capsys.readouterr().err
    else:
        parse_options(said)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_line_of_json_is_json(page):
    blocks = [
        body for language, body in _FENCE.findall(page.read_text(encoding="utf-8")) if language == "json"
    ]
    texts = [text for body in blocks for text in ([body] if body.startswith("{\n") else body.splitlines())]
    assert [text for text in texts if not _is_json(text)] == []


def _is_json(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def test_python_example_of_the_sdk_runs():
    names = {}
    exec(_block("scripting.md", "python", "parse_wire_response"), names)
    assert (names["found"]["stopReason"], names["found"]["error"]["message"]) == ("error", "Overloaded")


def test_rpc_host_gets_its_answer(shell, tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", _block("scripting.md", "python", "Popen")],
        cwd=tmp_path,
        env=shell,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Definitions of the project" in run.stdout


def test_json_events_example_is_lines_from_header_to_settled(shell, tmp_path):
    [command] = _block("scripting.md", "sh", "--mode json --provider").splitlines()
    run = subprocess.run(
        command, shell=True, cwd=tmp_path, env=shell, capture_output=True, text=True, timeout=60, check=True
    )
    kinds = [json.loads(line)["type"] for line in run.stdout.splitlines()]
    assert (kinds[0], kinds[-1]) == ("session", "agent_settled")
    documented = set(re.findall(r"`([a-z_]+)`", (ROOT / "docs" / "scripting.md").read_text(encoding="utf-8")))
    assert set(kinds) - {"session"} <= documented


def _extension(folder, word):
    """The example with this word in a file of its own."""
    file = folder / "example.py"
    file.write_text(_block("extensions.md", "python", word), encoding="utf-8")
    return ("-e", str(file))


@pytest.fixture
def long_session(tmp_path):
    """A session file with something to summarise."""
    header = encode_header(SessionHeader("id", "2026-01-01T00:00:00.000Z", str(tmp_path)))
    entries = path(
        u("fix the loop"), a(words(6000)), u("add a test"), a(words(6000)), u("go on"), a(words(6000))
    )
    return write_lines(tmp_path / "long.jsonl", header, *map(encode_entry, entries))


def test_summary_without_a_model_is_stored_without_a_key(tmp_path, long_session):
    extension = _extension(tmp_path, "Asked so far")
    run = run_musepi("compact", str(long_session), "--json", *extension, *DEMO, cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout)["method"] == "hook"
    divider = json.loads(long_session.read_text().splitlines()[-1])
    assert divider["fromExtension"] is True
    assert divider["summary"] == "## Asked so far\n- fix the loop\n- add a test\n- go on"


def test_guard_stops_what_starts_by_itself_and_lets_the_person(tmp_path):
    session = ("--session", "guarded.jsonl", "--set", "compaction.keepRecentTokens=200")
    common = (*_extension(tmp_path, "only_by_hand"), *session, *DEMO)
    run = run_musepi("--mode", "json", "--compact-at", "1500", "make a table", *common, cwd=tmp_path)
    events = [json.loads(line) for line in run.stdout.splitlines()]
    ends = [event for event in events if event["type"] == "auto_compaction_end"]
    assert ends
    assert all(event["aborted"] and event["result"] is None for event in ends)
    assert any("A compaction was stopped (threshold)" in event.get("message", "") for event in events)
    run = run_musepi("-p", "/compact", *common, cwd=tmp_path)
    assert (run.returncode, run.stdout.startswith("Compacted ")) == (0, True)


def test_first_example_of_an_extension_is_one(tmp_path, long_session):
    extension = _extension(tmp_path, "became a summary")
    run = run_musepi("compact", str(long_session), *extension, *DEMO, cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")


def test_notes_of_an_extension_stay_where_a_branch_is_left(tmp_path, long_session):
    entries = [json.loads(line) for line in long_session.read_text().splitlines()[1:]]
    move = {"type": "navigate_tree", "targetId": entries[1]["id"], "summarize": True}
    flags = ("--session", str(long_session), *_extension(tmp_path, "user_wants_summary"), *DEMO)
    run = run_musepi("--mode", "rpc", *flags, cwd=tmp_path, stdin=json.dumps(move) + "\n")
    assert (run.returncode, run.stderr) == (0, "")
    summary = json.loads(long_session.read_text().splitlines()[-1])
    assert (summary["type"], summary["fromExtension"]) == ("branch_summary", True)
    assert summary["summary"] == "## Asked on that branch\n- add a test\n- go on"


def test_events_of_the_page_are_those_there_are():
    text = (ROOT / "docs" / "extensions.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(session_\w+)` \|", text, re.M) == [hook.value for hook in Hook]


def test_worked_numbers_of_compaction_are_what_is_computed():
    text = (ROOT / "docs" / "compaction.md").read_text(encoding="utf-8")
    rows = [
        [int(cell.replace(",", "")) for cell in line.strip("| ").split("|")]
        for line in re.findall(r"^\| [\d,]+ \|.*$", text, re.M)
    ]
    overhead = [6_000] * 7 + [2_000, 1_400]
    for (window, *figures), other in zip(rows, overhead, strict=True):
        threshold = resolve_threshold(parse_threshold("auto"), window, None)
        kept = adapt_keep_recent(10_000, KeepFacts(window, threshold, other))
        limits = answer_limits(summary_reserve(window, None))
        reserve = budget_reserve(window, None)
        assert figures == [reserve, threshold.tokens, threshold.recovery_tokens, kept, *limits]


def test_models_file_of_the_example_is_taken_whole(musepi_home):
    (musepi_home / "models.json").write_text(_block("models.md", "json", "modelOverrides"), encoding="utf-8")
    registry = ModelRegistry.load(musepi_home, {"LOCAL_KEY": "k"})
    assert registry.problems == ()
    assert registry.find("local", "m1").context_window == 32_768
    assert registry.find("anthropic", "claude-sonnet-5").context_window == 200_000


def test_stored_key_of_the_example_is_used(musepi_home):
    file = musepi_home / "auth.json"
    file.write_text(_block("models.md", "json", "api_key"), encoding="utf-8")
    file.chmod(0o600)
    registry = ModelRegistry.load(musepi_home, {})
    assert registry.problems == ()
    assert registry.credentials(registry.find("anthropic", "claude-sonnet-5")).source == "auth.json"


def test_variables_of_the_table_are_those_of_the_providers(musepi_home):
    rows = re.findall(
        r"^\| `([a-z-]+)` \| `([A-Z_]+)`", (ROOT / "docs" / "models.md").read_text(encoding="utf-8"), re.M
    )
    for provider, variable in rows:
        environ = {variable: "k", "AZURE_OPENAI_BASE_URL": "https://example.invalid/v1"}
        registry = ModelRegistry.load(musepi_home, environ)
        assert registry.credentials(registry.find(provider, "any")).source == variable


def test_keys_of_the_example_are_taken_whole(musepi_home):
    file = musepi_home / "keybindings.json"
    file.write_text(_block("usage.md", "json", "app.model.select"), encoding="utf-8")
    keymap = load_keymap(file)
    assert keymap.notices == ()
    assert keymap.keys_of("app.model.select") == ("ctrl+r",)
    assert keymap.keys_of("app.suspend") == ()


def test_rules_of_the_page_can_be_used():
    text = (ROOT / "docs" / "permissions.md").read_text(encoding="utf-8")
    rules = re.findall(r"`((?:bash|edit|read)\([^`]+\))`", text)
    assert len(rules) > 5
    assert rule_problems(rules) == ()
    for line in _block("permissions.md", "sh", "config set").splitlines():
        assert rule_problems(json.loads(shlex.split(line)[-1])) == ()


def test_every_command_has_its_row():
    text = (ROOT / "docs" / "usage.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\| `/([a-z]+)", text, re.M))
    assert shown == {command.name for command in CommandRegistry.discover().commands}


def test_settings_named_on_the_pages_exist():
    groups = {key.split(".")[0] for key in known_keys() if "." in key}
    for page in PAGES:
        if page.name == "settings.md":
            continue  # made from the schema, see tests/architecture/test_settings.py
        named = re.findall(r"`([a-z]\w+\.[a-zA-Z]\w+)`", page.read_text(encoding="utf-8"))
        settings = {name for name in named if name.split(".")[0] in groups}
        assert settings <= set(known_keys()), page.name
