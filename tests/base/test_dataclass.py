import copy
import dataclasses
import inspect
import pickle
from dataclasses import field
from typing import Any

import pytest

from musepi_tui.base.dataclass import dataclass

standard = dataclasses.dataclass(frozen=True, slots=True)
ours = dataclass(frozen=True, slots=True)


@ours
class Point:
    """A pair."""

    x: int
    y: int = 0
    names: tuple[str, ...] = field(default_factory=tuple)
    raw: Any = field(default=None, compare=False, repr=False)


@ours
class Point3(Point):
    """A triple."""

    z: int = 3

    @property
    def depth(self):
        return self.z


class Body:
    """The same fields, made by both."""

    x: int
    y: list[int] = field(default_factory=list)
    raw: Any = field(default=1, compare=False, repr=False)
    tag: str = field(default="t", kw_only=True)


OURS = ours(type("Body", (), dict(vars(Body))))
STANDARD = standard(type("Body", (), dict(vars(Body))))


@pytest.mark.parametrize("made", [pytest.param(OURS, id="ours"), pytest.param(STANDARD, id="standard")])
def test_class_behaves_like_the_standard_one(made):
    first, second = made(1, tag="a"), made(1, [], 2, tag="a")
    assert first == second
    assert first != made(1, [1], tag="a")
    assert first != (1, [], 1, "a")
    assert repr(first) == "Body(x=1, y=[], tag='a')"
    assert first.y is not made(1).y
    assert dataclasses.replace(first, x=5) == made(5, tag="a")
    assert dataclasses.asdict(first) == {"x": 1, "y": [], "raw": 1, "tag": "a"}
    assert made.__match_args__ == ("x", "y", "raw")
    assert not hasattr(first, "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del first.x
    with pytest.raises(TypeError):
        hash(first)
    with pytest.raises(TypeError):
        made()
    with pytest.raises(TypeError):
        made(1, [], 2, "positional")


def test_parameters_are_those_of_the_standard_one():
    def shape(made):
        made(1)  # the first object: from now on the parameters are known
        return [
            (parameter.name, parameter.kind, parameter.default is inspect.Parameter.empty)
            for parameter in inspect.signature(made.__init__).parameters.values()
        ]

    assert shape(OURS) == shape(STANDARD)


def test_subclass_has_the_fields_of_both():
    point = Point3(1, 2, z=4)
    assert (point.x, point.y, point.names, point.depth) == (1, 2, (), 4)
    assert Point3(1) != Point(1)
    assert hash(Point3(1, raw={})) == hash(Point3(1))
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_object_survives_copying_and_pickling():
    point = Point3(1, 2, ("a",), raw=[1])
    assert copy.deepcopy(point) == point
    assert pickle.loads(pickle.dumps(point)).raw == [1]


def test_own_methods_are_kept_and_post_init_runs():
    seen = []

    @ours
    class Named:
        name: str = ""

        def __post_init__(self):
            seen.append(self.name)

        def __repr__(self):
            return f"<{self.name}>"

    assert repr(Named("a")) == "<a>"
    assert seen == ["a"]


def test_one_that_is_not_frozen_can_be_changed():
    @dataclass(slots=True)
    class Count:
        number: int = 0

    count = Count()
    count.number += 1
    assert count == Count(1)
    assert not hasattr(count, "__dict__")
    with pytest.raises(TypeError):
        hash(count)


def test_class_without_fields_is_equal_to_itself_only():
    @ours
    class Empty:
        pass

    @ours
    class Other:
        pass

    assert Empty() == Empty()
    assert Empty() != Other()
    assert len({Empty(), Empty()}) == 1


def test_other_kinds_are_refused():
    with pytest.raises(TypeError, match="slots=True"):
        dataclass(frozen=True, slots=False)
    with pytest.raises(TypeError, match="no parameters"):

        @ours
        class Odd:
            x: int = field(init=False, default=1)
