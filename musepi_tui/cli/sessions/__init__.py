from musepi_tui.cli.sessions.group import main

__all__ = ["main"]
