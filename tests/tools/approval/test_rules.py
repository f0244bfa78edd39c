import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.tools.approval.rules import (
    Rule,
    RuleProblem,
    covers_path,
    covers_words,
    exact_command_rule,
    exact_path_rule,
    join_rules,
    parse_rule,
    parse_rules,
    rule_problems,
)
from musepi_tui.tools.paths import Workspace


def rule(text: str) -> Rule:
    parsed = parse_rule(text)
    assert isinstance(parsed, Rule)
    return parsed


@pytest.mark.parametrize(
    ("pattern", "covered", "other"),
    [
        ("git status", ["git status"], ["git status -s", "git", "git statusx"]),
        ("npm run *", ["npm run", "npm run a b"], ["npm", "npm runx"]),
        ("make test-*", ["make test-", "make test-a"], ["make test", "make test-a b"]),
        ("a*b*c", ["abc", "a1b2c"], ["ab", "acb"]),
        ("*", ["anything", "any thing"], []),
        ("ls", ["ls"], ["LS", "ls -l"]),
    ],
)
def test_words_are_compared_one_by_one(pattern, covered, other):
    for text in covered:
        assert covers_words(rule(f"bash({pattern})"), text.split()), text
    for text in other:
        assert not covers_words(rule(f"bash({pattern})"), text.split()), text


def test_bare_rule_covers_every_command():
    assert covers_words(rule("bash"), ["any", "thing"])
    assert rule("bash").is_bare


@pytest.mark.parametrize(
    "text",
    ["bash(a; b)", "bash(a | b)", "bash(echo $x)", "bash('a')", "bash(a > b)", "no good", "todo(x)", "(x)"],
)
def test_rule_that_promises_what_is_not_kept_is_refused(text):
    assert isinstance(parse_rule(text), RuleProblem)
    assert parse_rules([text]) == ()
    assert [problem.text for problem in rule_problems([text, "read"])] == [text]


@pytest.fixture
def workspace(project, tmp_path):
    return Workspace(project, home=tmp_path / "home")


@pytest.mark.parametrize(
    ("pattern", "covered", "other"),
    [
        ("src/**", ["src/a", "src/x/y"], ["srcx/a", "a", "../src/a"]),
        ("*.md", ["a.md"], ["docs/a.md"]),
        ("**/*.md", ["a.md", "docs/a.md"], ["a.mdx"]),
        ("/etc/hosts", ["/etc/hosts"], ["etc/hosts", "/etc/passwd"]),
        ("~/notes/*", ["~/notes/a"], ["notes/a"]),
    ],
)
def test_path_patterns_are_relative_to_a_root_unless_absolute(workspace, pattern, covered, other):
    for text in covered:
        assert covers_path(rule(f"write({pattern})"), workspace.resolve(text), workspace), text
    for text in other:
        assert not covers_path(rule(f"write({pattern})"), workspace.resolve(text), workspace), text


def test_rule_that_forbids_a_name_means_it_everywhere(workspace):
    assert covers_path(rule("read(*.sec)"), workspace.resolve("a/b.sec"), workspace, eager=True)


def test_rule_follows_the_link_to_the_real_path(workspace, project):
    (project / "src").mkdir()
    (project / "src" / "out").symlink_to("/etc")
    assert not covers_path(rule("read(src/**)"), workspace.resolve("src/out/hosts"), workspace)


def test_exact_rules_are_only_offered_when_they_can_say_it(workspace):
    assert exact_command_rule(["make", "test"]) == "bash(make test)"
    assert exact_command_rule(["make", "a b"]) is None
    assert exact_command_rule(["ls", "*"]) is None
    assert exact_path_rule("write", workspace.resolve("src/a.py"), workspace) == "write(src/a.py)"
    assert exact_path_rule("write", workspace.resolve("a[1].py"), workspace) is None
    assert exact_path_rule("read", workspace.resolve("/etc/hosts"), workspace) == "read(/etc/hosts)"


def test_joined_rules_come_apart_again():
    joined = join_rules(["bash(cd x)", "bash(make test)"])
    assert [item.text for item in parse_rules([joined])] == ["bash(cd x)", "bash(make test)"]


@given(
    st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8), min_size=1, max_size=4)
)
def test_exact_rule_covers_its_words_and_no_more(words):
    text = exact_command_rule(words)
    if text is not None:
        assert covers_words(rule(text), words)
        assert not covers_words(rule(text), [*words, "more"])
        assert not covers_words(rule(text), words[:-1])
