import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from musepi_tui.base.errors import SessionError, UsageError
from musepi_tui.cli.compact import main
from musepi_tui.session.codec import encode_entry, encode_header
from musepi_tui.session.entries import SessionHeader
from tests.support.builders import a, call, compaction, path, state, t, u, words
from tests.support.lines import write_lines
from tests.support.shared import shared_path
from tests.support.sketch import parts, sketch

L = "u100 a200 t4000 a300 u50 a6000 t3000 a100"
FIELDS = {
    "ok",
    "reason",
    "action",
    "window",
    "threshold",
    "budgetReserve",
    "thresholdClamped",
    "invalidThreshold",
    "keepRecentTokens",
    "tokensBefore",
    "tokens",
    "firstKeptEntryId",
    "cutIndex",
    "isSplit",
    "turnStartEntryId",
    "historyEntryIds",
    "prefixEntryIds",
    "keptEntryIds",
    "elideEntryIds",
    "previousSummary",
    "previousCompactionId",
    "readFiles",
    "modifiedFiles",
    "filesBlock",
    "conversation",
    "prefixConversation",
    "maxOutputTokens",
    "segments",
    "snapcompact",
}
KEEP = "compaction.keepRecentTokens=5000"


@pytest.fixture
def environ(tmp_path):
    return {"MUSEPI_HOME": str(tmp_path / "home"), "MUSEPI_TOKENIZER": "chars4"}


@pytest.fixture
def store(tmp_path):
    """Writes a session of these entries and returns its file."""

    def write(entries, name="s.jsonl"):
        header = encode_header(SessionHeader("id", "2026-01-01T00:00:00.000Z", str(tmp_path)))
        return write_lines(tmp_path / name, header, *(encode_entry(entry) for entry in entries))

    return write


@pytest.fixture
def run(capsys, environ):
    """Runs the command with ``--dry-run --json`` and returns what it printed."""

    def call_it(file, *arguments, code=0):
        assert main([str(file), "--dry-run", "--json", *arguments], environ) == code
        out, err = capsys.readouterr()
        assert err == ""
        return json.loads(out)

    return call_it


def test_a_dry_run_tells_every_fact_of_the_contract(run, store):
    found = run(store(sketch(L)), "--set", KEEP)
    assert set(found) == FIELDS
    assert (found["ok"], found["reason"], found["action"]) == (True, None, "summary")
    assert (found["cutIndex"], found["isSplit"], found["turnStartEntryId"]) == (5, True, "e5")
    assert found["historyEntryIds"] == ["e1", "e2", "e3", "e4"]
    assert found["prefixEntryIds"] == ["e5"]
    assert found["keptEntryIds"] == ["e6", "e7", "e8"]
    assert found["elideEntryIds"] == ["e7"]
    assert found["firstKeptEntryId"] == "e6"
    assert found["tokens"] == {"history": 4_600, "prefix": 50, "kept": 9_100}
    assert found["keepRecentTokens"] == 5_000
    assert found["maxOutputTokens"] == {"history": 13_107, "prefix": 8_192}
    assert found["prefixConversation"] == f"[User]: {words(50)}"
    assert found["conversation"].startswith(f"[User]: {words(100)}\n\n[Assistant]: ")
    assert (found["filesBlock"], found["previousSummary"], found["segments"]) == ("", None, None)
    assert found["snapcompact"] is None


def test_a_session_on_an_unknown_model_has_no_window(run, store):
    found = run(store(sketch(L)))
    assert found["window"] is found["threshold"] is found["budgetReserve"] is None
    assert (found["thresholdClamped"], found["invalidThreshold"]) == (False, None)


def test_the_window_is_that_of_the_model_the_session_names(run, store):
    entries = path(state("model_change", model="anthropic/claude-sonnet-4-5"), *parts(L))
    found = run(store(entries))
    assert (found["window"], found["budgetReserve"], found["threshold"]) == (200_000, 30_000, 170_000)


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        ("auto", (170_000, False, None)),
        ("33%", (66_000, False, None)),
        ("300000", (199_999, True, None)),
        ("lots", (170_000, False, "lots")),
    ],
)
def test_the_threshold_of_the_settings_is_resolved(run, store, threshold, expected):
    flags = (
        "--provider",
        "anthropic",
        "--model",
        "claude-sonnet-4-5",
        "--set",
        f"compaction.threshold={threshold}",
    )
    found = run(store(sketch(L)), *flags)
    assert (found["threshold"], found["thresholdClamped"], found["invalidThreshold"]) == expected


def test_flags_for_a_server_of_ones_own_give_its_small_window(run, store):
    flags = ("--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--api-key", "k")
    found = run(store(sketch(L)), *flags)
    assert (found["window"], found["threshold"]) == (8_192, 6_964)
    assert found["maxOutputTokens"] == {"history": 982, "prefix": 614}
    assert found["keepRecentTokens"] < 8_192


def test_a_history_too_long_for_the_window_shows_its_segments(run, store):
    flags = ("--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    found = run(
        store(sketch("u3000 a3000 u3000 a3000 u500 a500")), *flags, "--set", "compaction.keepRecentTokens=900"
    )
    assert found["segments"] == [["e1"], ["e2"], ["e3"], ["e4"]]


