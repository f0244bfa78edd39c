import pytest

from musepi_tui.tools.preview import argument, command_title, language_of, shown_body, title


def test_title_is_one_line():
    assert title("grep", "/a\n  b/", "") == "grep /a b/"
    assert len(title("x" * 1000)) == 400


def test_argument_of_another_type_is_as_good_as_missing():
    assert argument({"path": 3}, "path") == "…"
    assert argument({"file_path": "a"}, "path") == "a"


def test_command_title_counts_further_lines():
    assert command_title("a") == ("$ a", None)
    assert command_title("a\nb\n") == ("$ a", "+1 line")


@pytest.mark.parametrize(
    ("path", "language"),
    [("a.py", "python"), ("x/Makefile", "makefile"), ("a.unknown", None), ("plain", None)],
)
def test_language_is_known_by_the_name(path, language):
    assert language_of(path) == language


def test_long_body_says_what_is_left_out():
    assert shown_body("x\n" * 3000).endswith("… 1,000 more lines")
