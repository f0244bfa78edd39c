import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.context.fileops import (
    FileOps,
    collect_file_ops,
    delta_details,
    render_files,
    resolve_file_history,
    upsert_files,
)
from tests.support.builders import a, call, compaction, path, u

SEED = "packages/agent/src/compaction"
MANY = tuple(f"pkg/m{number:02}.py" for number in range(22))


def ops(read=(), modified=()):
    return FileOps(frozenset(read), frozenset(modified))


def body(files):
    block = render_files(files)
    assert block.startswith("<files>\n")
    assert block.endswith("\n</files>")
    return block.split("\n")[1:-1]


@pytest.mark.parametrize(
    ("files", "lines"),
    [
        (
            ops(
                [f"{SEED}/compaction.ts", f"{SEED}/utils.ts"],
                [f"{SEED}/utils.ts", f"{SEED}/prompts/file-operations.md"],
            ),
            [
                f"# {SEED}/",
                "compaction.ts (Read)",
                "utils.ts (RW)",
                "## prompts/",
                "file-operations.md (Write)",
            ],
        ),
        (
            ops(["README.md", "src/app/main.py"], ["src/app/cli.py"]),
            ["README.md (Read)", "# src/app/", "cli.py (Write)", "main.py (Read)"],
        ),
        (
            ops(["a/b/x.py", "a/c/y.py"], ["a/c/y.py"]),
            ["# a/", "## b/", "x.py (Read)", "## c/", "y.py (RW)"],
        ),
        (
            ops(["/home/u/p/a.py"], ["/home/u/p/sub/b.py"]),
            ["# /home/u/p/", "a.py (Read)", "## sub/", "b.py (Write)"],
        ),
        (ops(["src/a.py"], ["src/x/y/b.py"]), ["# src/", "a.py (Read)", "## x/y/", "b.py (Write)"]),
        (
            ops([*MANY, "setup.py"], ["setup.py"]),
            ["# pkg/", *(f"m{number:02}.py (Read)" for number in range(20)), "[…3 files elided…]"],
        ),
        (ops(["apple.py", "Zed.py"]), ["Zed.py (Read)", "apple.py (Read)"]),
        (ops(["web\\ui\\k.ts"]), ["# web/ui/", "k.ts (Read)"]),
        (ops(["/a.py"]), ["# /", "a.py (Read)"]),
    ],
)
def test_files_block(files, lines):
    assert body(files) == lines


def test_files_block_is_absent_without_files():
    assert render_files(FileOps()) == ""


def test_collecting_strips_selectors_and_leaves_out_addresses():
    calls = [
        call("read", "1", path="memory://x"),
        call("read", "2", path="lib/q.py:5-9"),
        call("read", "3", path="lib/q.py:raw"),
        call("write", "4", path="w.py"),
        call("edit", "5", path="e.py:7"),
        call("edit", "6", path=""),
        call("write", "7", path=5),
        call("grep", "8", path="ignored"),
    ]
    assert collect_file_ops([u("x"), a("", calls)]) == ops(["lib/q.py"], ["w.py", "e.py:7"])


@pytest.mark.parametrize(
    ("text", "block", "expected"),
    [
        (
            "T\n\n<files>\nold\n</files>\n",
            "<files>\nn.py (Read)\n</files>",
            "T\n\n<files>\nn.py (Read)\n</files>",
        ),
        ("<modified-files>\nm\n</modified-files>", "", ""),
        ("A <files>x</files> B", "", "A B"),
        ("", "<files>\nn\n</files>", "<files>\nn\n</files>"),
        ("T<read-files>r</read-files>", "", "T"),
    ],
)
def test_upsert(text, block, expected):
    assert upsert_files(text, block) == expected


names = st.text(alphabet="ab/.<>\\: files\n", min_size=1, max_size=12)


