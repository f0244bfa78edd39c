import pytest

from musepi_tui.base.errors import UsageError
from musepi_tui.cli.options import PICK, parse_options


def test_options_are_found_on_both_sides_of_the_prompt():
    options = parse_options(["--model", "m", "do this", "-p", "--set", "a=1", "--set", "b=2"])
    assert (options.prompts, options.model, options.print_once) == (("do this",), "m", True)
    assert options.overrides == ("a=1", "b=2")


@pytest.mark.parametrize(("argv", "expected"), [([], None), (["-r"], PICK), (["-r", "abc"], "abc")])
def test_resume_takes_an_optional_id(argv, expected):
    assert parse_options(argv).resume == expected


def test_yolo_is_an_approval_mode():
    assert parse_options(["--yolo"]).approval_mode == "yolo"
    assert parse_options([]).approval_mode is None


@pytest.mark.parametrize("argv", [["--sess", "x"], ["--thinking", "huge"], ["-c", "-r"], ["--mode"]])
def test_an_unusable_argument_raises_one_line(argv):
    with pytest.raises(UsageError) as caught:
        parse_options(argv)
    assert "\n" not in str(caught.value)


def test_words_behind_two_dashes_are_a_prompt():
    assert parse_options(["-p", "--", "-x is a flag"]).prompts == ("-x is a flag",)
