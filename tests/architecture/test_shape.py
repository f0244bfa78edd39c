import ast

import pytest

from tests.support.checkout import PACKAGE, sources

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_CLASS_LINES = 300
MAX_PUBLIC_METHODS = 20

FILES = [pytest.param(path, id=str(path.relative_to(PACKAGE))) for path in sources()]
# Textual finds these by their names; nobody calls them.
_HOOKS = ("action_", "on_", "watch_", "validate_", "compute_", "key_", "render", "compose")
BANNED_NAMES = {"utils.py", "helpers.py", "manager.py", "misc.py"}


def _lines(node):
    return node.end_lineno - node.lineno + 1


def _is_method(node):
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _is_called_by_others(method):
    is_value = any(isinstance(found, ast.Name) and found.id == "property" for found in method.decorator_list)
    return not is_value and not method.name.startswith(("_", *_HOOKS))


@pytest.mark.parametrize("path", FILES)
def test_file_is_short_enough_to_read_in_one_sitting(path):
    text = path.read_text(encoding="utf-8")
    assert path.name not in BANNED_NAMES
    assert text.count("\n") < MAX_FILE_LINES
    for node in ast.walk(ast.parse(text)):
        if _is_method(node):
            assert _lines(node) <= MAX_FUNCTION_LINES, node.name
        if isinstance(node, ast.ClassDef):
            public = [item.name for item in node.body if _is_method(item) and _is_called_by_others(item)]
            assert _lines(node) <= MAX_CLASS_LINES, node.name
            assert len(public) <= MAX_PUBLIC_METHODS, node.name
