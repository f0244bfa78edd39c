import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.commands.builtin.compact import split_mode
from musepi_tui.commands.registry import (
    Call,
    CommandRegistry,
    parse_call,
    prompt_text,
    split_arguments,
)


class FakeChoices:
    """Knows two of everything."""

    def choices(self, kind: str) -> tuple[str, ...]:
        return (f"{kind}-one", f"{kind}-two")


@pytest.fixture(scope="module")
def registry() -> CommandRegistry:
    return CommandRegistry.discover()


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("/help", Call("help", "")),
        ("/compact the  parser ", Call("compact", "the  parser")),
        ("/compact one\ntwo", Call("compact", "one\ntwo")),
        ("/skill:name x", Call("skill:name", "x")),
        ("/usr/bin/x", None),
        ("//help", None),
        ("/", None),
        ("/ help", None),
        ("/Help", None),
        (" /help", None),
        ("help", None),
    ],
)
def test_command_lines_are_told_from_prompts(text, call):
    assert parse_call(text) == call


def test_double_slash_sends_the_text_with_one():
    assert prompt_text("//help me") == "/help me"
    assert prompt_text("a // b") == "a // b"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        ("a  b", ("a", "b")),
        ('a "b c" d', ("a", "b c", "d")),
        ("a 'b \"c' d", ("a", 'b "c', "d")),
        ('pre"fix ed"post', ("prefix edpost",)),
        ('a "b c', ("a", "b c")),
        ('""', ("",)),
    ],
)
def test_quotes_group_arguments(text, words):
    assert split_arguments(text) == words


@given(st.text(alphabet="ab \"'", max_size=20))
def test_splitting_never_fails_and_keeps_every_letter(text):
    letters = [char for char in text if char in "ab"]
    assert [char for word in split_arguments(text) for char in word if char in "ab"] == letters


def test_every_command_of_the_issue_is_found_by_name_and_alias(registry):
    for name in ("compact", "new", "resume", "model", "help", "hotkeys", "theme", "quit"):
        assert registry.find(name).name == name
    for alias, name in (("clear", "new"), ("exit", "quit"), ("?", "help"), ("undo", "rewind")):
        assert registry.find(alias).name == name
    assert registry.find("nope") is None


def test_names_and_aliases_are_used_once(registry):
    names = [name for command in registry.commands for name in (command.name, *command.aliases)]
    assert len(names) == len(set(names))
    assert all(command.help for command in registry.commands)


def test_nearest_names_are_offered(registry):
    assert registry.nearest("modle")[0] in {"mode", "model"}
    assert registry.nearest("hlep") == ("help",)
    assert registry.nearest("undoo")[0] == "undo"
    assert registry.nearest("zzz") == ()


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("/th", ["/theme", "/thinking"]),
        ("/qt", ["/quit"]),
        ("/exi", ["/exit"]),
        ("/und", ["/undo"]),
        ("/clear", ["/clear"]),
        ("/branch ", ["new"]),
        ("/branch new", []),
        ("/model ", ["model-one", "model-two"]),
        ("/model two", ["model-two"]),
        ("/model model-two", []),
        ("/new x", []),
        ("/nope x", []),
        ("/usr/b", []),
        ("//h", []),
        ("/a\n", []),
        ("hello", []),
    ],
)
def test_completion(registry, text, labels):
    assert [row.label for row in registry.complete(text, FakeChoices())] == labels


def test_completed_line_is_what_the_row_puts_there(registry):
    assert registry.complete("/the", FakeChoices())[0].text == "/theme "
    assert registry.complete("/theme t", FakeChoices())[0].text == "/theme theme-one"


@pytest.mark.parametrize(
    ("args", "mode", "focus"),
    [
        ("", None, None),
        ("summary", "summary", None),
        ("SUMMARY of the API", "summary", "of the API"),
        ("summary-like", None, "summary-like"),
        ("the summary", None, "the summary"),
        ('"summary of the API"', None, "summary of the API"),
        ("soft  x ", "soft", "x"),
        ("Remote", "remote", None),
        ("snapcompact foo", "snapcompact", "foo"),
        ("--preview", "--preview", None),
        ("undo", "undo", None),
        ("edits of it", None, "edits of it"),
        ('"undo"', None, "undo"),
        ('""', None, None),
    ],
)
def test_compact_takes_a_first_word_as_mode_only_when_it_is_one(args, mode, focus):
    assert split_mode(args) == (mode, focus)
