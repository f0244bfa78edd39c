import os
import threading

from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.cli.stdio import LineSplitter, LineWriter


def split(data: bytes, cuts: list[int], limit: int = 1000) -> list[bytes | None]:
    splitter = LineSplitter(limit)
    lines: list[bytes | None] = []
    start = 0
    for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        lines += splitter.feed(data[start:cut])
        start = cut
    return lines + splitter.finish()


@given(st.binary(max_size=200), st.lists(st.integers(min_value=0, max_value=200)))
def test_lines_do_not_depend_on_where_the_stream_is_cut(data, cuts):
    expected = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    if expected[-1] == b"" and not data.split(b"\n")[-1]:
        expected.pop()
    assert split(data, cuts) == expected


def test_line_separators_of_unicode_are_data():
    assert split("a\u2028b\u2029c\n".encode(), []) == ["a\u2028b\u2029c".encode()]


def test_line_over_the_limit_is_skipped_and_the_next_one_is_read():
    assert split(b"x" * 11 + b"\nok\n", [3, 7], limit=10) == [None, b"ok"]


def test_writer_keeps_the_order_and_drains_on_close():
    reading, writing = os.pipe()
    writer = LineWriter(writing, lambda: None)
    for number in range(500):
        writer.write(b"%d\n" % number)
    writer.close()
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        assert stream.read().split() == [b"%d" % number for number in range(500)]


def test_writer_tells_once_when_the_reader_has_gone():
    reading, writing = os.pipe()
    os.close(reading)
    told = threading.Event()
    writer = LineWriter(writing, told.set)
    writer.write(b"a\n")
    writer.write(b"b\n")
    assert told.wait(5)
    writer.close()
    os.close(writing)
    assert writer.broken
