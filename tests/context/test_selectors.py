import pytest

from musepi_tui.context.selectors import base_of_key, split_selector, supersede_key
from tests.support.builders import call


@pytest.mark.parametrize(
    ("name", "base", "selector"),
    [
        ("a/b.py", "a/b.py", None),
        ("a/b.py:10", "a/b.py", "10"),
        ("a/b.py:10-20", "a/b.py", "10-20"),
        ("a/b.py:10-", "a/b.py", "10-"),
        ("a/b.py:10..", "a/b.py", "10.."),
        ("a/b.py:L5..L9", "a/b.py", "L5..L9"),
        ("a/b.py:l5+9", "a/b.py", "l5+9"),
        ("a/b.py:raw", "a/b.py", "raw"),
        ("a/b.py:raw:3-7", "a/b.py", "raw:3-7"),
        ("a/b.py:3-7:RAW", "a/b.py", "3-7:RAW"),
        ("a/b.py:1,5-,9+2", "a/b.py", "1,5-,9+2"),
        ("a/b.py:conflicts", "a/b.py", "conflicts"),
        ("a/b.py:raw:raw", "a/b.py:raw", "raw"),
        ("a/b.py:1-2:3-4", "a/b.py:1-2", "3-4"),
        ("a/b.py:10+", "a/b.py:10+", None),
        ("a/b.py:1, 2", "a/b.py:1, 2", None),
        ("store.db:orders", "store.db:orders", None),
        ("C:\\src\\x.py", "C:\\src\\x.py", None),
        ("C:\\src\\x.py:3", "C:\\src\\x.py", "3"),
        (":5", ":5", None),
        ("", "", None),
    ],
)
def test_read_selector(name, base, selector):
    assert split_selector(name) == (base, selector)


@pytest.mark.parametrize(
    ("read", "key"),
    [
        (call("read", path="a/b.py"), "a/b.py"),
        (call("read", path="a/b.py:10-20"), "a/b.py\x0010-20"),
        (call("read", path="a/b.py:L5..L9"), "a/b.py\0L5..L9"),
        (call("read", path="a/b.py:raw:3-7"), "a/b.py\0raw:3-7"),
        (call("read", path="store.db:orders"), "store.db:orders"),
        (call("read", path="C:\\src\\x.py"), "C:\\src\\x.py"),
        (call("read", path="memory://note"), None),
        (call("read", path=""), None),
        (call("read", path=7), None),
        (call("read"), None),
        (call("write", path="a/b.py"), None),
        (call("read", path="a/b.py", offset=None, limit=None), "a/b.py"),
        (call("read", path="a/b.py", offset=200), "a/b.py\0@200+None"),
        (call("read", path="a/b.py", offset=200, limit=50), "a/b.py\0@200+50"),
    ],
)
def test_supersede_key(read, key):
    assert supersede_key(read) == key


def test_a_key_leads_to_the_whole_file():
    assert base_of_key("a/b.py\x0010-20") == "a/b.py"
    assert base_of_key("a/b.py") == "a/b.py"
