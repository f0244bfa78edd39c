"""Branches in a real terminal: one is left with a summary, labelled, found by its label, and resumed at."""

import re

import pytest

from tests.support.harness import write_models
from tests.support.server import ModelServer, Reply, SeenRequest, anthropic_reply
from tests.support.tmux import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SIZES = pytest.mark.parametrize(("columns", "rows"), [(120, 40), (80, 24)])
START = ("--model", "local/m1", "--set", "branchSummary.enabled=true")
SUMMARY_PROMPT = "is a branch that is being left"
"""What the prompt for a branch summary says and no other request does."""

SUMMARY = "## Goal\nA lexer with tables was half done."
DIVIDER = "⎇ branch · ctrl+o"
QUESTION = "Summarize with custom prompt"


def answer(request: SeenRequest) -> Reply:
    """A summary, or an answer that repeats its prompt."""
    if is_for_summary(request):
        return anthropic_reply(text=SUMMARY)
    content = request.body["messages"][-1]["content"]
    prompt = content if isinstance(content, str) else content[-1]["text"]
    return anthropic_reply(text=f"Answer to <{prompt}>")


def answer_late(request: SeenRequest) -> Reply:
    """The same, but the first word of a summary takes its time."""
    reply = answer(request)
    return reply.slow(120.0) if is_for_summary(request) else reply


def is_for_summary(request: SeenRequest) -> bool:
    return SUMMARY_PROMPT in request.raw.decode()


@pytest.fixture
def server(musepi_home):
    with ModelServer() as server:
        server.choose = answer
        write_models(musepi_home, "anthropic-messages", server.base_url)
        yield server


def ask(terminal: Terminal, prompt: str) -> str:
    """Sends a prompt; the screen once it is answered."""
    terminal.submit(prompt)
    terminal.wait(f"Answer to <{prompt}>")
    terminal.wait("esc to cancel", gone=True)
    return terminal.settle()


def open_tree(terminal: Terminal) -> None:
    terminal.submit("/tree")
    terminal.wait("← here")


def marked(terminal: Terminal) -> str:
    """The marked row of the tree."""
    _, _, tree = terminal.settle().partition("Session tree")
    rows = [line for line in tree.split("\n")[2:] if line.startswith("›")]
    return rows[0].strip("›│├└⊟─• ") if rows else ""


def mark(terminal: Terminal, row: str) -> None:
    """Goes down the tree to the row that begins so."""
    terminal.press("Home")
    for _ in range(20):
        if marked(terminal).startswith(row):
            return
        terminal.press("Down")
    raise AssertionError(f"there is no row {row!r}:\n{terminal.screen()}")


def go_before(terminal: Terminal, prompt: str) -> None:
    """Goes back to before a prompt, as far as the question."""
    open_tree(terminal)
    mark(terminal, f"user: {prompt}")
    terminal.press("Enter")
    terminal.wait(QUESTION)


@SIZES
def test_branch_is_left_only_when_its_summary_is_there(server, columns, rows, tmp_path):
    with Terminal(columns, rows, tmp_path) as terminal:
        terminal.start(*START)
        ask(terminal, "plan the lexer")
        before = ask(terminal, "use tables")

        server.choose = answer_late
        go_before(terminal, "use tables")
        terminal.press("Down", "Enter")
        terminal.wait("Summarizing branch…")
        terminal.press("Escape")
        terminal.wait("Session tree")
        assert marked(terminal).startswith("user: use tables")
        terminal.press("Escape")
        assert terminal.becomes(before)

        server.choose = answer
        go_before(terminal, "use tables")
        terminal.press("Enter")  # the answer given last is offered first
        terminal.wait(DIVIDER)
        terminal.wait("Answer to <use tables>", gone=True)
        terminal.wait("› use tables")  # in the editor
        terminal.press("C-e", "C-u")
        terminal.wait("› Ask anything")
        ask(terminal, "use regexes")
        sent = server.requests[-1].raw.decode()
        assert "A lexer with tables was half done." in sent
        assert "Answer to <use tables>" not in sent


@SIZES
def test_label_leads_back_to_a_branch_and_resume_stays_there(server, columns, rows, tmp_path):
    with Terminal(columns, rows, tmp_path) as terminal:
        terminal.start(*START)
        ask(terminal, "plan the lexer")
        ask(terminal, "use tables")
        go_before(terminal, "use tables")
        terminal.press("Enter")  # no summary
        terminal.wait("Answer to <use tables>", gone=True)
        terminal.wait("› use tables")  # in the editor
        terminal.press("C-e", "C-u")
        terminal.wait("› Ask anything")
        ask(terminal, "use regexes")

        open_tree(terminal)
        mark(terminal, "assistant: Answer to <use tables>")
        terminal.press("L")
        terminal.type("first try")
        terminal.wait("first try")
        terminal.press("Enter")
        terminal.wait("[first try] assistant: Answer to <use tables>")
        terminal.press("Escape")
        terminal.wait("Session tree", gone=True)

        open_tree(terminal)
        terminal.type("first try")
        terminal.wait("(1/1)")
        terminal.press("Enter")
        terminal.wait(QUESTION)
        terminal.press("Enter")
        terminal.wait("use regexes", gone=True)
        terminal.wait("Answer to <use tables>")
        before = terminal.settle()
        assert "use regexes" not in before
        assert DIVIDER not in before

        terminal.submit("/quit")
        ended = terminal.wait("--resume")
        command = re.search(r"musepi --resume (\S+)", ended)
        assert command is not None
        terminal.press("C-l")
        terminal.start("--resume", command.group(1), *START)
        assert terminal.becomes(before)
