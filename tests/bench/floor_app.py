"""The floor: a bare Textual app with one input, as small as it can be."""

from textual.app import App, ComposeResult
from textual.widgets import Input


class Floor(App[None]):
    ENABLE_COMMAND_PALETTE = False

    def compose(self) -> ComposeResult:
        yield Input()


if __name__ == "__main__":
    Floor().run()
