import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.providers.partial_json import ArgumentsError, parse_complete, parse_partial, repair

TEXTS = st.text(max_size=5)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("{", {}),
        ('{"pa', {}),
        ('{"path', {}),
        ('{"path"', {}),
        ('{"path":', {}),
        ('{"path": "a.p', {"path": "a.p"}),
        ('{"path": "a\\', {"path": "a"}),
        ('{"path": "a\\u00', {"path": "a"}),
        ('{"path": "a\\ud83d', {"path": "a"}),
        ('{"path": "a\\ud83d\\ude0', {"path": "a"}),
        ('{"path": "a\\\\', {"path": "a\\"}),
        ('{"a": 1, ', {"a": 1}),
        ('{"a": 12.', {"a": 12}),
        ('{"a": 1, "b": -', {"a": 1}),
        ('{"a": 1, "b": tru', {"a": 1}),
        ('{"a": true', {"a": True}),
        ('{"a": [1, {"b": "c', {"a": [1, {"b": "c"}]}),
        ('{"a": "line\nbreak', {"a": "line\nbreak"}),
        ("[1, 2", {}),
        ('"text', {}),
        ("[" * 5000, {}),
    ],
)
def test_partial_parse_gives_what_is_there(text, expected):
    assert parse_partial(text) == expected


@settings(deadline=None, max_examples=25)
@given(OBJECTS, st.booleans())
def test_partial_parse_of_every_prefix_is_an_object_and_of_the_whole_the_value(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)
    for end in range(len(text)):
        assert isinstance(parse_partial(text[:end]), dict)
    assert parse_partial(text) == value
    assert parse_complete(text) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("  \n", {}),
        ('{"a": "x\ty\n"}', {"a": "x\ty\n"}),
        ('{"re": "\\d+\\."}', {"re": "\\d+\\."}),
        ('{"a": "\\u12"}', {"a": "\\u12"}),
    ],
    ids=["empty", "blank", "control characters", "bad escapes", "bad unicode escape"],
)
def test_complete_parse_repairs_what_proxies_break(text, expected):
    assert parse_complete(text) == expected


@pytest.mark.parametrize(
    "text", ['{"a": ', "[1]", '"x"', "3", "null", "true", '{"a":' * 201 + "1" + "}" * 201]
)
def test_complete_parse_tells_why_it_cannot_be_read(text):
    with pytest.raises(ArgumentsError, match="arguments"):
        parse_complete(text)


@settings(deadline=None, max_examples=50)
@given(OBJECTS)
def test_repair_leaves_good_json_alone(value):
    text = json.dumps(value)
    assert repair(text) == text
