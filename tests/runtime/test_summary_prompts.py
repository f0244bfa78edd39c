import re

import pytest

from musepi_tui.base.resources import read_prompt, render_prompt

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


def headings(name):
    return re.findall(r"^#+ .+$", read_prompt(name), re.MULTILINE)


@pytest.mark.parametrize("name", ["compaction-summary", "compaction-update-summary", "compaction-merge"])
def test_every_prompt_of_a_whole_summary_lists_the_same_ten_headings(name):
    assert headings(name) == HEADINGS


def test_segment_prompt_says_which_part_it_is_about_and_lists_no_headings():
    prompt = render_prompt("compaction-segment", index="2", count="7")
    assert "part 2 of 7" in prompt
    assert "{{" not in prompt
    assert headings("compaction-segment") == []


def test_turn_prefix_prompt_lists_its_three_headings():
    assert headings("compaction-turn-prefix") == [
        "## Original Request",
        "## Early Progress",
        "## Context for Suffix",
    ]


def test_branch_prompt_asks_for_its_own_headings():
    assert headings("branch-summary") == [*HEADINGS[:7], "## Next Steps"]


def test_branch_summary_begins_with_two_lines_that_say_what_it_is():
    assert len(read_prompt("branch-summary-preamble").splitlines()) == 2


@pytest.mark.parametrize(
    "name",
    [
        "branch-summary",
        "branch-summary-preamble",
        "summarization-system",
        "compaction-summary",
        "compaction-update-summary",
        "compaction-turn-prefix",
        "compaction-merge",
    ],
)
def test_request_prompts_have_no_placeholder(name):
    assert "{{" not in read_prompt(name)


def test_summary_is_shown_to_the_model_inside_tags_and_a_branch_without():
    shown = render_prompt("compaction-summary-context", summary="TEXT")
    assert shown.endswith("\n\n<summary>\nTEXT\n</summary>")
    branch = render_prompt("branch-summary-context", summary="TEXT")
    assert branch.endswith("\n\nTEXT")
    assert len(branch.splitlines()) == 3
