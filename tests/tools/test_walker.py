import os
import time

import pytest

from musepi_tui.tools.walker import Walk, expand_braces, matcher


def make(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def walked(start, top=None, **limits):
    walk = Walk(str(start), str(top or start), time_limit_s=5, **limits)
    return sorted(entry.relative for entry in walk.entries()), walk.incomplete


def test_walk_obeys_ignore_files_of_each_folder(tmp_path):
    make(
        tmp_path, "a.py", "x.log", "keep.log", "build/out", "sub/y.tmp", "sub/deep/z.tmp", "sub/deep/keep.tmp"
    )
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\nbuild/\n")
    (tmp_path / "sub" / ".gitignore").write_text("*.tmp\n")
    (tmp_path / "sub" / "deep" / ".gitignore").write_text("!keep.tmp\n")
    found, _ = walked(tmp_path)
    assert [name for name in found if not name.endswith(".gitignore")] == [
        "a.py",
        "keep.log",
        "sub",
        "sub/deep",
        "sub/deep/keep.tmp",
    ]


def test_walk_below_the_top_obeys_the_ignore_files_above(tmp_path):
    make(tmp_path, "sub/a.log", "sub/b.py")
    (tmp_path / ".gitignore").write_text("*.log\n")
    assert walked(tmp_path / "sub", tmp_path)[0] == ["b.py"]


def test_walk_does_not_follow_links_or_enter_git(tmp_path):
    make(tmp_path, "real/file", ".git/config")
    (tmp_path / "loop").symlink_to(tmp_path)
    found, _ = walked(tmp_path)
    assert found == ["loop", "real", "real/file"]


def test_walk_stops_at_its_limits(tmp_path):
    make(tmp_path, *(f"{number}" for number in range(20)))
    found, incomplete = walked(tmp_path, max_entries=5)
    assert (len(found), incomplete) == (5, "entries")


def test_walk_stops_at_its_depth(tmp_path):
    make(tmp_path, "a/b/c/d")
    assert walked(tmp_path, max_depth=2)[0] == ["a", "a/b"]


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*.py", ["a.py", "x/y/a.py"], ["a.pyc"]),
        ("src/*.py", ["src/a.py"], ["src/x/a.py", "a.py"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["lib/a.py"]),
        ("**/test_*", ["test_a", "x/test_b"], ["x/a"]),
        ("src/**", ["src/a", "src/a/b"], ["lib"]),
        ("./src/a?.[ch]", ["src/a1.c"], ["src/a1.o", "x/src/a1.c"]),
        ("*.{js,ts}", ["a.ts", "b/c.js"], ["a.py"]),
        ("docs/", ["docs", "x/docs"], ["docs2"]),
    ],
)
def test_glob_matches(pattern, matching, other):
    is_wanted = matcher(pattern)
    assert [path for path in [*matching, *other] if is_wanted(path)] == matching


def test_glob_with_many_stars_is_quick():
    is_wanted = matcher("/".join(["**"] * 30) + "/*a*a*a*a*a*a*b")
    started = time.monotonic()
    assert not is_wanted("/".join(["a" * 50] * 40))
    assert time.monotonic() - started < 1


def test_braces_are_expanded_inside_out():
    assert sorted(expand_braces("{a,b{c,d}}x")) == ["ax", "bcx", "bdx"]


def test_names_that_are_no_utf8_are_walked(tmp_path):
    os.close(os.open(os.fsencode(tmp_path) + b"/caf\xe9", os.O_CREAT | os.O_WRONLY))
    assert walked(tmp_path)[0] == [os.fsdecode(b"caf\xe9")]
