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


def test_first_and_update_prompt_list_the_same_ten_headings():
    assert headings("compaction-summary") == headings("compaction-update-summary") == HEADINGS


def test_turn_prefix_prompt_lists_its_three_headings():
    assert headings("compaction-turn-prefix") == [
        "## Original Request",
        "## Early Progress",
        "## Context for Suffix",
    ]


@pytest.mark.parametrize(
    "name",
    ["summarization-system", "compaction-summary", "compaction-update-summary", "compaction-turn-prefix"],
)
def test_request_prompts_have_no_placeholder(name):
    assert "{{" not in read_prompt(name)


def test_summary_is_shown_to_the_model_inside_tags_and_a_branch_without():
    shown = render_prompt("compaction-summary-context", summary="TEXT")
    assert shown.endswith("\n\n<summary>\nTEXT\n</summary>")
    branch = render_prompt("branch-summary-context", summary="TEXT")
    assert branch.endswith("\n\nTEXT")
    assert len(branch.splitlines()) == 3
