import logging
import stat

import pytest

from musepi_tui.base import log


@pytest.fixture(autouse=True)
def closed_afterwards():
    yield
    logger = logging.getLogger("musepi")
    for handler in tuple(logger.handlers):
        logger.removeHandler(handler)
        handler.close()


def test_warnings_go_to_a_private_file_without_secrets(tmp_path):
    state = tmp_path / "state"
    log.configure(state, secrets=["my-own-secret"])
    logging.getLogger("musepi.test").warning("key %s and %s", "my-own-secret", "sk-abcdefghijklmnopqrst")
    logging.getLogger("musepi.test").debug("not this")
    file = log.log_path(state)
    text = file.read_text()
    assert "WARNING musepi.test: key my…(8+) and sk…(16+)" in text
    assert "not this" not in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (file.parent, state)} == {0o700}


def test_tracebacks_are_masked_too(tmp_path):
    log.configure(tmp_path)
    try:
        raise ValueError("Authorization: Bearer abcdefgh1234")
    except ValueError:
        logging.getLogger("musepi").exception("failed")
    text = log.log_path(tmp_path).read_text()
    assert "ValueError" in text
    assert "abcdefgh1234" not in text


def test_verbose_takes_everything_into_the_given_file(tmp_path):
    log.configure(tmp_path, verbose=True, file=tmp_path / "own.log")
    logging.getLogger("musepi").debug("detail")
    assert "detail" in (tmp_path / "own.log").read_text()


def test_a_place_that_cannot_be_written_turns_the_log_off(tmp_path, capfd):
    (tmp_path / "logs").write_text("a file where the folder should be")
    log.configure(tmp_path)
    logging.getLogger("musepi").error("lost")
    assert capfd.readouterr().err == ""


def test_a_large_log_is_set_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "MAX_LOG_BYTES", 10)
    log.configure(tmp_path)
    logging.getLogger("musepi").error("first run")
    log.configure(tmp_path)
    logging.getLogger("musepi").error("second run")
    assert "first run" in (tmp_path / "logs" / "musepi.old.log").read_text()
    assert "first run" not in log.log_path(tmp_path).read_text()
