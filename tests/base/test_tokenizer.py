import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base import tokenizer
from musepi_tui.base.tokenizer import byte_estimate, chars4, load_tokenizer, read_ranks

SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


@pytest.fixture(scope="module")
def o200k():
    return load_tokenizer("auto")


def test_shipped_ranks_are_those_of_o200k_base():
    digest = hashlib.sha256()
    ranks = read_ranks()
    assert list(ranks.values()) == list(range(199_998))
    for token, rank in ranks.items():
        digest.update(base64.b64encode(token) + b" %d\n" % rank)
    assert digest.hexdigest() == SHA256


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("hello world", 2), ("<|endoftext|>", 7), ("漢字", 2), ("def f(x):\n    return x", 7)],
)
def test_o200k_counts_exactly(o200k, text, tokens):
    assert (o200k.name, o200k.warning) == ("o200k", None)
    assert o200k.count(text) == tokens


def test_special_tokens_in_user_text_are_only_text(o200k):
    assert o200k.count("<|endofprompt|>") > 1


def test_a_million_blanks_before_text_do_not_panic(o200k, capfd):
    tokens = o200k.count(" " * 1_500_000 + "x" + "\t" * 1_500_000 + "y")
    assert 20_000 < tokens < 400_000
    assert capfd.readouterr().err == ""


def test_long_text_is_counted_in_pieces_with_hardly_any_difference(o200k):
    line = "The quick brown fox jumps over the lazy dog 12345.\n"
    one = o200k.count(line)
    assert o200k.count(line * 10_000) == pytest.approx(one * 10_000, rel=0.001)


def test_a_panic_is_counted_by_bytes_instead():
    class PanicException(BaseException):
        pass

    def panicking(_text):
        raise PanicException("rust")

    assert tokenizer._count_piece(panicking, "x" * 40) == 10


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_while_counting_goes_on(error):
    def interrupted(_text):
        raise error

    with pytest.raises(error):
        tokenizer._count_piece(interrupted, "x")


@given(st.text(max_size=200))
def test_pieces_join_to_the_text(text):
    big = text * 2_000
    pieces = tokenizer._pieces(big)
    assert "".join(pieces) == big
    assert all(len(piece.encode("utf-8", "surrogatepass")) <= tokenizer.PIECE_BYTES for piece in pieces)


def test_estimates_round_up():
    assert [chars4(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]
    assert [byte_estimate(text) for text in ("", "abcde", "漢字", "\udc80")] == [0, 2, 2, 1]


def test_chars4_can_be_forced():
    loaded = load_tokenizer("chars4")
    assert (loaded.name, loaded.count("abcde")) == ("chars4", 2)


def test_an_unknown_estimator_is_told_and_replaced():
    loaded = load_tokenizer("abacus")
    assert loaded.name == "o200k"
    assert "abacus" in (loaded.warning or "")


def test_cl100k_without_its_file_is_told_and_replaced(tmp_path):
    for ranks in (None, tmp_path / "absent"):
        loaded = load_tokenizer("cl100k", ranks)
        assert loaded.name == "o200k"
        assert "cl100k" in (loaded.warning or "")


def test_cl100k_counts_with_the_users_own_file(tmp_path):
    file = tmp_path / "cl100k_base.tiktoken"
    lines = [base64.b64encode(bytes([byte])) + b" %d" % byte for byte in range(256)]
    file.write_bytes(b"\n".join([*lines, base64.b64encode(b"ab") + b" 256"]))
    loaded = load_tokenizer("cl100k", file)
    assert (loaded.name, loaded.warning) == ("cl100k", None)
    assert loaded.count("abc") == 2
