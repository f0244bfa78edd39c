import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from musepi_tui.storage.exporters.fences import code_span, fenced, inert
from tests.support.exports import export, write_full
from tests.support.lines import answer_record, header_line, user_record, write_lines

WORDS = st.text(st.sampled_from("`~<>a!/?- \n*[]()&\\="), max_size=60)
ADDRESS = "[at]: http://tracker.example/x.png"


def tokens(markdown):
    return MarkdownIt("commonmark").parse(markdown)


def kinds(markdown):
    found = tokens(markdown)
    return {token.type for token in found} | {child.type for token in found for child in token.children or ()}


def test_document_has_everything_in_order(tmp_path):
    text = export(write_full(tmp_path), tmp_path / "out.md")
    expected = (
        "# Fix the \\<table\\>",
        "## You · 2026-01-01 00:00",
        "> why -0?  \n> \tuse sk-",
        "> *Thinking*\n>\n> let me see",
        "# Plan",
        "✓ `read src/a.py` (3 lines)",
        "*No longer sent to the model: \\[Superseded\\]*",
        "````\nline one\n```\nline <two>\n````",
        "```diff\n@@ -1,2 +1,2 @@",
        "✗ cancelled `$ false +1 line`\n\n```\nfalse\nrm -r x\n```",
        "\\[image · svg+xml",
        "```console\n$ ls\na.py\n```\n\n*exit code 2 · not sent to the model*",
        "\n── 📷 compacted ! · ctrl+o ──\n\n",
        "> **231,785 → 24,100 tokens** · threshold · summary\n>\n> *still large*",
        "\n── ⇥ handed off · ctrl+o ──\n",
        "\n── ⎇ branch · ctrl+o ──\n",
        "**plan**\n\n```\nstep one\n```",
        "*503 overloaded*",
        "---\n\n2 prompts",
    )
    place = 0
    for words in expected:
        assert words in text[place:], words
        place = text.index(words, place)
    assert "hidden words" not in text


@given(WORDS)
def test_fence_holds_whatever_it_is_put_around(words):
    found = tokens(f"before\n\n{fenced(words)}\n\nafter")
    assert [token.type for token in found if token.level == 0][2] == "fence"
    assert found[3].content.strip("\n") == words.strip("\n")
    assert found[-2].content == "after"


@given(WORDS.filter(str.strip))
def test_code_span_holds_one_line(words):
    children = tokens("x" + code_span(words) + "x")[1].children
    flat = " ".join(words.split())
    assert [child.content for child in children if child.type == "code_inline"] == [flat]


@given(WORDS)
def test_no_text_keeps_raw_html_or_a_picture(words):
    assert not {"html_block", "html_inline", "image"} & kinds(inert(words))


def test_picture_whose_address_stands_in_another_text_is_not_loaded(tmp_path):
    lines = (header_line(), user_record("u1", None, "look: ![pic][at]"), answer_record("a1", "u1", ADDRESS))
    text = export(write_lines(tmp_path / "s.jsonl", *lines), tmp_path / "s.md")
    assert "http://tracker.example" in text
    assert "image" not in kinds(text)


def test_fence_left_open_does_not_turn_the_code_of_the_next_text_into_words(tmp_path):
    lines = (
        header_line(),
        user_record("u1", None, "hi"),
        answer_record("a1", "u1", "so:\n~~~~ py\nopen"),
        user_record("u2", "a1", "go on"),
        answer_record("a2", "u2", "~~~~\n![a](http://tracker.example/x.png) <b>\n~~~~"),
    )
    text = export(write_lines(tmp_path / "s.jsonl", *lines), tmp_path / "s.md")
    assert not {"image", "html_inline"} & kinds(text)
    assert "![a](http://tracker.example/x.png) <b>" in text


@pytest.mark.parametrize(
    "code",
    ["    ![a](http://tracker.example/x.png) <b>", "  ```\n![a](http://tracker.example/x.png) <b>\n  ```"],
    ids=["indented", "fenced"],
)
def test_code_at_the_start_of_a_text_stays_code_behind_a_list(tmp_path, code):
    answer = answer_record("a1", "u1", "- item")
    answer["message"]["content"].append({"type": "text", "text": code})
    lines = (header_line(), user_record("u1", None, "hi"), answer)
    text = export(write_lines(tmp_path / "s.jsonl", *lines), tmp_path / "s.md")
    assert not {"image", "html_inline"} & kinds(text)
    assert "![a](http://tracker.example/x.png) <b>" in text


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("a < b and `<b>` stays", "a < b and `<b>` stays"),
        ("```html\n<b>\n```", "```html\n<b>\n```"),
        ("1. x:\n   ```\n   <b>\n   ```", "1. x:\n   ```\n   <b>\n   ```"),
        ("<https://e.org>", "<https://e.org>"),
        ("say <b>this</b>", "say \\<b>this\\</b>"),
        ("<script>\nx\n</script>", "\\<script>\nx\n\\</script>"),
        ("`\n<script> `", "`\n\\<script> `"),
        ("see ![a](http://e.org/x.png)", "see \\![a](http://e.org/x.png)"),
        ("\\![a](x) and \\\\![b](y)", "\\![a](x) and \\\\\\![b](y)"),
        ("> ![a](x)\n\n`![b](y)`\n\n    ![c](z)", "> \\![a](x)\n\n`![b](y)`\n\n    ![c](z)"),
        ("```\n![a](x)\n```", "```\n![a](x)\n```"),
        ("- a\n\n  ```\n  b", "- a\n\n  ```\n  b"),
        ("<!--\n```\n-->", "\\<!--\n```\n-->\n```"),
        ("<p>\n```\n\n```\n![a](x)\n```", "````\n<p>\n```\n\n```\n![a](x)\n```\n````"),
        ("    a\n\n    b\nwords", "```\na\n\nb\n```\nwords"),
        ("  - a\n  - b\n    - c", "- a\n- b\n  - c"),
        ("Stop! [a](x)", "Stop! [a](x)"),
        ("use `vec![0; n]`\n\n- or `vec![1]`", "use `vec![0; n]`\n\n- or `vec![1]`"),
        ("`\\![a](x)` and ![b](y)", "`\\![a](x)` and \\![b](y)"),
        ("<a t='`'> `![b](y)`", "\\<a t='`'> `\\![b](y)`"),
        ("|a|b|\n|-|-|\n|<b>x</b>|<i>y</i>|", "|a|b|\n|-|-|\n|\\<b>x\\</b>|\\<i>y\\</i>|"),
    ],
)
def test_only_tags_outside_code_are_taken_apart(written, kept):
    assert inert(written) == kept


def test_scripts_of_a_session_stay_words(tmp_path):
    bad = "<script>alert(1)</script>"
    lines = (
        header_line(cwd=bad),
        user_record("u1", None, bad, 1),
        answer_record("a1", "u1", bad, 2, model=bad),
    )
    text = export(write_lines(tmp_path / "s.jsonl", *lines), tmp_path / "s.md")
    assert not {"html_block", "html_inline"} & kinds(text)
    assert len(re.findall("alert", text)) == 5
