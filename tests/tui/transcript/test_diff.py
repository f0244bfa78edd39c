from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from musepi_tui.tui.transcript.diff import diff_lines, parse_diff
from tests.support.transcripts import palette

DIFF = """@@ -9,3 +9,4 @@ def f
 keep
-    old = value
+    new = value
+\tmore
@@ -30 +31 @@
-gone\u202e
+gone  
\\ No newline at end of file
"""


def shown(body: str, width: int = 40) -> str:
    lines = diff_lines(parse_diff(body), palette(), Style(), width)
    return "\n".join("".join(text for text, _ in line.spans).rstrip() for line in lines)


def marked(body: str) -> list[str]:
    lines = diff_lines(parse_diff(body), palette(), Style(), 80)
    return [text for line in lines for text, style in line.spans if style.reverse]


def test_diff_has_numbers_signs_and_visible_oddities():
    assert shown(DIFF) == (
        " 9   keep\n"
        "10 -     old = value\n"
        "10 +     new = value\n"
        "11 +     more\n"
        " …\n"
        "30 - gone⟨U+202E⟩\n"
        "31 + gone··\n"
        "     No newline at end of file"
    )


def test_changed_words_of_paired_lines_are_marked():
    assert marked("@@ -1 +1 @@\n-old = value\n+new = value\n") == ["old", "new"]
    assert marked("@@ -1 +1 @@\n-f(a)[:-1]:\n+f(a):\n") == ["[:-1]"]
    assert marked("@@ -1 +1 @@\n-add(part)\n+add(part.strip())\n") == [".strip()"]


def test_lines_with_little_in_common_are_not_marked():
    assert marked("@@ -1 +1 @@\n-import os\n+return 3 + x\n") == []


def test_long_lines_hang_clear_of_the_sign():
    assert shown("@@ -1 +1 @@\n-a\n+one two three four\n", 16) == "1 - a\n1 + one two\n    three four"


def test_text_that_is_no_diff_is_shown():
    assert shown("just text\n\nmore") == "  just text\n\n  more"


@given(st.text(alphabet="+-@ \t\nabc1,日\\", max_size=200), st.integers(1, 60))
def test_diff_never_exceeds_its_width(body, width):
    for line in diff_lines(parse_diff(body), palette(), Style(), width):
        text = "".join(part for part, _ in line.spans)
        assert cell_len(text) == line.cells
        assert line.cells <= max(width, 2)
