import re

import pytest

from musepi_tui.settings.fields import known_settings
from musepi_tui.settings.load import known_keys
from musepi_tui.settings.schema import Settings
from tests.support.checkout import PACKAGE, ROOT, sources
from tests.tools.write_settings_page import render_page

USERS = "\n".join(
    path.read_text(encoding="utf-8") for path in sources() if path.parent != PACKAGE / "settings"
)


WITHOUT_EFFECT = {"compaction.remote"}
"""Keys that settings files of other programs and versions hold, for something this version does not have.
Their descriptions say so."""

SETTINGS = [pytest.param(known, id=known.key) for known in known_settings(Settings)]


@pytest.mark.parametrize("known", SETTINGS)
def test_setting_is_described_in_a_sentence(known):
    assert known.description
    assert known.description.endswith(".")


@pytest.mark.parametrize("known", SETTINGS)
def test_setting_has_an_effect(known):
    if known.key in WITHOUT_EFFECT:
        assert "this version" in known.description
        return
    assert re.search(rf"\.{known.name}\b|[\"']{known.name}[\"']", USERS)


def test_the_page_of_settings_is_up_to_date():
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == render_page()
    assert all(f"`{key}`" in render_page() for key in known_keys())
