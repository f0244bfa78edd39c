"""Material of the wider workspace that tests may read: skipped, visibly, where it is absent."""

from pathlib import Path

import pytest

_SHARED = Path(__file__).resolve().parents[3] / "shared"


def shared_path(*parts: str) -> Path:
    """A file or folder of the shared material; skips the calling test when it is not there."""
    path = _SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"shared material is absent: {'/'.join(parts)}")
    return path
