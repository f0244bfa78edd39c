import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from musepi_tui.base.streams import drop_unwritable
os.read(0, 1)
sys.{stream}.write("nobody reads this")
drop_unwritable()
sys.exit(129)
"""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_exit_code_is_that_of_the_program_when_nobody_reads(stream):
    reading, writing = os.pipe()
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(stream=stream)],
        stdin=subprocess.PIPE,
        env=environ,
        **{stream: writing},
    )
    os.close(writing)
    os.close(reading)
    child.communicate(b"x", timeout=30)
    assert child.returncode == 129
