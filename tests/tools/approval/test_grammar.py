import itertools
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from musepi_tui.tools.approval.grammar import NotUnderstoodError, read_command, split_tolerantly


def words_of(text: str) -> list[tuple[str, ...]]:
    return [command.texts for command in read_command(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ls", [("ls",)]),
        ("  ls\t-l  ", [("ls", "-l")]),
        ("a && b || c; d | e\nf", [("a",), ("b",), ("c",), ("d",), ("e",), ("f",)]),
        ("a ;", [("a",)]),
        ("echo 'a; b' \"c && d\"", [("echo", "a; b", "c && d")]),
        ("echo a'b'\"c\"", [("echo", "abc")]),
        ('echo "\\"x\\\\"', [("echo", '"x\\')]),
        ("echo ''", [("echo", "")]),
        ("ls *.py ~/x", [("ls", "*.py", "~/x")]),
        ("ls 2>/dev/null 2>&1 >&2 &>/dev/null > /dev/null -l", [("ls", "-l")]),
        ("cat <in.txt -n", [("cat", "-n")]),
        ("echo 2 a=b c@d,e:f^g%h+i", [("echo", "2", "a=b", "c@d,e:f^g%h+i")]),
    ],
)
def test_simple_commands_are_understood(text, expected):
    assert words_of(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "echo $x",
        "echo ${x}",
        "echo $(id)",
        "echo `id`",
        'echo "$x"',
        'echo "`id`"',
        'echo "!x"',
        'echo "\\n"',
        "cat <(id)",
        "cat <<E",
        "cat <<<x",
        "cat <>f",
        "cat <&3",
        "echo a > f",
        "echo a >> f",
        "echo a >| f",
        "echo a>/dev/null",
        "echo a 3>/dev/null",
        "echo a 2>/dev/nullx",
        "echo a >/dev/null/../x",
        "echo a &> f",
        "echo a &>> f",
        "echo a >&f",
        "echo a 2>&1x",
        "echo a {v}>f",
        "sleep 1 &",
        "a & b",
        "a |& b",
        "(ls)",
        "{ ls; }",
        "! ls",
        "[[ a ]]",
        "((1))",
        "ls # x",
        "echo a\\b",
        "echo ~user",
        "echo a=~",
        "echo a~",
        "echo {a,b}",
        "echo @(a)",
        "echo a\rb",
        "echo a\x0bb",
        "echo a\0b",
        "echo 'a\0b'",
        "echo a\u00a0b",
        "a[",
        "a[1]=b",
        "if true",
        "for x",
        "time ls",
        "a;;b",
        "a && ",
        "a | | b",
        "; a",
        "|a",
        "echo 'a",
        'echo "a',
        "< f",
        "cat < *",
        "cat <",
    ],
)
def test_everything_else_is_not_understood(text):
    with pytest.raises(NotUnderstoodError):
        read_command(text)


def test_limits_of_size_and_count():
    with pytest.raises(NotUnderstoodError, match="200 commands"):
        read_command(";".join(["true"] * 201))
    with pytest.raises(NotUnderstoodError, match="64 KiB"):
        read_command("echo " + "a" * 70_000)


def test_globs_and_quotes_of_a_word_are_known():
    (command,) = read_command("rm *x a* '*'")
    facts = [(word.has_glob, word.starts_with_glob, word.quoted) for word in command.words]
    assert facts == [(False, False, False), (True, True, False), (True, False, False), (False, False, True)]


@pytest.mark.parametrize(
    ("text", "plain"),
    [("ls", True), ("./ls", False), ("'ls'", False), ("A=b", False), ("~", False), ("l*", False)],
)
def test_plain_program_names_are_told_from_others(text, plain):
    assert read_command(text)[0].names_plain_program is plain


@pytest.mark.parametrize(
    "text",
    [
        "echo hi; rm x",
        "echo $(rm x)",
        "echo `rm x`",
        "cat <(rm x)",
        "(rm x)",
        "{ rm x; }",
        "if true; then rm x; fi",
        "A=1 rm x",
        "! rm x",
        "r''m x",
        '"rm" x',
        "\\rm x",
        "sh -c 'rm x'",
        "sh -c \"sh -c 'rm x'\"",
        "echo a\nrm x",
        "true &rm x",
        "2>/dev/null rm x",
    ],
)
def test_tolerant_splitter_finds_a_command_anywhere(text):
    assert any(words[:2] == ("rm", "x") for words in split_tolerantly(text))


