import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.context.merge import merge_split_turn, validate_summary
from musepi_tui.context.serialize import serialize_conversation
from musepi_tui.providers.demo.summary import read_conversation, write_handoff, write_summary
from tests.support.builders import a, call, t, u

HEADINGS = [
    "## Goal",
    "## Constraints & Preferences",
    "## Progress",
    "### Done",
    "### In Progress",
    "### Blocked",
    "## Key Decisions",
    "## Next Steps",
    "## Critical Context",
    "## Additional Notes",
]
INSTRUCTION = "Write these headings:\n## Goal\n## Progress"
PREFIX_INSTRUCTION = "Write these headings:\n## Original Request\n## Early Progress\n## Context for Suffix"

FIRST = (
    u("fix the failing test"),
    a("looking", calls=[call("ls", "1", path="/p"), call("read", "2", path="/p/a.py")]),
    t("a.py", "1"),
    t("old = 1; x(y=2)", "2"),
    a(calls=[call("edit", "3", path="/p/sub/b.py", edits=[{"oldText": "x\nold", "newText": "x\nnew"}])]),
    t("Edited", "3"),
    a(calls=[call("bash", "4", command="make test", timeout=5)]),
    t("1 failed\n\nexit code 2", "4", error=True),
    a("# It still fails. More words."),
)


def _request(messages, *, previous=None, instruction=INSTRUCTION, focus=None):
    text = f"<conversation>\n{serialize_conversation(messages)}\n</conversation>\n\n"
    if previous is not None:
        text += f"<previous-summary>\n{previous}\n</previous-summary>\n\n"
    return text + instruction + (f"\n\nAdditional focus: {focus}" if focus else "")


def _headings(text):
    return [line for line in text.splitlines() if line.startswith("#")]


def _section(text, heading):
    body = text.partition(f"{heading}\n")[2]
    return body.partition("\n#")[0].strip().splitlines()


def test_a_summary_reports_requests_files_commands_and_changes():
    summary = write_summary(_request(FIRST))
    assert _headings(summary) == [heading for heading in HEADINGS if heading in _headings(summary)]
    assert _section(summary, "## Goal")[0] == '- First request: "fix the failing test"'
    assert _section(summary, "### Done") == [
        '- Answered: "fix the failing test"',
        "- Read `a.py`.",
        "- Changed `sub/b.py`.",
        "- Ran `make test`: exit code 2, `1 failed`.",
    ]
    assert _section(summary, "### Blocked") == ["- `make test` failed last: exit code 2, `1 failed`."]
    assert _section(summary, "## Key Decisions") == ["- **sub/b.py**: `old` became `new`."]
    assert _section(summary, "## Critical Context") == [
        "- The project is in `/p`.",
        "- Last command: `make test`, exit code 2, `1 failed`.",
        '- The last answer began: "It still fails."',
    ]


def test_a_request_without_an_answer_is_in_progress():
    summary = write_summary(_request([*FIRST, u("now the docs"), a(calls=[call("read", path="/p/d.md")])]))
    assert _section(summary, "### In Progress") == ['- Begun, not answered yet: "now the docs"']
    assert _section(summary, "## Next Steps") == ['1. Finish: "now the docs"']


def test_the_previous_summary_lives_on():
    first = write_summary(_request(FIRST))
    second = write_summary(_request([u("thanks"), a("Welcome")], previous=first))
    assert _section(second, "## Goal") == ['- First request: "fix the failing test"', '- Current: "thanks"']
    assert set(_section(first, "### Done")) < set(_section(second, "### Done"))
    assert "- The project is in `/p`." in _section(second, "## Critical Context")


def test_the_request_of_a_split_turn_is_not_forgotten():
    prefix = write_summary(_request([u("the long one")], instruction=PREFIX_INSTRUCTION))
    previous = merge_split_turn(write_summary(_request(FIRST)), prefix)
    summary = write_summary(_request([a("done"), u("next"), a("yes")], previous=previous))
    assert '- Answered: "the long one"' in _section(summary, "### Done")


