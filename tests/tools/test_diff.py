import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.tools.diff import loose_diff, unified_diff

LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=14)


def test_hunk_has_four_lines_of_context_and_counts():
    old = "\n".join(str(number) for number in range(1, 21))
    diff = unified_diff(old, old.replace("10", "ten"))
    assert diff.text.split("\n") == [
        "@@ -6,9 +6,9 @@",
        *(f" {number}" for number in (6, 7, 8, 9)),
        "-10",
        "+ten",
        *(f" {number}" for number in (11, 12, 13, 14)),
    ]
    assert (diff.added, diff.removed, diff.first_line, diff.summary) == (1, 1, 10, "+1 −1")


def test_changes_far_apart_are_separate_hunks():
    old = "\n".join(str(number) for number in range(1, 41))
    diff = unified_diff(old, old.replace("\n5\n", "\nfive\n").replace("\n30\n", "\nthirty\n"))
    assert diff.text.count("@@ -") == 2


def test_equal_texts_have_an_empty_diff():
    assert unified_diff("a\nb", "a\nb") == unified_diff("", "").__class__("", 0, 0, 0)


def test_line_ends_and_byte_order_mark_are_not_shown():
    assert unified_diff("\ufeffa\r\nb\r\n", "\ufeffa\r\nc\r\n").text == "@@ -1,2 +1,2 @@\n a\n-b\n+c"


def test_loose_diff_has_no_hunk_header():
    assert loose_diff("a\nb", "a\nc") == " a\n-b\n+c"


def test_huge_rewrite_is_one_block():
    diff = unified_diff("\n".join(f"a{n}" for n in range(4000)), "\n".join(f"b{n}" for n in range(4000)))
    assert (diff.added, diff.removed) == (4000, 4000)


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the patch program")
@settings(max_examples=40, deadline=None)
@given(LINES, LINES)
def test_patch_accepts_the_diff(tmp_path_factory, old, new):
    file = tmp_path_factory.mktemp("patch") / "file"
    file.write_text("".join(f"{line}\n" for line in old))
    diff = unified_diff("".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new))
    if diff.text:
        subprocess.run(
            ["patch", "-s", str(file)],
            input=f"--- a\n+++ b\n{diff.text}\n",
            text=True,
            check=True,
            timeout=10,
        )
    assert (file.read_text() if file.exists() else "") == "".join(f"{line}\n" for line in new)