@given(
    st.sets(names, max_size=30), st.sets(names, max_size=30), st.text(alphabet="T <files>/-\n", max_size=60)
)
def test_upsert_is_idempotent_and_leaves_one_block_at_the_end(read, modified, text):
    block = render_files(ops(read, modified))
    once = upsert_files(text, block)
    assert upsert_files(once, block) == once
    if block:
        assert once.endswith(block)
    assert len(re.findall(r"<files>.*?</files>", once, re.DOTALL)) == (1 if block else 0)


@given(st.sets(st.text(alphabet="abc/", min_size=1, max_size=10), max_size=40))
def test_files_block_shows_at_most_twenty_and_counts_the_rest(read):
    block = render_files(ops(read))
    shown = block.count(" (Read)")
    elided = re.search(r"…(\d+) files elided…", block)
    assert shown == min(20, len(read))
    assert shown + (int(elided[1]) if elided else 0) == len(read)


@given(st.lists(st.text(alphabet="ab:/.+", max_size=12), max_size=10))
def test_no_address_reaches_a_list(paths):
    calls = [call("read", str(index), path=name) for index, name in enumerate(paths)]
    found = collect_file_ops([a("", calls)])
    assert not any(re.search(r"[a-z][a-z0-9+.-]*://", name) for name in found.read)


def chain(*steps):
    """Compactions one after another, as the executor makes them: the entries and the cumulative lists."""
    parts, lists = [], []
    for index, step in enumerate(steps):
        entries = path(*parts)
        previous = entries[-1] if entries else None
        history = resolve_file_history(entries, previous)
        if step == "extension":
            parts.append(compaction("s", details={"anything": 1}, from_extension=True))
            lists.append(None)
            continue
        lists.append(history.ops | step)
        parts.append(compaction(f"s{index}", details=delta_details(history, step)))
    return path(*parts), lists


def test_delta_chain_of_the_specification():
    entries, lists = chain(ops("ab"), ops("c", "b"), ops("d"), "extension", ops((), "e"))
    assert [entry.details for entry in entries] == [
        {"readFilesAdded": ["a", "b"], "modifiedFilesAdded": []},
        {"base": "e1", "readFilesAdded": ["c"], "modifiedFilesAdded": ["b"]},
        {"base": "e2", "readFilesAdded": ["d"], "modifiedFilesAdded": []},
        {"anything": 1},
        {"readFilesAdded": [], "modifiedFilesAdded": ["e"]},
    ]
    assert body(lists[1]) == ["a (Read)", "b (RW)", "c (Read)"]
    assert (lists[2].read_files, lists[2].modified_files) == (("a", "c", "d"), ("b",))
    assert (lists[4].read_files, lists[4].modified_files) == ((), ("e",))


@pytest.mark.parametrize(
    ("base", "expected"),
    [("gone", {"b"}), ("e2", {"b"}), ("e1", {"a", "b"}), (None, {"b"}), (7, {"b"})],
    ids=["unknown", "itself", "earlier", "none", "no-text"],
)
def test_delta_chain_follows_only_earlier_compactions(base, expected):
    first = compaction("1", details={"readFilesAdded": ["a"]})
    second = compaction("2", details={"base": base, "readFilesAdded": ["b"]})
    entries = path(first, second)
    assert resolve_file_history(entries, entries[-1]).ops.read == expected


def test_delta_chain_ends_at_a_record_of_full_lists():
    oldest = compaction("1", details={"readFilesAdded": ["x"]})
    full = compaction("2", details={"base": "e1", "readFiles": ["a"], "modifiedFiles": ["m", "http://n"]})
    entries = path(oldest, full, compaction("3", details={"base": "e2", "readFilesAdded": ["b"]}))
    assert resolve_file_history(entries, entries[-1]).ops == ops("ab", "m")


letters = st.sets(st.sampled_from("abcdefgh"), max_size=4)


@given(st.lists(st.tuples(letters, letters), min_size=1, max_size=6))
def test_delta_chain_gives_the_full_lists(steps):
    entries, _ = chain(*(ops(read, modified) for read, modified in steps))
    found = resolve_file_history(entries, entries[-1]).ops
    assert found.read == set().union(*(read for read, _ in steps))
    assert found.modified == set().union(*(modified for _, modified in steps))
