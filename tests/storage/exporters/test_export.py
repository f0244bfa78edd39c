import os
import stat

import pytest

from musepi_tui.base.errors import EntryNotFoundError, SessionError, UsageError
from musepi_tui.storage.exporters.export import ExportOptions, export_session, source_of
from musepi_tui.storage.loading import load_session
from tests.support.exports import export, write_full
from tests.support.lines import header_line, write_lines

PLAIN = ExportOptions(None)


@pytest.fixture
def source(tmp_path):
    return source_of(load_session(write_full(tmp_path)))


@pytest.mark.parametrize("name", ["out.pdf", "out", ".html"])
def test_unknown_ending_is_refused_naming_the_known_ones(source, tmp_path, name):
    with pytest.raises(UsageError, match=r"accepted are \.html, \.md, \.txt, \.jsonl"):
        export_session(source, tmp_path / name, PLAIN)


@pytest.mark.parametrize("suffix", [".html", ".md", ".txt", ".jsonl", ".HTML"])
def test_existing_target_stays_unless_forced(source, tmp_path, suffix):
    target = tmp_path / f"out{suffix}"
    target.write_text("mine")
    target.chmod(0o640)
    with pytest.raises(SessionError, match="exists; use --force to replace it"):
        export_session(source, target, PLAIN)
    assert target.read_text() == "mine"
    exported = export_session(source, target, ExportOptions(None, force=True))
    assert exported.size_bytes == target.stat().st_size > 500
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_new_export_is_private(source, tmp_path):
    export_session(source, tmp_path / "out.html", PLAIN)
    assert stat.S_IMODE((tmp_path / "out.html").stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["same", "symlink", "hard link", "dots"])
def test_session_itself_is_never_the_target(source, tmp_path, kind):
    target = tmp_path / "other.jsonl"
    if kind == "symlink":
        target.symlink_to(source.file)
    elif kind == "hard link":
        target.hardlink_to(source.file)
    else:
        target = source.file if kind == "same" else tmp_path / "x" / ".." / "full.jsonl"
        (tmp_path / "x").mkdir()
    before = source.file.read_bytes()
    with pytest.raises(SessionError, match="is the session itself"):
        export_session(source, target, ExportOptions(None, force=True))
    assert source.file.read_bytes() == before


def test_what_is_no_file_is_never_replaced(source, tmp_path):
    (tmp_path / "folder.html").mkdir()
    os.mkfifo(tmp_path / "pipe.html")
    (tmp_path / "link.html").symlink_to(tmp_path / "folder.html")
    for name, word in (("folder", "a folder"), ("pipe", "no regular file"), ("link", "a folder")):
        with pytest.raises(SessionError, match=word):
            export_session(source, tmp_path / f"{name}.html", ExportOptions(None, force=True))


def test_forced_export_replaces_a_link_and_not_what_it_points_at(source, tmp_path):
    (tmp_path / "precious.html").write_text("mine")
    (tmp_path / "link.html").symlink_to(tmp_path / "precious.html")
    export_session(source, tmp_path / "link.html", ExportOptions(None, force=True))
    assert (tmp_path / "precious.html").read_text() == "mine"
    assert not (tmp_path / "link.html").is_symlink()


def test_missing_folder_is_named(source, tmp_path):
    with pytest.raises(SessionError, match=r"the folder .*gone does not exist\. Make it first"):
        export_session(source, tmp_path / "gone" / "out.html", PLAIN)
    with pytest.raises(SessionError, match="is no folder"):
        export_session(source, tmp_path / "full.jsonl" / "out.html", PLAIN)


def test_artifacts_of_the_session_are_no_place_for_it(source, tmp_path):
    (tmp_path / "full").mkdir()
    with pytest.raises(SessionError, match="belongs to the session"):
        export_session(source, tmp_path / "full" / "out.html", PLAIN)


@pytest.mark.parametrize("suffix", [".html", ".jsonl"])
def test_failed_export_leaves_the_old_file_and_nothing_else(source, tmp_path, suffix, monkeypatch):
    target = tmp_path / f"out{suffix}"
    target.write_text("old")

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SessionError, match="could not be written: No space left on device"):
        export_session(source, target, ExportOptions(None, force=True))
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full.jsonl", f"out{suffix}"]


def test_file_that_appears_meanwhile_is_not_replaced(source, tmp_path, monkeypatch):
    target = tmp_path / "out.txt"
    sync = os.fsync

    def appear(descriptor):
        target.write_text("theirs")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", appear)
    with pytest.raises(SessionError, match="exists"):
        export_session(source, target, PLAIN)
    assert target.read_text() == "theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full.jsonl", "out.txt"]


def test_unknown_leaf_is_an_error(tmp_path):
    with pytest.raises(EntryNotFoundError):
        source_of(load_session(write_full(tmp_path)), "nowhere")


@pytest.mark.parametrize("suffix", [".html", ".md", ".txt", ".jsonl"])
def test_session_without_entries_can_be_exported(tmp_path, suffix):
    source = write_lines(tmp_path / "empty.jsonl", header_line())
    assert "s-1" in export(source, tmp_path / f"out{suffix}")


@pytest.mark.parametrize("suffix", [".html", ".md", ".txt", ".jsonl"])
def test_export_is_the_same_every_time(tmp_path, suffix):
    source = write_full(tmp_path)
    assert export(source, tmp_path / f"a{suffix}") == export(source, tmp_path / f"b{suffix}")
