"""Every test with a screen starts an app of its own; what they read alike is read once."""

from collections.abc import Iterator
from typing import Any

import pytest
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet


@pytest.fixture(autouse=True, scope="session")
def style_rules_parsed_once() -> Iterator[None]:
    """The same style sheet with the same colours gives the same rules, which nobody changes: parsing them
    for every app is a sixth of its start."""
    known: dict[Any, list[RuleSet]] = {}
    parse = Stylesheet._parse_rules

    def parse_once(sheet: Stylesheet, *args: Any, **kwargs: Any) -> list[RuleSet]:
        key = (args, *kwargs.items(), *sheet._variables.items())
        if key not in known:
            known[key] = parse(sheet, *args, **kwargs)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield
