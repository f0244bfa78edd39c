"""The private names of Textual that driver.py and screen.py rely on: a new version must still have them."""

import inspect

import pytest
from textual import constants
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._parser import Parser
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.driver import Driver
from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.screen import Screen
from textual.widgets import TextArea

from musepi_tui.tui.driver import SafeDriver, SafeParser, WakeSelector, patch_toolkit
from musepi_tui.tui.screen import MainScreen, SafeApp


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (App, "_fatal_error"),
        (App, "_close_messages_no_wait"),
        (Screen, "_on_idle"),
        (Screen, "_compositor_refresh"),
        (XTermParser, "_sequence_to_key_events"),
        (LinuxDriver, "_enable_mouse_support"),
        (LinuxDriver, "_disable_mouse_support"),
        (LinuxDriver, "_sigcont_application"),
        (TextArea, "_on_key"),
        (TextArea, "_on_paste"),
    ],
)
def test_method_that_is_overridden_or_called_exists(owner, name):
    assert callable(getattr(owner, name))


def test_overrides_take_what_the_toolkit_gives():
    for ours, theirs, name in (
        (SafeApp, App, "_fatal_error"),
        (MainScreen, Screen, "_on_idle"),
        (MainScreen, Screen, "get_widget_and_offset_at"),
        (SafeParser, XTermParser, "_sequence_to_key_events"),
        (SafeDriver, LinuxDriver, "write"),
        (SafeDriver, LinuxDriver, "close"),
        (SafeDriver, LinuxDriver, "disable_input"),
    ):
        parameters = [list(inspect.signature(getattr(owner, name)).parameters) for owner in (ours, theirs)]
        assert parameters[0] == parameters[1], name


def test_attributes_of_the_parser_exist():
    parser = XTermParser()
    assert parser._timeout_time is None
    assert isinstance(parser, Parser)


def test_writer_thread_has_a_bounded_queue():
    assert WriterThread(file=None)._queue.maxsize > 0  # pyright: ignore


async def test_attributes_of_screen_app_and_driver_exist():
    app: App[None] = App()
    async with app.run_test():
        assert app._batch_count == 0
        assert isinstance(app._driver, Driver)
        assert app.screen._layout_required in {True, False}
        assert isinstance(app.screen._dirty_widgets, set)
        assert callable(app.screen._compositor.update_widgets)
        assert hasattr(app._driver, "_loop")
        assert hasattr(app._driver, "_mouse")
        assert hasattr(app._driver, "_app")


def test_names_that_are_replaced_in_the_driver_module_are_used_there():
    source = inspect.getsource(linux_driver)
    for text in (
        "XTermParser(self._debug)",
        'getincrementaldecoder("utf-8")()',
        "selectors.SelectSelector()",
        "selectors.EVENT_READ",
        "self._writer_thread",
        "self._key_thread",
    ):
        assert text in source
    patch_toolkit()
    assert linux_driver.XTermParser is SafeParser
    assert linux_driver.selectors.SelectSelector is WakeSelector


def test_constants_are_read_when_used():
    source = inspect.getsource(inspect.getmodule(XTermParser))
    assert "constants.ESCAPE_DELAY" in source
    assert "constants.SMOOTH_SCROLL" in source
    patch_toolkit()
    assert pytest.approx(0.04) == constants.ESCAPE_DELAY
    assert constants.SMOOTH_SCROLL is False
    assert "\x1b\r" in ANSI_SEQUENCES_KEYS


def test_escape_delay_of_the_user_wins(monkeypatch):
    monkeypatch.setenv("ESCDELAY", "200")
    monkeypatch.setattr(constants, "ESCAPE_DELAY", 0.2)
    patch_toolkit()
    assert pytest.approx(0.2) == constants.ESCAPE_DELAY
