import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.settings.migrate import migrate


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"thresholdTokens": 5000}, {"threshold": 5000}),
        ({"thresholdPercent": 80}, {"threshold": "80%"}),
        ({"thresholdPercent": 0.5}, {"threshold": "0.5%"}),
        ({"thresholdTokens": 5000, "thresholdPercent": 80}, {"threshold": 5000}),
        ({"thresholdTokens": -1, "thresholdPercent": 80}, {"threshold": "80%"}),
        ({"thresholdTokens": -1, "thresholdPercent": "x"}, {}),
        ({"thresholdTokens": True}, {}),
        ({"thresholdTokens": 5000, "threshold": "85 %"}, {"threshold": "85 %"}),
        ({"thresholdTokens": 5000, "threshold": "90_000"}, {"threshold": "90_000"}),
        ({"thresholdTokens": 5000, "threshold": 7}, {"threshold": 7}),
        ({"thresholdTokens": 5000, "threshold": "auto"}, {"threshold": 5000}),
        ({"thresholdPercent": 80, "threshold": "lots"}, {"threshold": "80%"}),
        ({"strategy": "context-full"}, {"strategy": "summary"}),
        ({"strategy": "soft"}, {"strategy": "summary"}),
        ({"strategy": "snap"}, {"strategy": "snapcompact"}),
        ({"strategy": "off"}, {"strategy": "off", "enabled": False}),
        ({"strategy": "novel"}, {"strategy": "summary"}),
        ({"compactionModel": "a/b"}, {"model": "a/b"}),
        ({"compactionModel": "a/b", "model": "c/d"}, {"model": "c/d"}),
        ({"remoteEnabled": False}, {"remote": False}),
        ({"keepRecentTokens": 3, "mine": 1}, {"keepRecentTokens": 3, "mine": 1}),
    ],
)
def test_retired_names(old, new):
    assert migrate({"compaction": old}).values == {"compaction": new}


def test_the_model_at_the_top_moves_into_its_group():
    migrated = migrate({"compactionModel": "a/b", "theme": "dark"})
    assert migrated.values == {"theme": "dark", "compaction": {"model": "a/b"}}
    assert migrated.outdated


@pytest.mark.parametrize(
    ("compaction", "outdated", "notes"),
    [
        ({"threshold": 5}, False, 0),
        ({"thresholdTokens": 5}, True, 1),
        ({"strategy": "soft"}, True, 1),
        ({"strategy": "novel"}, False, 1),
        ({"strategy": "off"}, True, 0),
        ({"strategy": "off", "enabled": False}, False, 0),
    ],
)
def test_what_is_worth_rewriting_and_telling(compaction, outdated, notes):
    migrated = migrate({"compaction": compaction})
    assert (migrated.outdated, len(migrated.notes)) == (outdated, notes)


def test_what_is_no_object_is_left_to_validation():
    assert migrate({"compaction": 3}).values == {"compaction": 3}


_VALUES = (
    st.none() | st.booleans() | st.integers(-5, 5000) | st.sampled_from(["auto", "80%", "soft", "off", "x"])
)
_NAMES = st.sampled_from(
    [
        "threshold",
        "thresholdTokens",
        "thresholdPercent",
        "strategy",
        "compactionModel",
        "model",
        "remoteEnabled",
        "z",
    ]
)


@given(
    st.dictionaries(_NAMES, _VALUES), st.dictionaries(st.sampled_from(["compactionModel", "theme"]), _VALUES)
)
def test_migration_is_idempotent_and_leaves_its_input_alone(compaction, top):
    raw = {**top, "compaction": compaction}
    before = json.dumps(raw)
    once = migrate(raw)
    assert json.dumps(raw) == before
    again = migrate(once.values)
    assert again.values == once.values
    assert not again.outdated
