"""A session with one of everything an export shows."""

from pathlib import Path
from typing import Any

from musepi_tui.base.known_secrets import KnownSecrets
from musepi_tui.storage.exporters.export import ExportOptions, export_session, source_of
from musepi_tui.storage.loading import load_session
from tests.support.builders import PIXEL
from tests.support.lines import answer_record, header_line, record, user_record, write_lines

KEY = "sk-ant-api03-abcdefghijklmnop"

DIFF = "@@ -1,2 +1,2 @@\n keep\n-old\n+new"


def message(entry_id: str, parent_id: str | None, second: int, **fields: Any) -> dict[str, Any]:
    """A stored message of any role."""
    return record("message", entry_id, parent_id, second, message={"timestamp": second, **fields})


def result(entry_id: str, parent_id: str, call_id: str, text: str, **fields: Any) -> dict[str, Any]:
    """The result of a call."""
    content = [{"type": "text", "text": text}]
    known = {"role": "toolResult", "toolCallId": call_id, "toolName": "read", "content": content}
    return message(entry_id, parent_id, 5, **known, isError=False, **fields)


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """A tool call block."""
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def text(words: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words}


FULL: tuple[dict[str, Any], ...] = (
    header_line(id="0198abcd-full", cwd="/p/weather"),
    record("session_info", "n1", None, 1, name="Fix the <table>"),
    user_record("u1", "n1", f"why -0?\n\tuse {KEY}", 2),
    answer_record(
        "a1",
        "u1",
        "",
        3,
        content=[
            {"type": "thinking", "thinking": "let me see"},
            text("# Plan\n\nSee [docs](https://e.org/a) and <b>this</b>"),
            call("c1", "read", path="src/a.py"),
            call("c2", "edit", path="src/a.py", oldText="old"),
            call("c3", "bash", command="false\nrm -r x"),
        ],
        stopReason="toolUse",
    ),
    result(
        "t1",
        "a1",
        "c1",
        "line one\n```\nline <two>",
        details={"view": {"kind": "none", "title": "read src/a.py", "note": "3 lines"}},
    ),
    result("t2", "t1", "c2", "Edited", details={"diff": DIFF}),
    record("label", "l1", "t2", 6, targetId="a1", label="base"),
    message(
        "p1",
        "l1",
        7,
        role="user",
        content=[text("look"), {"type": "image", "mimeType": "image/svg+xml", "data": PIXEL}],
    ),
    message(
        "b1",
        "p1",
        8,
        role="bashExecution",
        command="ls",
        output="a.py\n",
        exitCode=2,
        cancelled=False,
        truncated=False,
        excludeFromContext=True,
    ),
    record(
        "context_edit",
        "x1",
        "b1",
        8,
        targetId="t1",
        replacement={"content": "[Superseded]"},
        reason="superseded",
    ),
    record(
        "compaction",
        "k1",
        "x1",
        9,
        summary="## Goal\nFix it.\n\n<files>\n# src\na.py\n</files>",
        firstKeptEntryId="p1",
        tokensBefore=231785,
        tokensAfter=24100,
        reason="threshold",
        method="summary",
    ),
    record(
        "custom",
        "w1",
        "k1",
        9,
        customType="compaction.warning",
        data={"targetId": "k1", "warning": "still large"},
    ),
    record(
        "custom_message",
        "h1",
        "w1",
        10,
        customType="handoff",
        content="<handoff-context>\nthe document\n</handoff-context>",
        display=True,
    ),
    record("branch_summary", "s1", "h1", 11, fromId="u1", summary="tried Decimal"),
    record("custom_message", "m1", "s1", 12, customType="plan", content="step one", display=True),
    record("custom_message", "m2", "m1", 12, customType="plan", content="hidden words", display=False),
    answer_record(
        "a2", "m2", "done", 13, usage={"input": 1000, "output": 20, "cacheRead": 0, "cacheWrite": 0}
    ),
    answer_record("a3", "a2", "", 14, content=[], stopReason="error", errorMessage="503 overloaded"),
)


def export(
    source: Path,
    target: Path,
    *,
    secrets: KnownSecrets | None = None,
    leaf: str | None = None,
    **options: Any,
) -> str:
    """What an export of the file says; nothing is masked unless ``secrets`` are given."""
    loaded = load_session(source)
    export_session(source_of(loaded, leaf), target, ExportOptions(secrets, **options))
    return target.read_bytes().decode("utf-8", "surrogateescape")


def write_full(folder: Path) -> Path:
    """The file with one of everything."""
    return write_lines(folder / "full.jsonl", *FULL)
