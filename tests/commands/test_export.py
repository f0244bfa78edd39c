import pytest

from musepi_tui.commands.registry import CommandRegistry
from musepi_tui.runtime.intents import ExportSession
from tests.commands.test_builtin import FakeHost


@pytest.mark.parametrize(
    ("args", "did"),
    [
        ("", ("send", ExportSession())),
        ("out.md", ("send", ExportSession("out.md"))),
        ('"my file.html" --force', ("send", ExportSession("my file.html", force=True))),
        ("--raw a.jsonl --inline", ("send", ExportSession("a.jsonl", raw=True, inline=True))),
        ("a b", ("notify", "warning", "/export takes one file; put a name with blanks in quotes.")),
        (
            "--leaf x",
            ("notify", "warning", "/export does not know --leaf; it knows --force, --inline, --raw."),
        ),
    ],
)
async def test_export_asks_for_one_file(args, did):
    host = FakeHost()
    command = CommandRegistry.discover().find("export")
    await command.run(host, args)
    assert host.did == [did]
    assert command.now
