import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.base.errors import ProviderError
from musepi_tui.providers import sse
from musepi_tui.providers.sse import SseDecoder, SseEvent


def decode(*chunks: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.finish()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"data: a\n\n", [("", "a")]),
        (b"event: ping\ndata:a\n\n", [("ping", "a")]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", [("", "a"), ("", "b"), ("", "c")]),
        (b"data: a\ndata:  b\n\n", [("", "a\n b")]),
        (b": comment\n\n: more\ndata: a\n\n", [("", "a")]),
        (b"event: x\n\ndata: a\n\n", [("", "a")]),
        (b"id: 1\nretry: 5\nodd\ndata\n\n", [("", "")]),
        (b"data: a", [("", "a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("", "a")]),
        ("data: x\u2028y\x85z\x0b\n\n".encode(), [("", "x\u2028y\x85z\x0b")]),
        (b"", []),
    ],
    ids=[
        "plain",
        "named, no blank",
        "all line ends",
        "several data lines",
        "comments",
        "name without data",
        "other fields",
        "no closing line",
        "byte order mark",
        "separators inside the text",
        "nothing",
    ],
)
def test_decoder_reads_events_by_the_rules(body, expected):
    assert decode(body) == [SseEvent(name, data) for name, data in expected]


@settings(deadline=None)
@given(
    st.lists(st.text(alphabet=st.characters(blacklist_characters="\r\n", codec="utf-8")), max_size=6),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.lists(st.integers(0, 400), max_size=8),
)
def test_decoder_gives_the_same_events_for_any_chunks(texts, line_end, cuts):
    body = b"".join(b"data: " + text.encode() + line_end + line_end for text in texts)
    borders = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    chunks = [body[start:end] for start, end in zip(borders, borders[1:], strict=False)]
    assert [event.data for event in decode(*chunks)] == texts


def test_decoder_refuses_an_endless_line(monkeypatch):
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    with pytest.raises(ProviderError, match="sent too much"):
        decode(*[b"x" * 30] * 5)


def test_decoder_refuses_an_endless_event(monkeypatch):
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    with pytest.raises(ProviderError, match="sent too much"):
        decode(*[b"data: " + b"x" * 30 + b"\n"] * 5)


def test_decoder_refuses_bytes_that_are_no_text():
    with pytest.raises(ProviderError, match="UTF-8"):
        decode(b"data: \xff\xfe\n\n")
