import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from musepi_tui.storage.leftovers import clean_folder


@pytest.fixture(scope="module")
def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def put(folder: Path, name: str, *, age_s: float = 7200, data: bytes = b"x") -> Path:
    file = folder / name
    file.write_bytes(data)
    os.utime(file, (time.time() - age_s,) * 2)
    return file


def clean(folder: Path) -> tuple[str, ...]:
    return clean_folder(folder, [item.name for item in folder.iterdir()])


def test_old_temporary_file_of_a_dead_writer_is_removed(tmp_path, dead_pid):
    gone = put(tmp_path, f".s.jsonl.{dead_pid}.ab12.tmp")
    assert clean(tmp_path) == ()
    assert not gone.exists()


def test_other_temporary_files_stay(tmp_path, dead_pid):
    kept = [
        put(tmp_path, f".s.jsonl.{dead_pid}.young.tmp", age_s=60),
        put(tmp_path, f".s.jsonl.{os.getpid()}.alive.tmp"),
        put(tmp_path, ".s.jsonl.1.init.tmp"),
        put(tmp_path, ".s.jsonl.12345678.tmp"),
        put(tmp_path, f"notes.{dead_pid}.x.tmp"),
    ]
    clean(tmp_path)
    assert [file for file in kept if not file.exists()] == []


def test_backup_takes_the_place_of_a_missing_session_and_it_is_told(tmp_path):
    put(tmp_path, "s.jsonl.old.bak", age_s=9000, data=b"old")
    put(tmp_path, "s.jsonl.new.bak", age_s=8000, data=b"new")
    notices = clean(tmp_path)
    assert (tmp_path / "s.jsonl").read_bytes() == b"new"
    assert not (tmp_path / "s.jsonl.new.bak").exists()
    assert (tmp_path / "s.jsonl.old.bak").exists()
    assert len(notices) == 1
    assert str(tmp_path / "s.jsonl") in notices[0]
    assert "s.jsonl.new.bak" in notices[0]


def test_backup_never_replaces_a_session(tmp_path):
    put(tmp_path, "s.jsonl", data=b"live")
    put(tmp_path, "s.jsonl.u1.bak")
    assert clean(tmp_path) == ()
    assert (tmp_path / "s.jsonl").read_bytes() == b"live"


def test_backup_of_a_session_that_appears_meanwhile_is_left(tmp_path):
    put(tmp_path, "s.jsonl", data=b"live")
    put(tmp_path, "s.jsonl.u1.bak", data=b"old")
    assert clean_folder(tmp_path, ["s.jsonl.u1.bak"]) == ()
    assert (tmp_path / "s.jsonl").read_bytes() == b"live"


def test_original_kept_by_a_migration_is_no_backup_to_bring_back(tmp_path):
    put(tmp_path, "s.jsonl.v1.bak")
    assert clean(tmp_path) == ()
    assert not (tmp_path / "s.jsonl").exists()