def test_focus_is_noted_with_the_lines_about_it():
    notes = _section(write_summary(_request(FIRST, focus="what still fails")), "## Additional Notes")
    assert "- Focus asked for: what still fails" in notes
    assert any("It still fails" in note for note in notes)


def test_a_turn_prefix_has_its_own_three_headings():
    text = write_summary(_request(FIRST[:4], instruction=PREFIX_INSTRUCTION))
    assert _headings(text) == ["## Original Request", "## Early Progress", "## Context for Suffix"]
    assert _section(text, "## Original Request") == ['"fix the failing test"']
    assert _section(text, "## Early Progress") == ["- Read `a.py`."]


def test_calls_are_read_back_with_their_results():
    digest = read_conversation(serialize_conversation(FIRST))
    assert [use.tool for use in digest.uses] == ["ls", "read", "edit", "bash"]
    assert digest.uses[1].arguments == {"path": "/p/a.py"}
    assert digest.uses[1].result == "old = 1; x(y=2)"
    assert digest.uses[3].arguments == {"command": "make test", "timeout": 5}


@pytest.mark.parametrize(
    "conversation", ["", "[User]: ", "nothing of the form", "[Tool Call]: x(", "[Tool Result]: y"]
)
def test_an_odd_conversation_still_gives_a_summary(conversation):
    summary = write_summary(f"<conversation>\n{conversation}\n</conversation>\n\n{INSTRUCTION}")
    assert validate_summary(summary) is None


_TEXT = st.text(max_size=30)
_MESSAGE = st.one_of(
    _TEXT.map(u),
    _TEXT.map(a),
    st.builds(
        lambda path, extra: a(calls=[call("edit", path=path, edits=[{"oldText": extra}])]), _TEXT, _TEXT
    ),
    st.builds(lambda command: a(calls=[call("bash", command=command)]), _TEXT),
    _TEXT.map(t),
)


@given(st.lists(_MESSAGE, max_size=12), st.none() | _TEXT)
def test_summaries_of_summaries_keep_their_form_and_size(messages, focus):
    summary = None
    for _ in range(5):
        summary = write_summary(_request(messages, previous=summary, focus=focus))
        validate_summary(summary)
        assert len(summary) < 12_000
        found = [line for line in summary.splitlines() if line in HEADINGS]
        assert found == [heading for heading in HEADINGS if heading in found]


BRANCH_INSTRUCTION = "The conversation above is a branch that is being left.\n## Goal\n## Next Steps"


def test_a_branch_has_its_own_headings():
    text = write_summary(_request(FIRST, instruction=BRANCH_INSTRUCTION))
    found = _headings(text)
    assert found == [heading for heading in HEADINGS[:8] if heading in found]
    assert "- Changed `sub/b.py`." in _section(text, "### Done")
    assert text.endswith("not understood.")


def test_a_handoff_document_reports_the_work_and_what_is_next():
    text = write_handoff(serialize_conversation(FIRST), "", "what still fails")
    assert _headings(text) == [
        "## Goal",
        "## Progress",
        "### Done",
        "### In Progress",
        "## Key Decisions",
        "## Critical Context",
        "## Next Steps",
    ]
    assert _section(text, "## Goal")[0] == '- First request: "fix the failing test"'
    assert _section(text, "### In Progress") == ["- `make test` failed last: exit code 2, `1 failed`."]
    assert "- Focus asked for: what still fails" in _section(text, "## Critical Context")


def test_a_second_handoff_carries_on_what_the_first_one_said():
    first = write_handoff(serialize_conversation(FIRST), "", None)
    second = write_handoff(serialize_conversation([u("thanks"), a("Welcome")]), first, None)
    assert _section(second, "## Goal") == ['- First request: "fix the failing test"', '- Current: "thanks"']
    assert "- Changed `sub/b.py`." in _section(second, "### Done")
    assert second.count("not understood.") == 1
