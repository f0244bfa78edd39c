import logging
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.tools.approval.commands import CommandCall
from musepi_tui.tools.approval.decide import CallToDecide, Decision, Policy, decide
from musepi_tui.tools.paths import Workspace
from musepi_tui.tools.types import Effect

RULES = ("bash(echo *)", "bash(ls *)", "bash(cat *)", "bash(git status *)", "bash(find *)", "bash(printf *)")
EFFECTS = {"bash": Effect.EXEC, "write": Effect.WRITE, "edit": Effect.WRITE}


@pytest.fixture
def workspace(project, tmp_path):
    (tmp_path / "home").mkdir()
    return Workspace(project, home=tmp_path / "home", own_folders=[tmp_path / "own"])


@pytest.fixture
def judge(workspace):
    def judge(tool: str, mode: str = "ask", policy: Policy | None = None, /, **arguments) -> Decision:
        call = CallToDecide(tool, EFFECTS.get(tool, Effect.READ), arguments)
        return decide(call, policy or Policy(mode), workspace)

    return judge


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ('echo "a; b" && ls', "allow"),
        ("cat x.md | echo", "allow"),
        ("ls /none 2>/dev/null", "allow"),
        ("echo a > f", "ask"),
        ("ls 2> f", "ask"),
        ("echo a &>> f", "ask"),
        ("echo $(id)", "ask"),
        ("echo `id`", "ask"),
        ("cat <(id)", "ask"),
        ("echo ${x@P}", "ask"),
        ("cat <<E", "ask"),
        ("echo a # it's\ntouch f", "ask"),
        ("echo 'a\\'; touch f #'", "ask"),
        ("echo a\ntouch f", "ask"),
        ("PATH=./x:$PATH ls", "ask"),
        ("./ls", "ask"),
        ("/opt/x/ls", "ask"),
        ("LS", "ask"),
        ("lsx", "ask"),
        ("find . -exec touch f ';'", "ask"),
        ("find . -fprint f", "ask"),
        ("git -c core.fsmonitor=x status", "ask"),
        ("git status --output=f", "ask"),
        ("printf -v 'a[$(id)]' x", "ask"),
        ("true; " * 60 + "touch f", "ask"),
        ("git status -s", "allow"),
        ("timeout 5 ls", "allow"),
        ("timeout 5 touch f", "ask"),
        ("cat < /etc/hosts", "ask"),
        ("cat < in.txt", "allow"),
        ("cd sub && git status", "ask"),
    ],
)
def test_worked_decisions_of_the_safety_page(judge, command, kind):
    decision = judge("bash", "ask", Policy("ask", allow=RULES), command=command)
    assert decision.kind == kind
    assert decision.reason


@pytest.mark.parametrize(
    ("env", "kind"),
    [
        ({"BASH_ENV": "f"}, "ask"),
        ({"PATH": "."}, "ask"),
        ({"LANG": "C", "LC_ALL": "C", "CI": "1"}, "allow"),
        ({}, "allow"),
    ],
)
def test_variables_of_the_call_may_not_change_what_runs(judge, env, kind):
    assert judge("bash", "ask", Policy(allow=RULES), command="echo a", env=env).kind == kind


def test_folder_of_the_call_must_be_inside(judge):
    assert judge("bash", "ask", Policy(allow=RULES), command="ls", cwd="/etc").kind == "ask"


@pytest.mark.parametrize(
    ("mode", "tool", "arguments", "kind"),
    [
        ("ask", "read", {"path": "a"}, "allow"),
        ("ask", "read", {"path": "/etc/hosts"}, "ask"),
        ("ask", "grep", {"pattern": "x"}, "allow"),
        ("ask", "find", {"pattern": "x", "path": ".."}, "ask"),
        ("ask", "write", {"path": "a"}, "ask"),
        ("ask", "edit", {"path": "a"}, "ask"),
        ("ask", "bash", {"command": "ls"}, "ask"),
        ("auto-edit", "write", {"path": "a"}, "allow"),
        ("auto-edit", "write", {"path": "../a"}, "ask"),
        ("auto-edit", "write", {"path": "/etc/a"}, "ask"),
        ("auto-edit", "bash", {"command": "ls"}, "ask"),
        ("yolo", "write", {"path": "/tmp/a"}, "allow"),
        ("yolo", "bash", {"command": "rm -rf x; $(y)"}, "allow"),
        ("yolo", "read", {"path": ".env"}, "allow"),
        ("ask", "todo", {}, "allow"),
    ],
)
def test_mode_decides_last(judge, mode, tool, arguments, kind):
    assert judge(tool, mode, **arguments).kind == kind


