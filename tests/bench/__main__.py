"""``make bench``: measures the program beside a bare Textual app and prints a table.

It stores nothing and asserts nothing; read the figures as ratios within one run. Medians of several runs,
taken in turn so that a noisy moment hits everybody. ``python -m tests.bench start`` runs one group only.
"""

import sys

from tests.bench import browsing, decoding, maintaining, opening, picking, starting, storing, streaming
from tests.bench.table import Row, render

GROUPS = {
    "start": starting.measure,
    "open": opening.measure,
    "stream": streaming.measure,
    "decode": decoding.measure,
    "sessions": storing.measure,
    "maintain": maintaining.measure,
    "tree": browsing.measure,
    "picker": picking.measure,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        sys.stderr.write(f"no such group: {', '.join(unknown)}; there are {', '.join(GROUPS)}\n")
        return 2
    rows: list[Row] = []
    for name in names or GROUPS:
        sys.stderr.write(f"measuring {name} …\n")
        rows += GROUPS[name]()
    sys.stdout.write(render(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
