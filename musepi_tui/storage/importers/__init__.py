"""Sessions of other programs as new sessions of musepi. Reads files, never changes them."""

from musepi_tui.storage.importers.detection import SourceKind, detect_source, find_import_command
from musepi_tui.storage.importers.importing import Imported, import_session

__all__ = ["Imported", "SourceKind", "detect_source", "find_import_command", "import_session"]
