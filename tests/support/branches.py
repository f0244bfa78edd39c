"""Conversations with branches, and the stage that shows them."""

from collections.abc import Callable
from dataclasses import replace

from musepi_tui.session.entries import Entry
from musepi_tui.session.tree import SessionTree
from tests.support.builders import (
    START_MS,
    Part,
    a,
    branch_summary,
    call,
    compaction,
    entry,
    state,
    t,
    u,
)
from tests.support.fake_runtime import FakeRuntime
from tests.support.trees import head_of

DIFF = """@@ -1,3 +1,4 @@
 def scan(text):
-    return 1
+    count = text.count("'")
+    return count
     # end"""


def grow(*parts: tuple[str, str | None, Part]) -> tuple[Entry, ...]:
    """Entries of these ids and parents, in file order, a minute apart."""
    return tuple(
        entry(part, entry_id, parent_id, START_MS + 60_000 * minute)
        for minute, (entry_id, parent_id, part) in enumerate(parts)
    )


def tree_of(entries: tuple[Entry, ...], leaf_id: str | None) -> SessionTree:
    """The tree of these entries, as if it had been read from a file."""
    return SessionTree.from_heads(map(head_of, entries), leaf_id)


def growing(leaf_id: str | None) -> Callable[[FakeRuntime], None]:
    """A ``prepare`` for the stage: the entries are a tree with this leaf, not one path."""

    def prepare(runtime: FakeRuntime) -> None:
        tree = tree_of(runtime.view_now.tail, leaf_id)
        path = () if leaf_id is None else tuple(runtime.read_entry(head.id) for head in tree.path())
        runtime.view_now = replace(runtime.view_now, tree=tree, tail=path)

    return prepare


READ = call("read", path="src/lexer.py", offset=1, limit=40)
SUMMARY = "The user tried an LRU cache: 40 % hits.\n\n<files>\ncache.py (W)\n</files>"
EDITED = {"view": {"kind": "diff", "title": "edit src/lexer.py (+2 −1)", "body": DIFF}}

PARSER = grow(
    ("quotes", None, u("Nested quotes break the parser. Please fix it.")),
    ("look", "quotes", a("I look at the code first.", [READ])),
    ("read", "look", t("def scan(text):\n    return 1\n")),
    ("calls", "read", a("", [call("edit", path="src/lexer.py")])),
    ("edit", "calls", t("done", tool="edit", details=EDITED)),
    ("fixed", "edit", a("The parser stops at the first quote: `scan` counted only one of them.")),
    ("regex", "fixed", u("Could a regular expression do it?")),
    ("cannot", "regex", a("A regular expression cannot count nested quotes.")),
    ("faster", "cannot", u("Then make the scanner faster")),
    ("slow", "faster", a("Most of the time goes into the copies of the text.")),
    ("sure", "cannot", u("Are you sure? Show me an input that fails.")),
    ("shown", "sure", a("`'a \"b' c\"'` opens a quote inside of the other one and closes it too late.")),
    ("named", "shown", state("label", targetId="fixed", label="works")),
    ("docs", "fixed", u("And now the documentation")),
    ("manual", "docs", a("The manual has one page about quotes.")),
    ("model", "manual", state("model_change", provider="anthropic", modelId="claude-sonnet")),
    ("divider", "model", compaction("## Goal\nFix nested quotes.", "docs", tokens_before=231_785)),
    ("examples", "divider", u("Add two examples to it")),
    ("added", "examples", a("Both examples are in the manual now, with the output they give.")),
)
"""A talk with three branches; ``added`` is the newest entry."""

BACK = grow(
    ("ask", None, u("Which cache should the index use?")),
    ("lru", "ask", a("A least-recently-used cache fits.")),
    ("try", "lru", u("Try it")),
    ("tried", "try", a("The hit rate is 40 %.")),
    ("left", "lru", branch_summary(SUMMARY, "lru")),
    ("other", "left", u("Use a two-queue cache then")),
)
"""A talk that left a branch with a summary."""
