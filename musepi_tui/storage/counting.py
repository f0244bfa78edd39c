"""Usage and cost of a whole file without decoding every entry."""

import re
from collections.abc import Sequence

from musepi_tui.session.columns import HeadList
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.messages import Cost, Usage
from musepi_tui.session.totals import Totals
from musepi_tui.storage.bodies import Bodies

_USAGE_KEY = b'"usage":'
_PLAIN_USAGE = re.compile(
    rb'"usage":\{"input":(\d+),"output":(\d+),"cacheRead":(\d+),"cacheWrite":(\d+),"totalTokens":\d+'
    rb'(?:,"cost":\{[^{}]*"total":(\d[0-9.eE+-]*)\})?[,}]'
)
"""Usage in the order and form every tool of the family writes; anything else is decoded."""

_TYPES_WITH_USAGE = frozenset({"message", "compaction", "branch_summary", "usage"})
_ROLES_WITH_USAGE = frozenset({"assistant", "toolResult", None})


def count_totals(heads: Sequence[EntryHead], bodies: Bodies) -> Totals:
    """The totals over all entries, whatever branch they are on. Reads their lines."""
    totals = Totals()
    if isinstance(heads, HeadList):
        heads = heads.of_types(_TYPES_WITH_USAGE).with_roles(_ROLES_WITH_USAGE)
    for head in heads:
        if head.type not in _TYPES_WITH_USAGE or head.role not in _ROLES_WITH_USAGE:
            continue
        if bodies.is_hot(head.id):
            totals = totals.add(bodies.get(head))
            continue
        line = bodies.read_line(head)
        keys = line.count(_USAGE_KEY)
        if keys == 0 and head.role != "assistant":
            continue
        match = _PLAIN_USAGE.search(line) if keys == 1 and head.role == "assistant" else None
        totals = totals.add(bodies.get(head)) if match is None else totals.add_usage(_usage_of(match))
    return totals


def _usage_of(match: re.Match[bytes]) -> Usage:
    counts = (int(number) for number in match.group(1, 2, 3, 4))
    total = match[5]
    return Usage(*counts, cost=None if total is None else Cost(total=float(total)))
