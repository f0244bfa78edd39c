"""What stands at the top of a session: where it works, with which model, how to get one."""

from pathlib import Path
from typing import TYPE_CHECKING

from musepi_tui.runtime.events import Phase
from musepi_tui.tui.place import find_place
from musepi_tui.tui.welcome import header_lines, missing_key_lines

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell


class Greeting:
    """Keeps place and header up to date; tells how to get a real model, once per run."""

    def __init__(self, app: "Shell", *, is_quiet: bool) -> None:
        self._app = app
        self._is_quiet = is_quiet
        self._has_helped = False

    def show_place(self) -> None:
        """Folder and branch, as they are now."""
        app = self._app
        cwd = app.bridge.status.cwd or str(app.runtime.options.cwd)
        app.main.show_place(find_place(Path(cwd), Path(app.environ.get("HOME", "/"))), cwd)

    def show_header(self) -> None:
        """The header of the transcript. Before the model is known it is left open which one works."""
        status = self._app.bridge.status
        if self._is_quiet or status.phase is Phase.LOADING:
            return
        self._app.bridge.transcript.set_header(header_lines(status.model, self._app.main.footer.place))
        self._app.bridge.request_flush()

    def offer_help(self) -> None:
        """How to get a real model, when there is none. A resumed talk with the demo goes on."""
        app, model = self._app, self._app.bridge.status.model
        if self._has_helped or (model is not None and len(app.bridge.transcript) > 1):
            return
        models_json = app.runtime.options.paths.config / "models.json"
        lines = missing_key_lines(app.runtime.models(), model, models_json)
        self._has_helped = bool(lines)
        for level, line in zip(("warning", "info"), lines, strict=False):
            app.tell(level, line)
