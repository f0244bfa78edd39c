from musepi_tui.providers.types import ToolSpec
from musepi_tui.runtime.tokens import TokenService
from tests.support.builders import u


def service(estimator: str = "chars4") -> tuple[TokenService, list[str]]:
    warnings: list[str] = []
    return TokenService(estimator, None, warnings.append), warnings


async def test_an_estimate_counts_until_the_tokenizer_is_loaded():
    tokens, _ = service("auto")
    assert (tokens.is_exact, tokens.count("abcdefgh")) == (False, 2)
    await tokens.ready()
    assert tokens.is_exact
    assert tokens.count("hello world") == 2


async def test_live_messages_are_counted_before_the_figure_is_exact():
    tokens, _ = service()
    message = u("x" * 400)
    tokens.live_messages = lambda: (message,)
    await tokens.ready()
    assert tokens.estimate(message) == 100


async def test_a_tokenizer_that_cannot_be_had_is_told_once():
    tokens, warnings = service("cl100k")
    await tokens.ready()
    await tokens.ready()
    assert len(warnings) == 1


async def test_system_prompt_and_tools_are_counted_anew_with_the_tokenizer():
    tokens, _ = service()
    assert tokens.non_message_tokens() == 0
    tokens.set_overhead("s" * 400, (ToolSpec("read", "d" * 400, {"type": "object"}),))
    before = tokens.non_message_tokens()
    await tokens.ready()
    assert 200 < before <= tokens.non_message_tokens() + 2


async def test_tools_and_instruction_files_are_counted_one_by_one():
    tokens, _ = service()
    tools = (ToolSpec("read", "d" * 400, {"type": "object"}), ToolSpec("ls", "d" * 40, {"type": "object"}))
    tokens.set_overhead("s" * 900, tools, (("AGENTS.md", "f" * 400),))
    await tokens.ready()
    (read, read_tokens), (ls, ls_tokens) = tokens.tool_tokens()
    assert (read, ls, read_tokens > ls_tokens) == ("read", "ls", True)
    assert read_tokens + ls_tokens == tokens.overhead_tokens()[1]
    ((path, file_tokens),) = tokens.file_tokens()
    assert path == "AGENTS.md"
    assert 0 < file_tokens < tokens.overhead_tokens()[0]
