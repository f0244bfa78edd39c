"""musepi: a coding agent for the terminal whose long sessions stay usable."""

__version__ = "0.1.0"
