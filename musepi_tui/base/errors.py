"""Every exception of the program, and the kinds of a provider failure.

::

    MusepiError
    ├── SettingsError          a key cannot be used
    ├── UsageError             an unusable command-line argument (exit 2)
    ├── SessionError
    │   ├── NotASessionFileError · SessionCorruptError · SessionBusyError · SessionChangedOnDiskError
    │   └── SessionUnwritableError · EntryNotFoundError
    ├── ProviderError          has kind: ErrorKind, status, retry_after_s
    ├── ToolError              shown to the model as an error result
    ├── MaintenanceError
    │   └── NothingToCompactError · EmptySummaryError · SummaryRejectedError · CompactionStoppedError
    └── ResourceMissingError
"""

from enum import StrEnum


class ErrorKind(StrEnum):
    """What a provider failure means; the values of the wire contract (providers 7.1)."""

    OVERFLOW = "overflow"
    PAYLOAD = "payload"
    ABORTED = "aborted"
    AUTH = "auth"
    QUOTA = "quota"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER = "server"
    TRANSPORT = "transport"
    CONFLICT = "conflict"
    REFUSAL = "refusal"
    NOT_FOUND = "not_found"
    INVALID_REQUEST = "invalid_request"


class MusepiError(Exception):
    """Anything that went wrong in a way a person can be told about in one line."""


class SettingsError(MusepiError):
    """A settings file or key cannot be used."""


class UsageError(MusepiError):
    """An argument of the command line is unusable."""


class SessionError(MusepiError):
    """A session file cannot be opened, read or written."""


class NotASessionFileError(SessionError):
    """The first record of the file is no session header."""


class SessionCorruptError(SessionError):
    """A record that is needed cannot be read back."""


class SessionBusyError(SessionError):
    """Another process holds the writer lock; ``pid`` names it when known."""

    def __init__(self, message: str, *, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class SessionChangedOnDiskError(SessionError):
    """The file was replaced by somebody else."""


class SessionUnwritableError(SessionError):
    """The file can be read and not written, for a reason that lies in its folder; ``remedy`` is what to
    do."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(f"{cause}; {remedy}")
        self.cause = cause
        self.remedy = remedy


class EntryNotFoundError(SessionError):
    """No entry has that id."""


class ProviderError(MusepiError):
    """A model request failed.

    ``retry_after_s`` is the server's own hint in seconds; ``error_type`` and ``code`` are the words of the
    error body, when it had them.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind,
        status: int | None = None,
        retry_after_s: float | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.retry_after_s = retry_after_s
        self.retryable = retryable
        self.error_type: str | None = None
        self.code: str | int | None = None
        self.server_message: str | None = None
        self.cause: str | None = None


class ToolError(MusepiError):
    """A tool call failed; the text goes to the model as an error result."""


class MaintenanceError(MusepiError):
    """A maintenance pass failed; history is as it was."""


class NothingToCompactError(MaintenanceError):
    """Preparation found nothing to summarise."""


class CompactionStoppedError(MaintenanceError):
    """An extension did not want this compaction."""


class EmptySummaryError(MaintenanceError):
    """The model answered a summary request with nothing."""


class SummaryRejectedError(MaintenanceError):
    """A summary did not pass validation."""


class ResourceMissingError(MusepiError):
    """A prompt or theme of the package cannot be found."""
