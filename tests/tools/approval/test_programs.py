import pytest

from musepi_tui.tools.approval.grammar import read_command
from musepi_tui.tools.approval.programs import covers_program, hazard, inner_words, is_listed
from musepi_tui.tools.approval.rules import covers_words, parse_rules


def is_covered(rule_text: str, command: str) -> bool:
    (part,) = read_command(command)
    (rule,) = parse_rules([rule_text])
    return covers_words(rule, part.texts) and covers_program(rule, part)


HAZARDS = [
    "eval x",
    "sudo ls",
    "xargs rm",
    "docker run x",
    "python x.py",
    "python3.12 -c 1",
    "bash -c ls",
    "gawk x",
    "curl x",
    "rsync a b",
    "printf -v x",
    "test -v 'a[1]'",
    "export PATH=x",
    "unset 'a[x]'",
    "read x",
    "find . -exec x",
    "find . -delete",
    "find . -fprintf f x",
    "fd -x ls",
    "fd --exec-batch ls",
    "sed -i s/a/b/ f",
    "sed -ni p f",
    "sed --in-pl f",
    "sed 'w out' f",
    "sed s/a/b/e f",
    "sed -n -e 1p -e 'r x' f",
    "sort -o f g",
    "sort -nof f",
    "sort --outp=f g",
    "sort --compress-program=x f",
    "uniq a b",
    "tar -xf a",
    "tar -tf a --to-command=x",
    "tar -tf a -I x",
    "git -c a=b status",
    "git --exec-path=x status",
    "git log --output=f",
    "git diff --ext-d",
    "git grep -Ox y",
    "git rebase -x y",
    "git evil",
    "git clone ext::x",
    "rg --pre x y",
    "rg -z y",
    "grep -f x y",
    "grep -rf x y",
    "find *x",
    "sort ?a",
    "ssh host ls",
]


@pytest.mark.parametrize("command", HAZARDS)
def test_open_ended_rule_does_not_cover_what_starts_or_writes(command):
    program = command.split()[0]
    assert hazard(read_command(command)[0])
    assert is_listed(program)
    assert not is_covered(f"bash({program} *)", command)


@pytest.mark.parametrize(
    "command",
    [
        "find . -name '*.py' -type f",
        "fd py src",
        "sed -n 1,20p f",
        "sed s/a/b/g f",
        "sort -n -k2 f",
        "uniq -c f",
        "tar -tvf a.tar",
        "tar tf a.tar",
        "git status -s",
        "git log --oneline -n 5",
        "git diff --stat",
        "rg -n x src",
        "grep -rn x .",
        "printf %s x",
        "test -f x",
        "ls -- *x",
        "make test",
    ],
)
def test_open_ended_rule_covers_harmless_uses(command):
    assert is_covered(f"bash({command.split()[0]} *)", command)


@pytest.mark.parametrize(
    ("rule", "command", "covered"),
    [
        ("bash(python x.py *)", "python x.py a", True),
        ("bash(python -m pytest *)", "python -m pytest -q", True),
        ("bash(python *)", "python x.py", False),
        ("bash(python -W ignore *)", "python -W ignore x.py", False),
        ("bash(sh)", "sh", False),
        ("bash(bash -s)", "bash -s", False),
        ("bash(docker exec web ls *)", "docker exec web ls -l", True),
        ("bash(docker exec *)", "docker exec web rm x", False),
        ("bash(docker exec -it web *)", "docker exec -it web rm", False),
        ("bash(sudo make install)", "sudo make install", True),
        ("bash(sudo *)", "sudo make install", False),
        ("bash(xargs)", "xargs", False),
        ("bash(curl http://x/y)", "curl http://x/y", True),
        ("bash(rm a*)", "rm a*", True),
        ("bash", "python x.py", True),
    ],
)
def test_literal_words_must_reach_what_runs(rule, command, covered):
    assert is_covered(rule, command) is covered


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("timeout 5 ls -l", ("ls", "-l")),
        ("timeout 1.5m ls", ("ls",)),
        ("timeout -s KILL 5 ls", None),
        ("nice -n 5 ls", ("ls",)),
        ("nice ls", ("ls",)),
        ("nohup ls", ("ls",)),
        ("stdbuf -oL ls", ("ls",)),
        ("env ls", ("ls",)),
        ("env A=1 ls", None),
        ("env -i ls", None),
        ("command -v ls", None),
        ("timeout 5 ./x", None),
        ("timeout 5", None),
        ("sudo ls", None),
    ],
)
def test_inner_command_is_found_only_when_it_is_plain(command, inner):
    assert inner_words(tuple(command.split())) == inner
