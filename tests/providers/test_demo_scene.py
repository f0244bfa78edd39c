from musepi_tui.providers.demo.scene import Kind, read_scene
from musepi_tui.providers.types import Request
from tests.support.builders import a, dev, u

DOCUMENT = (
    "<handoff-context>\n## Goal\n- First request: x\n\n<files>\na.py (Read)\n</files>\n</handoff-context>\n\n"
    "This document was written at the end of an earlier session."
)
SUMMARY = "Earlier work.\n\n<summary>\n## Goal\n- First request: y\n</summary>"


def scene(*messages, choice="auto"):
    return read_scene(Request("", messages, tool_choice=choice))


def test_a_request_without_tool_calls_asks_for_a_handoff():
    found = scene(u("fix it"), a("done"), u("Write it.\n\nAdditional focus: the parser"), choice="none")
    assert (found.kind, found.focus, found.earlier) == (Kind.HANDOFF, "the parser", "")
    assert found.prompt == "[User]: fix it\n\n[Assistant]: done"


def test_what_the_context_begins_with_is_told_apart_from_what_was_said():
    for start in (dev(DOCUMENT), u(SUMMARY)):
        found = scene(start, u("more"), a("done"), u("Write it."), choice="none")
        assert found.prompt == "[User]: more\n\n[Assistant]: done"
        assert found.earlier.strip().endswith(("First request: x", "First request: y"))


def test_the_first_prompt_behind_a_handoff_is_not_the_first_of_all():
    found = scene(dev(DOCUMENT), u("fix it"))
    assert (found.kind, found.prompt, found.is_first) == (Kind.PROMPT, "fix it", False)


def test_a_document_and_the_word_to_go_on_leave_nothing_to_do():
    assert scene(dev(DOCUMENT), dev("Go on.")).kind is Kind.CONTINUE
    assert scene(dev(DOCUMENT)).kind is Kind.CONTINUE
