"""``musepi sessions check``: does a file keep the rules?"""

import argparse
from collections.abc import Iterator, Mapping

from musepi_tui.cli.sessions.reading import load_whole
from musepi_tui.cli.tables import print_line
from musepi_tui.session.invariants import find_breaches
from musepi_tui.storage.loading import LoadedSession

_BREACHES = frozenset({"dup_id", "cycle", "orphan_relinked"})
"""Damage that changes what a readable entry means; every other unreadable line is a note (SAF-13)."""


def check(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Prints every breach and note; 1 when there is a breach. Raises ``SessionError``."""
    del environ
    loaded = load_whole(arguments.file)
    findings = sorted(_findings(loaded))
    for line, is_note, text in findings:
        print_line(f"{'note: ' if is_note else ''}line {line}: {text}")
    breaches = [finding for finding in findings if arguments.strict or not finding[1]]
    if not breaches:
        print_line(f"ok: {len(loaded.heads)} entries keep the rules")
    return 1 if breaches else 0


def _findings(loaded: LoadedSession) -> Iterator[tuple[int, bool, str]]:
    """Line, whether it is only a note, and what is wrong."""
    for issue in loaded.issues:
        yield issue.line, issue.kind not in _BREACHES, f"{issue.kind}: {issue.detail}"
    for breach in find_breaches(loaded.tree, loaded.bodies.get):
        yield loaded.line_of(breach.entry_id), False, f"entry {breach.entry_id}: {breach.text}"
