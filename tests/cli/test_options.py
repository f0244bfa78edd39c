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


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--compaction-model", "local/m:low,other"], 'compaction.model="local/m:low,other"'),
        (["--no-auto-compact"], "compaction.enabled=false"),
        (["--compact-at", "85%"], 'compaction.threshold="85%"'),
        (["--compact-at", "170_000"], 'compaction.threshold="170_000"'),
        (["--compact-at", "auto"], 'compaction.threshold="auto"'),
    ],
)
def test_a_flag_of_compaction_is_a_setting_behind_those_of_set(argv, expected):
    assert parse_options(["--set", "a=1", *argv]).setting_overrides() == ("a=1", expected)


@pytest.mark.parametrize("size", ["lots", "0", "-5%", "", "1e5"])
def test_a_size_nobody_can_compact_at_is_refused_with_what_is_accepted(size):
    with pytest.raises(UsageError, match=r"--compact-at: .*auto, a share such as 85%, nor a number"):
        parse_options([f"--compact-at={size}"])


def test_extensions_are_collected_in_their_order():
    options = parse_options(["-e", "a.py", "--no-extensions", "--extension", "my.module"])
    assert (options.extensions, options.no_extensions) == (("a.py", "my.module"), True)
