import base64
import re
from html.parser import HTMLParser

import pytest

from musepi_tui.base.known_secrets import KnownSecrets
from tests.support.builders import PIXEL
from tests.support.exports import KEY, export, message, text, write_full
from tests.support.lines import answer_record, header_line, user_record, write_lines
from tests.support.shared import shared_path

VOID = {"meta", "br", "img", "hr"}


class Page(HTMLParser):
    """The elements of a page: every tag must be closed in order."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.tags = []
        self.details = []
        self._texts = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "details":
            self.details.append([dict(attrs), ""])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self._texts.append(data)
        if "details" in self.open:
            self.details[-1][1] += data

    @property
    def text(self):
        return "".join(self._texts)

    def named(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture
def page(tmp_path):
    return Page(export(write_full(tmp_path), tmp_path / "out.html"))


def one_message(tmp_path, *blocks):
    lines = (header_line(), message("u1", None, 1, role="user", content=list(blocks)))
    return export(write_lines(tmp_path / "s.jsonl", *lines), tmp_path / "s.html")


def test_page_loads_nothing_and_runs_nothing(tmp_path):
    source = export(write_full(tmp_path), tmp_path / "out.html")
    page = Page(source)
    policies = [meta["content"] for meta in page.named("meta") if "http-equiv" in meta]
    assert policies == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "form", "base", "svg"}
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    assert re.search(r"url\(|@import", source) is None
    assert {image["src"].partition(",")[0] for image in page.named("img")} == {"data:image/png;base64"}


def test_page_fits_screens_of_any_size_and_colour_and_paper(tmp_path):
    source = export(write_full(tmp_path), tmp_path / "out.html")
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in Page(source).named(
        "meta"
    )
    assert "prefers-color-scheme: dark" in source
    assert "@media print" in source
    assert "details::details-content" in source


def test_dividers_open_to_figures_facts_warning_summary_and_files(page):
    attrs, text_inside = next(found for found in page.details if "compaction" in found[0]["class"])
    assert "open" not in attrs
    assert text_inside.startswith("── 📷 compacted ! · ctrl+o ──")
    for words in ("231,785 → 24,100 tokens", "threshold · summary", "still large", "Goal", "Fix it.", "a.py"):
        assert words in text_inside
    assert "<files>" not in text_inside
    others = [
        found[1] for found in page.details if found[0]["class"] in ("divider handoff", "divider branch")
    ]
    assert others == [
        "── ⇥ handed off · ctrl+o ──Handoffthe document\n",
        "── ⎇ branch · ctrl+o ──Branch summarytried Decimal\n",
    ]


def test_calls_are_joined_with_their_results_and_can_be_folded(page):
    tools = [(attrs["class"], "open" in attrs, inside) for attrs, inside in page.details]
    read, edit, bash = [found for found in tools if found[0].startswith("tool")]
    assert read[:2] == ("tool ok", False)
    assert "read src/a.py 3 lines" in read[2]
    assert "line <two>" in read[2]
    assert "No longer sent to the model: [Superseded]" in read[2]
    assert edit[:2] == ("tool ok", True)
    assert "-old\n+new\n" in edit[2]
    assert bash[:2] == ("tool cancelled", False)
    assert "$ false +1 line cancelled" in bash[2]
    assert page.text.count("line one") == 1


def test_lines_of_a_diff_have_the_colours_of_their_signs(tmp_path):
    source = export(write_full(tmp_path), tmp_path / "out.html")
    assert '<span class="d">-old\n</span><span class="a">+new\n</span>' in source


def test_what_people_and_models_wrote_is_there_and_what_is_hidden_is_not(page):
    for words in (
        "why -0?\n\tuse sk-",
        "Plan",
        "let me see",
        "$ ls exit code 2 · not sent to the model",
        "step one",
        "503 overloaded",
    ):
        assert words in page.text
    assert "hidden words" not in page.text
    assert page.named("title") == [{}]
    assert "Fix the <table>" in page.text
    assert "2 prompts" in page.text
    assert "3 tool calls" in page.text


def test_contents_lead_to_the_prompts(page):
    targets = [link["href"] for link in page.named("a") if link["href"].startswith("#p")]
    assert targets == ["#p1", "#p2"]
    assert [found["id"] for found in page.named("section")] == ["p1", "p2"]


@pytest.mark.parametrize(
    "words",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](data:text/html;base64,AAAA)",
        "[x](file:///etc/passwd)",
        "[x]( JaVaScRiPt:alert(1))",
        "![x](https://evil.example/p.png)",
        '[x](https://e.org/"onmouseover="alert(1))',
        '```"><script>\nx\n```',
        "[x][1]\n\n[1]: javascript:alert(1)",
        "<javascript:alert(1)>",
        "\x1b]8;;javascript:x\x07y\u202e",
    ],
)
@pytest.mark.parametrize("who", ["user", "assistant", "tool", "summary"])
def test_nothing_in_a_session_becomes_part_of_the_page(tmp_path, words, who):
    lines = [header_line(cwd=words), user_record("u1", None, words if who == "user" else "hi", 1)]
    if who == "assistant":
        lines.append(answer_record("a1", "u1", words, 2, model=words))
    if who == "tool":
        block = {"type": "toolCall", "id": "c", "name": words, "arguments": {"path": words, words: [words]}}
        lines.append(answer_record("a1", "u1", "", 2, content=[block]))
        details = {"view": {"kind": "diff", "title": words, "body": words, "note": words}}
        result = {
            "role": "toolResult",
            "toolCallId": "c",
            "toolName": words,
            "content": [text(words)],
            "details": details,
        }
        lines.append(message("t1", "a1", 3, **result, isError=False))
    if who == "summary":
        lines.append(
            {
                "type": "compaction",
                "id": "k",
                "parentId": "u1",
                "timestamp": words,
                "summary": words,
                "warning": words,
                "method": words,
                "firstKeptEntryId": "u1",
                "tokensBefore": 1,
            }
        )
    page = Page(export(write_lines(tmp_path / "s.jsonl", *lines), tmp_path / "s.html"))
    assert not {tag for tag, _ in page.tags} & {"script", "img"}
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    links = [link for link in page.named("a") if not link["href"].startswith("#")]
    assert all(re.match(r"(https?|mailto):", link["href"]) for link in links)
    assert all(link["rel"] == "noopener noreferrer" for link in links)
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text


def test_pictures_are_what_their_bytes_say(tmp_path):
    svg = base64.b64encode(b"<svg onload='alert(1)'/>").decode()
    gif, webp = (base64.b64encode(data).decode() for data in (b"GIF89a....", b"RIFF....WEBPVP8 "))
    blocks = [
        {"type": "image", "mimeType": kind, "data": data}
        for kind, data in (
            ("image/svg+xml", PIXEL),
            ("image/png", svg),
            ("image/png", gif),
            ("image/jpeg", webp),
            ("image/png", PIXEL + '" onerror="x'),
            ("image/png", "blob:sha256:" + "0" * 64),
        )
    ]
    page = Page(one_message(tmp_path, *blocks))
    kinds = [image["src"].partition(";")[0] for image in page.named("img")]
    assert kinds == ["data:image/png", "data:image/gif", "data:image/webp"]
    assert page.text.count("[image · png") >= 2


def test_secrets_are_masked_everywhere(tmp_path):
    source = export(
        write_full(tmp_path), tmp_path / "out.html", secrets=KnownSecrets(frozenset({"tried Decimal"}))
    )
    assert KEY not in source
    assert "tried Decimal" not in source
    assert "sk…(16+)" in source


def test_hostile_markdown_is_shown_as_it_is_at_once(tmp_path):
    lines = (
        header_line(),
        answer_record("a1", None, "[" * 60_000, 1),
        answer_record("a2", "a1", "> " * 500 + "deep", 2),
    )
    page = Page(export(write_lines(tmp_path / "s.jsonl", *lines), tmp_path / "s.html"))
    assert "[" * 60_000 in page.text
    assert "deep" in page.text


@pytest.mark.parametrize(
    "name", ["pi-v3-three-compactions.jsonl", "pi-v3-tree-all-kinds.jsonl", "pi-v1-large-linear.jsonl"]
)
def test_real_sessions_make_sound_pages(tmp_path, name):
    source = export(shared_path("fixtures", "sessions", name), tmp_path / "out.html", secrets=KnownSecrets())
    page = Page(source)
    wanted = {"pi-v3-three-compactions.jsonl": 3, "pi-v3-tree-all-kinds.jsonl": 1}.get(name, 0)
    assert source.count("── 📷 compacted · ctrl+o ──") == wanted
    assert len(page.named("section")) > 0