PIECES = st.sampled_from(
    [
        *"ab2 /.-=~*?[]^%\t\n;|&<>$`\\!#(){}'\"",
        "&&",
        "||",
        "2>&1",
        ">/dev/null",
        " ls ",
        "echo",
        "'a b'",
        '"c d"',
    ]
)
TEXTS = st.lists(PIECES, min_size=1, max_size=9).map("".join)


def is_understood(text: str) -> bool:
    try:
        read_command(text)
    except NotUnderstoodError:
        return False
    return True


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@settings(max_examples=25, deadline=None)
@given(st.lists(TEXTS, min_size=40, max_size=40))
@example(["a[", "]a[b", "- a", "a 2>&1&&b"])
@example(
    ["ls", "a && b || c; d | e\nf", "echo 'a; b' \"c\\\\\"", "cat <in.txt -n", "ls 2>&1 >/dev/null ~/x *.py"]
)
def test_bash_accepts_whatever_is_understood(texts):
    texts = [text for text in texts if is_understood(text)]
    script = "\n".join(
        f"eval $'f() {{\\n'{quoted(text)}$'\\n}}' || printf '%s' {quoted(text)}" for text in texts
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == ""


PROGRAMS = ("ls", "echo", "cat")
WORD = st.one_of(
    st.sampled_from(["a", "-l", "x=y", "a.b/c", "2", "1", "^", "%d", "a:b,c"]),
    st.text(st.sampled_from('ab ;|&$`\\!#()<>*"\n\t'), max_size=5).map(lambda text: f"'{text}'"),
    st.text(st.sampled_from("ab ;|&#()<>*'\n\t"), max_size=5).map(lambda text: f'"{text}"'),
    st.sampled_from(['"\\""', '"\\\\"', "a'b'\"c\"", "''"]),
)
REDIRECTION = st.sampled_from(
    ["", "", "", " 2>/dev/null", " </dev/null", " 2>&1", " > /dev/null", " &>/dev/null", " >&2"]
)
SIMPLE = st.tuples(st.sampled_from(PROGRAMS), st.lists(WORD, max_size=3), REDIRECTION).map(
    lambda parts: " ".join([parts[0], *parts[1]]) + parts[2]
)
LINE = st.lists(
    st.tuples(SIMPLE, st.sampled_from([" && ", " || ", "; ", ";", " | ", "|", "\n"])), min_size=1, max_size=4
).map(lambda parts: "".join(itertools.chain(*parts)).rstrip(" &|;\n"))

TRACER = r"""
set -f
say() { local text; printf -v text '%s\1' "$@"; printf '%s\2' "${text//$'\n'/$'\4'}" >&9; }
ls() { say ls "$@"; }
echo() { say echo "$@"; }
cat() { say cat "$@"; }
"""


def traced(texts: list[str]) -> list[list[tuple[str, ...]]]:
    """The argument vectors bash runs for each text, sorted; one shell for all."""
    runs = "\n".join(f"eval {quoted(text)} </dev/null >/dev/null 2>&1\nprintf '\\3' >&9" for text in texts)
    script = f"exec 9>&1\n{TRACER}{runs}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    found = done.stdout.replace("\4", "\n").split("\3")[:-1]
    return [sorted(tuple(call.split("\1")[:-1]) for call in run.split("\2")[:-1]) for run in found]


def run_when_all_succeed(text: str) -> list[tuple[str, ...]]:
    """A pipeline behind ``||`` never runs then."""
    run: list[tuple[str, ...]] = []
    skipping = False
    for command in read_command(text):
        if command.separator != "|":
            skipping = command.separator == "||"
        if not skipping:
            run.append(command.texts)
    return sorted(run)


@settings(max_examples=25, deadline=None)
@given(st.lists(LINE, min_size=20, max_size=20))
def test_words_are_those_bash_runs(texts):
    texts = [text for text in texts if is_understood(text)]
    assert traced(texts) == [run_when_all_succeed(text) for text in texts]
