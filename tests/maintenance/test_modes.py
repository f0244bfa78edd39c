import pytest

from musepi_tui.maintenance.modes import MODES, SHAKE_TAKES_NO_FOCUS, WORDS, refuse_mode


@pytest.mark.parametrize("focus", [None, "the parser"])
@pytest.mark.parametrize("mode", [None, "summary", "SOFT", "remote"])
def test_a_summary_in_any_mode_takes_a_focus(mode, focus):
    assert refuse_mode(mode, focus) is None


def test_a_shake_takes_none():
    assert refuse_mode("shake", None) is None
    assert refuse_mode("Shake", "the tree") == SHAKE_TAKES_NO_FOCUS


@pytest.mark.parametrize(
    ("mode", "focus", "parts"),
    [
        ("snapcompact", None, ['no compaction mode "snapcompact"', '/compact "snapcompact"']),
        ("SnapCompact", "foo", ["would take no focus text", '/compact "snapcompact foo"']),
        ("handoff", "the parser", ["/handoff [focus]", '/compact "handoff the parser"']),
        ("--preview", None, ["no /compact --preview", "--dry-run", '/compact "--preview"']),
        ("edit", 'the "new" parser', ["no /compact edit", "/compact 'edit the \"new\" parser'"]),
        ("undo", None, ["no /compact undo", "/tree", '/compact "undo"']),
        ("magic", None, ['no compaction mode "magic"', "summary, soft, remote, shake"]),
    ],
)
def test_what_this_version_has_not_is_told_with_what_to_do(mode, focus, parts):
    refusal = refuse_mode(mode, focus)
    assert all(part in refusal for part in parts)
    assert "\n" not in refusal


@pytest.mark.parametrize("word", WORDS)
def test_every_word_of_the_grammar_either_works_or_is_refused(word):
    assert (refuse_mode(word, None) is None) is (word in MODES)
