import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.session.codec import decode_entry, dump_line, encode_entry
from musepi_tui.session.payload import (
    Payload,
    PayloadForm,
    digest_of,
    missing_text,
    with_payloads,
    with_references,
)
from tests.support.lines import record

DIGEST = "0123456789abcdef" * 4
IMAGE = f"blob:sha256:{DIGEST}"
TEXT = f"blobtext:sha256:{DIGEST}"


def found(digest: str, form: PayloadForm) -> str | None:
    return f"{form.value} of {digest[:4]}"


def nothing(digest: str, form: PayloadForm) -> str | None:
    return None


@pytest.mark.parametrize(
    ("stored", "resolved"),
    [
        ({"type": "image", "data": IMAGE, "mimeType": "image/png"}, {"data": "base64 of 0123"}),
        ({"images": [{"data": IMAGE}]}, {"images": [{"data": "base64 of 0123"}]}),
        ({"image_url": IMAGE}, {"image_url": "utf-8 of 0123"}),
        ({"deep": [{"text": TEXT}]}, {"deep": [{"text": "utf-8 of 0123"}]}),
        ({"data": IMAGE}, {}),
        ({"text": IMAGE}, {}),
        ({"text": f"see {TEXT}"}, {}),
        ({"type": "image", "data": IMAGE + "0"}, {}),
        ({"type": "image", "data": f"blob:sha256:{DIGEST.upper()}"}, {}),
        ({"type": "image", "data": f"blob:sha256:../{DIGEST[3:]}"}, {}),
    ],
    ids=[
        "image",
        "images",
        "url",
        "text",
        "data of something else",
        "quoted",
        "inside a text",
        "65 digits",
        "upper case",
        "path",
    ],
)
def test_references_are_replaced_where_they_stand_for_a_payload(stored, resolved):
    assert with_payloads(stored, found) == stored | resolved


def test_what_was_read_is_written_as_the_reference():
    fields = record(
        "message",
        "e1",
        None,
        message={
            "role": "toolResult",
            "toolCallId": "c",
            "toolName": "read",
            "content": [
                {"type": "image", "data": IMAGE, "mimeType": "image/png"},
                {"type": "text", "text": TEXT},
            ],
            "isError": False,
            "timestamp": 1,
        },
    )
    entry = decode_entry(with_payloads(fields, found))
    assert [getattr(block, "data", None) or block.text for block in entry.message.content] == [
        "base64 of 0123",
        "utf-8 of 0123",
    ]
    assert encode_entry(entry) == fields
    assert IMAGE.encode() in dump_line(entry)


def test_missing_blob_leaves_the_reference():
    fields = {"type": "image", "data": IMAGE, "mimeType": "image/png"}
    assert with_payloads(fields, nothing) is fields


def test_missing_text_names_the_blob():
    assert missing_text(IMAGE) == "[image not available: blob 0123456789ab]"
    assert missing_text(TEXT) == "[text not available: blob 0123456789ab]"
    assert missing_text("aGVsbG8=") is None


def test_digest_is_exactly_that_of_a_reference():
    assert digest_of(IMAGE) == DIGEST
    assert digest_of(f"{IMAGE}\n") is None
    assert digest_of(7) is None


def test_deepest_line_allowed_is_walked():
    nested: object = IMAGE
    for _ in range(200):
        nested = [nested]
    assert with_references(with_payloads(nested, found)) == nested


leaves = st.one_of(st.none(), st.integers(), st.text(max_size=5), st.sampled_from([IMAGE, TEXT]))
keys = st.sampled_from(["type", "data", "image_url", "images", "text", "mimeType"])
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_resolving_and_writing_again_gives_what_was_stored(value):
    resolved = with_payloads(value, found)
    assert with_references(resolved) == value


def test_payload_is_the_text_for_everybody_else():
    payload = Payload("text", TEXT)
    assert payload == "text"
    assert {payload: 1}["text"] == 1
    assert payload.upper() == "TEXT"