@pytest.mark.parametrize("tool", ["write", "edit"])
@pytest.mark.parametrize("path", [".git/hooks/x", ".musepi/settings.json", ".envrc", ".env", "~/.bashrc"])
def test_protected_place_asks_although_a_rule_allows(judge, tool, path):
    policy = Policy("auto-edit", allow=(tool, f"{tool}(**)"))
    decision = judge(tool, "", policy, path=path)
    assert (decision.kind, decision.dangerous, decision.rule) == ("ask", True, None)
    assert judge(tool, "yolo", path=path).kind == "allow"


@pytest.mark.parametrize("path", [".env", "sub/server.pem", "~/.ssh/config", ".env:1-5"])
def test_secret_file_asks_before_it_is_read(judge, path):
    assert judge("read", "auto-edit", path=path).kind == "ask"


@pytest.mark.parametrize("mode", ["ask", "auto-edit", "yolo"])
def test_files_of_the_program_are_refused_in_every_mode(judge, tmp_path, mode):
    assert judge("write", mode, path=f"{tmp_path}/own/settings.json").kind == "deny"
    assert judge("read", mode, path=f"{tmp_path}/own/auth.json").kind == "deny"


def test_file_with_several_names_asks_before_it_is_written(judge, project):
    (project / "a").write_text("x")
    os.link(project / "a", project / "b")
    decision = judge("write", "auto-edit", path="a")
    assert decision.kind == "ask"
    assert "2 names" in decision.reason


def test_artifact_and_guessed_file_may_be_read(judge, project):
    (project / "src").mkdir()
    (project / "src" / "only.py").write_text("x")
    assert judge("read", path="artifact://3:5-9").kind == "allow"
    assert judge("read", path="only.py").kind == "allow"


def test_guessed_file_is_judged_by_where_it_really_is(judge, project):
    (project / "src").mkdir()
    (project / "src" / "only.py").write_text("x")
    policy = Policy(deny=("read(src/**)",))
    assert judge("read", "", policy, path="only.py").kind == "deny"


def test_other_spellings_of_a_parameter_are_judged_alike(judge):
    assert judge("read", file_path="/etc/hosts").kind == "ask"
    assert judge("write", "auto-edit", file_path=".git/config").kind == "ask"


def test_path_that_cannot_be_resolved_is_refused_with_the_reason(judge):
    assert judge("write", "yolo", path="a\0b").kind == "deny"
    assert judge("write", "yolo", path=3).kind == "deny"


FORBIDDEN = Policy("yolo", allow=("bash",), deny=("bash(rm *)",))


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "ls && rm x",
        "/bin/rm x",
        "\\rm x",
        "r''m x",
        "sudo rm x",
        "timeout 5 nice rm x",
        "sh -c 'rm x'",
        "echo $(rm x)",
        "xargs rm < list",
        "find . -exec rm {} ';'",
        "if true; then rm x; fi",
        "A=1 rm x",
        "true; " * 150 + "rm x",
    ],
)
def test_deny_rule_wins_wherever_the_command_hides(judge, command):
    decision = judge("bash", "", FORBIDDEN, command=command)
    assert (decision.kind, decision.rule) == ("deny", "bash(rm *)")


@pytest.mark.parametrize("command", ["$(echo rm) x", "/bin/r? x", "x=rm; $x y"])
def test_unreadable_command_asks_in_yolo_when_something_is_forbidden(judge, command):
    assert judge("bash", "", FORBIDDEN, command=command).kind == "ask"
    assert judge("bash", "yolo", command=command).kind == "allow"


