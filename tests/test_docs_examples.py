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
from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.settings.load import known_keys
from musepi_tui.tools.approval.rules import rule_problems
from musepi_tui.tui.keys import load_keymap
from tests.support.checkout import ROOT

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
                    words = shlex.split(line, comments=True)
                    if words[:1] == ["musepi"] and "|" not in words:
                        yield pytest.param(words[1:], id=f"{page.name}: {' '.join(words)}")


@pytest.fixture
def shell(tmp_path):
    """Environment of a person who has ``musepi`` installed, in an empty folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "musepi"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m musepi_tui "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize("words", list(_shell_lines()))
def test_options_of_the_example_are_understood(words, monkeypatch, capsys, tmp_path):
    from musepi_tui.cli.options import SUBCOMMANDS, parse_options

    monkeypatch.chdir(tmp_path)
    if words[:1] and words[0] in SUBCOMMANDS:
        assert main(words) in (0, 1)  # 1: the FILE of the example is not there
        assert "usage" not in capsys.readouterr().err
    else:
        parse_options(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_line_of_json_is_json(page):
    for language, body in _FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "json":
            whole = re.match(r"\{\n", body)
            for text in [body] if whole else body.splitlines():
                json.loads(text)


def test_python_example_of_the_sdk_runs():
    exec(_block("scripting.md", "python", "parse_wire_response"), {})


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


def test_models_file_of_the_example_is_taken_whole(musepi_home):
    (musepi_home / "models.json").write_text(_block("models.md", "json", "modelOverrides"), encoding="utf-8")
    registry = ModelRegistry.load(musepi_home, {"LOCAL_KEY": "k"})
    assert registry.problems == ()
    assert registry.find("local", "m1").context_window == 32_768
    assert registry.find("anthropic", "claude-sonnet-5").context_window == 200_000


def test_stored_key_of_the_example_is_used(musepi_home):
    path = musepi_home / "auth.json"
    path.write_text(_block("models.md", "json", "api_key"), encoding="utf-8")
    path.chmod(0o600)
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
    path = musepi_home / "keybindings.json"
    path.write_text(_block("usage.md", "json", "app.model.select"), encoding="utf-8")
    keymap = load_keymap(path)
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
