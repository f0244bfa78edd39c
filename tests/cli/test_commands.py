"""``musepi config``, ``models``, ``doctor`` and what the main command says about itself."""

import json
import subprocess
import sys

import pytest

from tests.support.lines import header_line, user_record, write_lines
from tests.support.program import run_musepi


def test_version_is_told_without_loading_anything_heavy(tmp_path):
    code = (
        "import sys; sys.argv = ['musepi', '--version']; import musepi_tui.__main__ as m; m.main();"
        "heavy = {'asyncio', 'textual', 'httpx', 'pydantic', 'rich'} & set(sys.modules); print(sorted(heavy))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines()[1] == "[]"


def test_help_is_told_without_loading_anything_heavy(tmp_path):
    code = (
        "import atexit, sys; sys.argv = ['musepi', '--help'];"
        "heavy = {'asyncio', 'textual', 'httpx', 'pydantic'};"
        "atexit.register(lambda: print(sorted(heavy & set(sys.modules))));"
        "import musepi_tui.__main__ as m; m.main()"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "--resume" in run.stdout
    assert run.stdout.splitlines()[-1] == "[]"


def test_what_the_encoding_of_stdout_lacks_is_a_question_mark(tmp_path):
    lines = [header_line(), user_record("u", None, "\u2192 caf\xe9")]
    file = write_lines(tmp_path / "s.jsonl", *lines)
    run = run_musepi(
        "sessions",
        "transcript",
        str(file),
        cwd=tmp_path,
        env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        fresh=True,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "> ? caf?\n\n", "")


def test_home_of_nobody_is_one_line(tmp_path):
    run = run_musepi("sessions", "list", cwd=tmp_path, env={"MUSEPI_HOME": "~nobody-of-that-name"})
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "~nobody-of-that-name: nobody knows whose home folder that is\n"


def test_config_set_get_unset_and_source(tmp_path):
    assert run_musepi("config", "set", "compaction.keepRecentTokens", "5000", cwd=tmp_path).returncode == 0
    assert run_musepi("config", "get", "compaction.keepRecentTokens", cwd=tmp_path).stdout == "5000\n"
    rows = json.loads(run_musepi("config", "list", "--json", cwd=tmp_path, fresh=True).stdout)
    by_key = {row["key"]: row for row in rows}
    assert by_key["compaction.keepRecentTokens"] == {
        "key": "compaction.keepRecentTokens",
        "value": 5000,
        "source": "user",
    }
    assert by_key["theme"]["source"] == "default"
    assert run_musepi("config", "unset", "compaction.keepRecentTokens", cwd=tmp_path).returncode == 0
    assert run_musepi("config", "get", "compaction.keepRecentTokens", cwd=tmp_path).stdout == "10000\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["config", "get", "thme"], 2, "theme"),
        (["config", "set", "compaction.keepRecentTokens", "many"], 2, "many"),
        (["config", "frob"], 2, "frob"),
        (["models"], 2, "COMMAND"),
        (["doctor", "--fast"], 2, "--fast"),
    ],
)
def test_a_bad_command_is_one_line_with_its_exit_code(arguments, code, words, tmp_path):
    run = run_musepi(*arguments, cwd=tmp_path)
    assert (run.returncode, run.stdout, len(run.stderr.splitlines())) == (code, "", 1)
    assert words in run.stderr


def test_a_bad_value_changes_nothing(tmp_path, musepi_home):
    run_musepi("config", "set", "theme", "light", cwd=tmp_path)
    before = (musepi_home / "settings.json").read_bytes()
    run_musepi("config", "set", "theme", "7", cwd=tmp_path)
    assert (musepi_home / "settings.json").read_bytes() == before


def test_models_list_shows_what_has_a_key(tmp_path):
    without = json.loads(run_musepi("models", "list", "--json", cwd=tmp_path, fresh=True).stdout)
    with_key = run_musepi("models", "list", cwd=tmp_path, env={"ANTHROPIC_API_KEY": "k"}).stdout
    rows = {f"{row['provider']}/{row['id']}": row for row in without}
    assert rows["demo/demo"]["available"]
    assert not rows["anthropic/claude-sonnet-4-5"]["available"]
    assert "anthropic/claude-sonnet-4-5" in with_key
    assert "openai/" not in with_key
    assert set(rows["demo/demo"]) == {
        "provider", "id", "name", "api", "contextWindow", "maxTokens", "input", "reasoning", "cost",
        "available", "source",
    }  # fmt: skip


def test_models_list_names_a_broken_models_file_and_goes_on(tmp_path, musepi_home):
    (musepi_home / "models.json").write_text('{"providers": {\n  "x": }}')
    run = run_musepi("models", "list", cwd=tmp_path)
    assert run.returncode == 1
    assert "models.json" in run.stderr
    assert "demo/demo" in run.stdout


def test_doctor_reports_each_check_with_a_remedy_where_needed(tmp_path):
    checks = json.loads(run_musepi("doctor", "--json", cwd=tmp_path, fresh=True).stdout)
    by_name = {check["check"]: check for check in checks}
    assert {"python", "terminal", "folders", "settings", "models"} <= by_name.keys()
    assert all(check["status"] in ("ok", "warning", "error") for check in checks)
    assert "ANTHROPIC_API_KEY" in by_name["models"]["remedy"]


def test_doctor_exits_one_for_a_broken_settings_file(tmp_path, musepi_home):
    (musepi_home / "settings.json").write_text("{")
    run = run_musepi("doctor", cwd=tmp_path)
    assert run.returncode == 1
    assert "settings.json" in run.stdout


def test_the_screen_is_refused_on_a_dumb_terminal(tmp_path):
    run = run_musepi(cwd=tmp_path, fresh=True)
    assert run.returncode == 2
    assert "-p" in run.stderr
