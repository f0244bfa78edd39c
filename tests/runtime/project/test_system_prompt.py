from pathlib import Path

from musepi_tui.base.tokenizer import load_tokenizer
from musepi_tui.runtime.project.context_files import ContextFile
from musepi_tui.runtime.project.system_prompt import render_system_prompt

TOOLS = ("bash", "edit", "find", "grep", "ls", "read", "write")
NOON_MS = 1_764_504_000_000


def test_the_prompt_names_place_day_and_tools():
    prompt = render_system_prompt(Path("/home/me/project"), TOOLS, (), NOON_MS)
    assert "/home/me/project" in prompt
    assert "2025-11-30" in prompt
    assert "bash, edit, find" in prompt


def test_the_prompt_leaves_small_windows_their_room():
    prompt = render_system_prompt(Path("/home/me/project"), TOOLS, (), NOON_MS)
    assert load_tokenizer("o200k").count(prompt) < 700


def test_instruction_files_follow_with_their_paths():
    files = (ContextFile(Path("/p/AGENTS.md"), "Use {{tabs}}.\n"),)
    prompt = render_system_prompt(Path("/p"), TOOLS, files, NOON_MS)
    assert '<file path="/p/AGENTS.md">\nUse {{tabs}}.\n</file>' in prompt


def test_the_bytes_stay_the_same_over_a_day():
    first = render_system_prompt(Path("/p"), TOOLS, (), NOON_MS)
    assert render_system_prompt(Path("/p"), TOOLS, (), NOON_MS + 3_600_000) == first
