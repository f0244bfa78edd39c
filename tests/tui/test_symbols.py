import pytest

from musepi_tui.base.cells import cell_width
from musepi_tui.tui.symbols import SPINNERS, SYMBOLS, choose_preset


def test_presets_have_the_same_names():
    assert set(SYMBOLS["ascii"]) == set(SYMBOLS["unicode"]) == set(SYMBOLS["nerd"])


def test_unicode_signs_but_the_camera_take_one_cell_and_need_no_emoji_font():
    for name, sign in SYMBOLS["unicode"].items():
        if name == "camera" or name.startswith("tree"):
            continue
        assert cell_width(sign) == 1, name
        assert all(ord(char) < 0x1F000 and not 0x2460 <= ord(char) <= 0x24FF for char in sign), name


def test_ascii_signs_are_ascii():
    assert all(sign.isascii() for sign in [*SYMBOLS["ascii"].values(), *SPINNERS["ascii"]])


@pytest.mark.parametrize(
    ("wanted", "environ", "preset"),
    [
        (None, {"LANG": "de_DE.UTF-8"}, "unicode"),
        ("ascii", {"LANG": "C.utf8"}, "ascii"),
        ("unicode", {"LANG": "C"}, "ascii"),
        ("unicode", {"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "ascii"),
        ("unicode", {"TERM": "linux", "LANG": "C.UTF-8"}, "ascii"),
        ("unicode", {"MUSEPI_ASCII": "1", "LANG": "C.UTF-8"}, "ascii"),
        ("pink", {}, "unicode"),
    ],
)
def test_preset_follows_wish_locale_and_terminal(wanted, environ, preset):
    assert choose_preset(wanted, environ) == preset
