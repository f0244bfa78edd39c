import json

from musepi_tui.base.known_secrets import KnownSecrets
from tests.support.exports import KEY, export, write_full
from tests.support.lines import answer_record, header_line, record, user_record, write_lines


def test_text_has_everything_in_order(tmp_path):
    text = export(write_full(tmp_path), tmp_path / "out.txt", secrets=KnownSecrets())
    expected = (
        "Fix the <table>\n/p/weather · 2026-01-01 · 0198abcd-full\n",
        "You · 2026-01-01 00:00\n> why -0?\n> \tuse sk…(16+)\n",
        "[thinking] let me see",
        "[read] read src/a.py · 3 lines\n(no longer sent to the model: [Superseded])\nline one\n",
        "[edit] edit src/a.py\n@@ -1,2",
        "[bash cancelled] $ false +1 line\nfalse\nrm -r x\n",
        "$ ls\na.py\n(exit code 2 · not sent to the model)",
        "\n── 📷 compacted ! · ctrl+o ──\n\n",
        "  231,785 → 24,100 tokens · threshold · summary\n\n  ! still large\n",
        "\n── ⇥ handed off · ctrl+o ──\n\n  Handoff\n\n  the document\n",
        "[plan] step one",
        "(503 overloaded)",
    )
    place = 0
    for words in expected:
        assert words in text[place:], words
        place = text.index(words, place)
    assert KEY not in text
    assert "hidden words" not in text


def test_only_the_wanted_path_is_shown(tmp_path):
    lines = (
        header_line(),
        user_record("u1", None, "root", 1),
        user_record("u2", "u1", "left", 2),
        user_record("u3", "u1", "right", 3),
    )
    source = write_lines(tmp_path / "s.jsonl", *lines)
    assert "left" not in export(source, tmp_path / "a.txt")
    chosen = export(source, tmp_path / "b.txt", leaf="u2")
    assert "left" in chosen
    assert "right" not in chosen


def test_what_was_redacted_is_not_shown_and_what_was_only_pruned_is(tmp_path):
    lines = [
        header_line(),
        *(user_record(f"u{n}", f"u{n - 1}" if n > 1 else None, f"words {n}", n) for n in (1, 2, 3)),
    ]
    lines += [
        record(
            "context_edit", "x1", "u3", 4, targetId="u1", replacement={"content": "gone"}, reason="redact"
        ),
        record("context_edit", "x2", "x1", 5, targetId="u2", replacement=None, reason="redact"),
        record("context_edit", "x3", "x2", 6, targetId="u3", replacement=None, reason="threshold"),
    ]
    text = export(write_lines(tmp_path / "s.jsonl", *lines), tmp_path / "s.txt")
    assert [word in text for word in ("words 1", "gone", "words 2", "words 3")] == [False, True, False, True]


def test_results_without_their_call_and_unreadable_entries_are_told(tmp_path):
    lines = (
        header_line(),
        record(
            "message",
            "t1",
            None,
            1,
            message={
                "role": "toolResult",
                "toolCallId": "x",
                "toolName": "ls",
                "content": [{"type": "text", "text": "a.py"}],
                "isError": True,
            },
        ),
        record("message", "o1", "t1", 2, message={"role": "oracle", "content": "?"}),
        answer_record(
            "a1",
            "o1",
            "",
            3,
            content=[{"type": "hologram"}, {"type": "redactedThinking", "data": "x"}],
            stopReason="aborted",
        ),
    )
    text = export(write_lines(tmp_path / "s.jsonl", *lines), tmp_path / "s.txt")
    for words in (
        "[ls failed] ls\na.py",
        "unknown kind 'oracle'",
        "unknown kind 'hologram'",
        "(hidden by provider)",
        "(Interrupted)",
    ):
        assert words in text


def test_controls_never_reach_the_file(tmp_path):
    lines = (header_line(), user_record("u1", None, "a\x1b[31mb\x07\x9b2Jc\u202ed\ud800", 1))
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="ascii")
    assert "> abcd\ufffd\n" in export(tmp_path / "s.jsonl", tmp_path / "s.txt")


def test_title_is_the_name_or_the_first_prompt(tmp_path):
    lines = [header_line(), user_record("u1", None, "<ctx>\nFix the table\nplease", 1)]
    plain = write_lines(tmp_path / "a.jsonl", *lines)
    named = write_lines(tmp_path / "b.jsonl", *lines, record("session_info", "n", "u1", 2, name="Named"))
    empty = write_lines(tmp_path / "c.jsonl", header_line())
    titles = [export(path, tmp_path / f"{path.stem}.txt").split("\n")[0] for path in (plain, named, empty)]
    assert titles == ["Fix the table", "Named", "Untitled session"]
