import struct

import pytest

from musepi_tui.tools.images import ImageFacts, recognise

JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF"
    + bytes(10)
    + b"\xff\xc0\x00\x11\x08"
    + struct.pack(">HH", 30, 40)
    + bytes(10)
)


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(8) + struct.pack(">II", 40, 30), ImageFacts("image/png", 40, 30)),
        (b"GIF89a" + struct.pack("<HH", 40, 30), ImageFacts("image/gif", 40, 30)),
        (JPEG, ImageFacts("image/jpeg", 40, 30)),
        (b"BM" + bytes(16) + struct.pack("<ii", 40, -30), ImageFacts("image/bmp", 40, 30)),
        (b"RIFF" + bytes(4) + b"WEBPVP8X" + bytes(8) + b"\x27\0\0\x1d\0\0", ImageFacts("image/webp", 40, 30)),
        (
            b"RIFF" + bytes(4) + b"WEBPVP8 " + bytes(10) + struct.pack("<HH", 40, 30),
            ImageFacts("image/webp", 40, 30),
        ),
        (
            b"RIFF" + bytes(4) + b"WEBPVP8L" + bytes(4) + b"\x2f" + (39 | 29 << 14).to_bytes(4, "little"),
            ImageFacts("image/webp", 40, 30),
        ),
        (b"\xff\xd8\xff", ImageFacts("image/jpeg", 0, 0)),
        (b"plain text", None),
        (b"", None),
        (b"\x89PNG", None),
    ],
    ids=[
        "png",
        "gif",
        "jpeg",
        "bmp",
        "webp-x",
        "webp-lossy",
        "webp-lossless",
        "cut-jpeg",
        "text",
        "empty",
        "cut-png",
    ],
)
def test_image_is_recognised_by_its_bytes(data, facts):
    assert recognise(data) == facts
