"""``musepi sessions context``: what the model would be sent."""

import argparse
from collections.abc import Mapping

from musepi_tui.base.resources import read_prompt
from musepi_tui.base.tokenizer import load_tokenizer
from musepi_tui.cli.sessions.places import read_settings
from musepi_tui.cli.sessions.reading import load_telling, path_to
from musepi_tui.cli.sessions.shapes import context_message_json
from musepi_tui.cli.tables import print_error, print_json, print_line
from musepi_tui.context.estimate import estimate_tokens
from musepi_tui.context.llm import LlmTemplates, convert_with_ids
from musepi_tui.session.messages import BashExecution
from musepi_tui.session.rebuild import SessionContext, build_session_context
from musepi_tui.storage.paths import find_paths


def show_context(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Prints the messages. Raises ``SessionError``, ``UsageError``."""
    loaded = load_telling(arguments.file)
    path = path_to(loaded, arguments.leaf)
    context = build_session_context(path, active_provider=arguments.provider)
    templates = LlmTemplates(read_prompt("compaction-summary-context"), read_prompt("branch-summary-context"))
    pairs = convert_with_ids(context.messages, context.entry_ids, templates)
    messages = [context_message_json(entry_id, message) for entry_id, message in pairs]
    tokens = _count_tokens(context, environ)
    if arguments.json:
        print_json(
            {
                "messages": messages,
                "tokens": tokens,
                "effectiveCompactionId": context.compaction_id,
                "warnings": list(context.warnings),
            }
        )
        return 0
    for message in messages:
        print_line(f"[{message['role']}] {message['text']}")
    for warning in context.warnings:
        print_line(f"warning: {warning}")
    print_line(f"{len(messages)} messages, about {tokens} tokens")
    return 0


def _count_tokens(context: SessionContext, environ: Mapping[str, str]) -> int:
    """The sum of the estimates of all messages that are sent, summaries without the words around them."""
    paths = find_paths(environ)
    settings = read_settings(paths, environ)
    tokenizer = load_tokenizer("auto" if settings is None else settings.tokens.estimator, paths.own_ranks)
    if tokenizer.warning is not None:
        print_error(tokenizer.warning)
    count = tokenizer.count
    sent = (
        message
        for message in context.messages
        if not isinstance(message, BashExecution) or not message.excluded
    )
    return sum(estimate_tokens(message, count) for message in sent)
