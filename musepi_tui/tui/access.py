"""What the screen asks about a session that may only be read."""

from typing import TYPE_CHECKING

from musepi_tui.runtime.events import Reason

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell


def show_access(shell: "Shell", reason: Reason) -> None:
    """Asks what to do with it when somebody comes to it; takes the question away when the session is ours."""
    from musepi_tui.tui.screens import read_only  # deferred: few sessions need it

    if shell.bridge.status.read_only is None:
        read_only.close_choices(shell)
    elif reason != "reload":
        read_only.open_choices(shell, is_read=False)


def offer_access(shell: "Shell") -> bool:
    """The same question, when something is to be sent there; whether the session is one."""
    if shell.bridge.status.read_only is None:
        return False
    from musepi_tui.tui.screens import read_only  # deferred: see above

    read_only.open_choices(shell, is_read=True)
    return True