def test_with_nothing_to_do_the_reason_is_told_and_the_numbers_are_filled(run, store):
    small = run(store(sketch("u10 a10")))
    assert (small["ok"], small["reason"]) == (False, "Nothing to compact (session too small)")
    assert set(small) == FIELDS
    assert (small["keepRecentTokens"], small["tokensBefore"], small["cutIndex"]) == (10_000, 110, 0)
    assert small["historyEntryIds"] == small["keptEntryIds"] == small["readFiles"] == []
    done = run(store(path(*parts("u500 a500"), compaction("S", "e2"))))
    assert done["reason"] == "Already compacted"


def test_previous_summary_and_files_are_told(run, store):
    entries = path(
        u(words(9_000)),
        a(words(500), [call("read", "k1", path="src/a.py"), call("write", "k2", path="b.py")]),
        t("ok", "k1", "read"),
        t("ok", "k2", "write"),
        compaction("OLD", "e2", details={"readFilesAdded": ["c.py"], "modifiedFilesAdded": []}),
        *parts("u4000 a4000"),
    )
    found = run(store(entries), "--set", KEEP)
    assert (found["previousSummary"], found["previousCompactionId"]) == ("OLD", "e5")
    assert (found["readFiles"], found["modifiedFiles"]) == (["c.py", "src/a.py"], ["b.py"])
    assert found["filesBlock"] == "<files>\nb.py (Write)\nc.py (Read)\n# src/\na.py (Read)\n</files>"


def test_another_leaf_is_looked_at_without_moving_it(run, store):
    file = store(sketch(L))
    before = file.read_bytes()
    found = run(file, "--leaf", "e4", "--set", "compaction.keepRecentTokens=300")
    assert found["keptEntryIds"] == ["e4"]
    assert file.read_bytes() == before


def test_a_shake_names_the_messages_it_would_shorten(run, store):
    found = run(store(sketch(L)), "--strategy", "shake")
    assert (found["ok"], found["action"], found["elideEntryIds"]) == (True, "shake", ["e3", "e7"])
    assert found["firstKeptEntryId"] is None
    nothing = run(store(sketch("u10 a10")), "--strategy", "shake")
    assert (nothing["ok"], nothing["reason"]) == (False, "Nothing to shake")


def test_a_dry_run_leaves_the_file_its_folder_and_the_home_as_they_were(run, store, environ, tmp_path):
    file = store(sketch(L))
    file.chmod(0o400)
    os.utime(file, ns=(1_000, 2_000))
    before = (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_ctime_ns)
    run(file)
    assert (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_ctime_ns) == before
    assert sorted(tmp_path.iterdir()) == [file]
    assert not Path(environ["MUSEPI_HOME"]).exists()


def test_people_get_a_sentence(capsys, store, environ):
    assert main([str(store(sketch(L))), "--dry-run", "--set", KEEP], environ) == 0
    assert capsys.readouterr().out == (
        "5 messages of about 4,650 tokens would be summarised, cut inside the turn of e5; "
        "3 of about 9,100 tokens stay, from entry e6 on.\n"
    )
    assert main([str(store(sketch("u1 a1"))), "--dry-run"], environ) == 0
    assert capsys.readouterr().out == "Nothing to compact (session too small)\n"


def test_snapcompact_is_refused_in_one_line(capsys, store, environ):
    assert main([str(store(sketch(L))), "--strategy", "snapcompact", "--json"], environ) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "snapcompact" in err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "FILE"),
        (("s.jsonl", "other.jsonl"), "other.jsonl"),
        (("s.jsonl", "--strategy", "magic"), "magic"),
        (("s.jsonl", "--bogus"), "--bogus"),
        (("s.jsonl", "-c"), "FILE"),
        (("s.jsonl", "--mode", "rpc"), "--json"),
        (("s.jsonl", "--strategy", "shake", "--focus", "x"), "--focus"),
        (("s.jsonl", "--set", "compaction.keepRecentTokens=0", "--dry-run"), "compaction.keepRecentTokens"),
    ],
)
def test_an_unusable_argument_is_named(environ, arguments, named):
    with pytest.raises(UsageError, match=named):
        main(list(arguments), environ)


def test_an_unknown_leaf_is_a_usage_error(store, environ):
    with pytest.raises(UsageError, match="no entry gone"):
        main([str(store(sketch(L))), "--dry-run", "--leaf", "gone"], environ)


def test_a_file_that_is_not_there_is_named(tmp_path, environ):
    with pytest.raises(SessionError, match=r"gone\.jsonl"):
        main([str(tmp_path / "gone.jsonl"), "--dry-run"], environ)


def test_a_dry_run_loads_neither_the_screen_nor_the_transport(store, environ):
    script = (
        "import os, sys; from musepi_tui.cli.main import main; code = main(sys.argv[1:]); "
        "print(code, *sorted({'textual', 'httpx', 'httpcore'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "compact", str(store(sketch(L))), "--dry-run", "--json"],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip() == "0"
    assert json.loads(done.stdout)["ok"] is True


@pytest.mark.parametrize("name", ["pi-v3-three-compactions", "pi-v1-two-compactions", "pi-v3-tree-all-kinds"])
def test_sessions_of_others_can_be_previewed(run, name):
    file = shared_path("fixtures", "sessions", f"{name}.jsonl")
    before = file.read_bytes()
    found = run(file)
    assert set(found) == FIELDS
    parted = (*found["historyEntryIds"], *found["prefixEntryIds"], *found["keptEntryIds"])
    assert len(parted) == len(set(parted))
    assert file.read_bytes() == before
