"""``musepi config get|set|unset|list|path``."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from musepi_tui.base.errors import UsageError
from musepi_tui.base.types import JsonValue
from musepi_tui.cli.parser import Parser
from musepi_tui.cli.tables import print_error, print_json, print_line, print_table
from musepi_tui.settings.load import (
    FILE_NAME,
    LoadedSettings,
    check_value,
    flatten,
    known_keys,
    load_settings,
)
from musepi_tui.settings.write import set_key, unset_key
from musepi_tui.storage.paths import find_paths


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Carries out one command; the exit code."""
    parsed = _build_parser().parse_args(arguments)
    folder = find_paths(environ).config
    if parsed.command == "path":
        print_line(str(folder / FILE_NAME))
        return 0
    if parsed.command == "set":
        return _set(folder, parsed.key, parsed.value)
    if parsed.command == "unset":
        unset_key(folder, _known(parsed.key))
        return 0
    loaded = load_settings(folder, None, environ=environ)
    for problem in loaded.problems:
        print_error(f"{problem.path}: {problem.message}")
    if parsed.command == "get":
        print_line(_shown(flatten(loaded.values)[_known(parsed.key)]))
    else:
        _list(loaded, as_json=parsed.json)
    return 1 if loaded.broken else 0


def _build_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="musepi config", description="Read and change your settings.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("path", help="where the settings file is")
    listing = commands.add_parser("list", help="every setting, its value and where that comes from")
    listing.add_argument("--json", action="store_true")
    for name, text in (("get", "the value in force"), ("unset", "back to the default")):
        commands.add_parser(name, help=text).add_argument("key")
    setting = commands.add_parser("set", help="change a setting")
    setting.add_argument("key")
    setting.add_argument("value", help="JSON, or plain text")
    return parser


def _known(key: str) -> str:
    if key in known_keys():
        return key
    raise UsageError(f"musepi config: {check_value(key, None)} musepi config list shows them all.")


def _set(folder: Path, key: str, text: str) -> int:
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        value = text
    complaint = check_value(_known(key), value)
    if complaint is not None:
        raise UsageError(f"musepi config: {complaint} Nothing was changed.")
    set_key(folder, key, value)
    return 0


def _list(loaded: LoadedSettings, *, as_json: bool) -> None:
    rows = [(key, value, loaded.sources.get(key, "default")) for key, value in flatten(loaded.values).items()]
    if as_json:
        print_json([{"key": key, "value": value, "source": source} for key, value, source in rows])
    else:
        print_table(
            [("KEY", "VALUE", "FROM"), *((key, _shown(value), source) for key, value, source in rows)]
        )


def _shown(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