def test_deny_beats_ask_beats_allow(judge):
    everything = ("bash(make *)",)
    assert (
        judge("bash", "", Policy("yolo", everything, everything, everything), command="make x").kind == "deny"
    )
    assert judge("bash", "", Policy("yolo", everything, everything), command="make x").kind == "ask"
    assert judge("bash", "", Policy("ask", everything), command="make x").kind == "allow"
    assert judge("write", "", Policy("yolo", ask=("write(src/**)",)), path="src/a").kind == "ask"


def test_danger_asks_although_rules_allow_and_offers_no_grant(judge):
    decision = judge("bash", "", Policy(allow=("bash",)), command="rm -rf /")
    assert (decision.kind, decision.dangerous, decision.rule) == ("ask", True, None)


def test_bare_rule_allows_what_is_not_understood(judge):
    assert (
        judge("bash", "", Policy(allow=("bash",)), command="for x in $(ls); do echo $x; done").kind == "allow"
    )


def test_reason_counts_the_other_parts_that_ask(judge):
    assert judge("bash", command="a; b; c").reason == "no rule covers: a (and 2 more parts)"


@pytest.mark.parametrize(
    ("tool", "arguments", "rule"),
    [
        ("bash", {"command": "make test"}, "bash(make test)"),
        ("bash", {"command": "cd sub && make test"}, "bash(cd sub), bash(make test)"),
        ("write", {"path": "src/a.py"}, "write(src/a.py)"),
        ("read", {"path": "/etc/hosts"}, "read(/etc/hosts)"),
    ],
)
def test_grant_is_the_narrowest_rule_and_is_enough(judge, tool, arguments, rule):
    decision = judge(tool, **arguments)
    assert (decision.kind, decision.rule) == ("ask", rule)
    assert judge(tool, "", Policy(grants=(rule,)), **arguments).kind == "allow"


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "echo $x"},
        {"command": "sudo make"},
        {"command": "python x.py"},
        {"command": "git commit"},
        {"command": "curl x"},
        {"command": "ls *"},
        {"command": "./run"},
        {"command": "echo 'a b'"},
        {"command": "make", "env": {"CI": "1"}},
        {"command": "find . -delete"},
    ],
)
def test_no_grant_is_offered_for_what_words_cannot_describe(judge, arguments):
    decision = judge("bash", **arguments)
    assert (decision.kind, decision.rule) == ("ask", None)


def test_git_asks_where_the_project_makes_it_run_programs(judge, project):
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("[core]\nfsmonitor = ./evil\n")
    decision = judge("bash", "", Policy(allow=RULES), command="git status")
    assert decision.kind == "ask"
    assert "core.fsmonitor" in decision.reason


def test_bug_in_here_asks_and_is_logged(judge, monkeypatch, caplog):
    def broken(*_):
        raise IndexError("a bug")

    monkeypatch.setattr(CommandCall, "read", broken)
    with caplog.at_level(logging.ERROR, logger="musepi.approval"):
        assert judge("bash", "yolo", command="ls").kind == "ask"
    assert "a bug" in caplog.text


ALLOWED = st.sampled_from(
    ['echo "a; b" && ls', "cat x.md | echo", "ls /none 2>/dev/null", "git status -s", "echo 'x' y"]
)


@given(ALLOWED, st.data())
def test_a_character_put_into_an_allowed_line_allows_no_other_program(tmp_path_factory, line, data):
    at = data.draw(st.integers(0, len(line)))
    changed = line[:at] + chr(data.draw(st.integers(0, 127))) + line[at:]
    workspace = Workspace(tmp_path_factory.getbasetemp())
    call = CallToDecide("bash", Effect.EXEC, {"command": changed})
    if decide(call, Policy(allow=RULES), workspace).kind == "allow":
        programs = {part.texts[0] for part in CommandCall.read({"command": changed}, workspace).parts}
        assert programs <= {"echo", "ls", "cat", "git", "find", "printf"}
