import pytest

from musepi_tui.base.errors import ToolError
from musepi_tui.tools.builtin.bash import TOOL as BASH
from musepi_tui.tools.builtin.edit import TOOL as EDIT
from musepi_tui.tools.builtin.grep import TOOL as GREP
from musepi_tui.tools.builtin.read import TOOL as READ
from musepi_tui.tools.validate import parse_arguments, plain_arguments


def test_strings_that_hold_numbers_and_booleans_are_taken_as_such():
    args, note = parse_arguments(GREP, {"pattern": 12, "limit": "5", "ignoreCase": "true"})
    assert (args.pattern, args.limit, args.ignoreCase, note) == ("12", 5, True, None)


def test_string_that_holds_a_list_is_taken_as_the_list():
    args, _ = parse_arguments(EDIT, {"path": "a", "edits": '[{"oldText": "x", "newText": "y"}]'})
    assert [(item.oldText, item.newText) for item in args.edits] == [("x", "y")]


def test_single_object_stands_for_a_list_of_one():
    args, _ = parse_arguments(EDIT, {"path": "a", "edits": {"oldText": "x", "newText": "y"}})
    assert len(args.edits) == 1


def test_single_pair_and_names_of_other_programs_are_accepted():
    args, note = parse_arguments(
        EDIT, {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True}
    )
    assert (args.path, args.edits[0].oldText, args.edits[0].replaceAll, note) == ("a", "x", True, None)


def test_unknown_parameters_are_ignored_with_a_note():
    _, note = parse_arguments(READ, {"path": "a", "encoding": "utf-8", "why": 1})
    assert note == "unknown parameter ignored: encoding, why"


def test_null_is_as_good_as_absent():
    args, note = parse_arguments(BASH, {"command": "ls", "timeout": None, "cwd": None})
    assert (args.timeout, args.cwd, note) == (300, None, None)


def test_missing_parameter_is_an_error_with_the_schema():
    with pytest.raises(ToolError, match=r'path: field required.*The schema is: .*"required":\["path"\]'):
        parse_arguments(READ, {})


def test_value_out_of_range_is_an_error():
    with pytest.raises(ToolError, match="timeout"):
        parse_arguments(BASH, {"command": "ls", "timeout": 100_000})


def test_names_inside_env_are_the_models_own():
    assert plain_arguments({"env": {"cmd": "x", "filename": "y"}}) == {"env": {"cmd": "x", "filename": "y"}}


def test_own_name_wins_over_another_spelling():
    assert plain_arguments({"file_path": "other", "path": "mine"}) == {"path": "mine"}
