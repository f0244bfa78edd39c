"""What a tool is, what it is given and what it returns (tui 7)."""

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.messages import ImageBlock

if TYPE_CHECKING:
    from pydantic import BaseModel  # the screen imports this module, and pydantic is slow to load

    from musepi_tui.tools.paths import Workspace

P = ParamSpec("P")
T = TypeVar("T")


class Effect(StrEnum):
    """The approval tier of a tool (tui 8.1)."""

    READ = "read"
    WRITE = "write"
    EXEC = "exec"


ViewKind: TypeAlias = Literal["none", "text", "tail", "list", "code", "diff"]


@dataclass(frozen=True, slots=True)
class ToolView:
    """How a tool call is drawn; the screen needs nothing else.

    ``title`` is one line. ``note`` stands behind it (``120 lines``). ``body`` None means the text of the
    result itself. ``kind``: ``none`` shows no preview, ``text`` and ``list`` the first rows, ``tail`` the
    last rows, ``code`` highlighted first rows (``language``), ``diff`` a unified diff without file headers.
    """

    kind: ViewKind
    title: str
    body: str | None = None
    language: str | None = None
    note: str | None = None


def view_to_json(view: ToolView) -> dict[str, Any]:
    """The view as stored under ``details.view`` of a tool result; absent fields are left out."""
    data = {
        "kind": view.kind,
        "title": view.title,
        "body": view.body,
        "language": view.language,
        "note": view.note,
    }
    return {key: value for key, value in data.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The result of a call: ``text`` goes to the model, with ``images``; ``details`` only to the file.

    ``useless`` results (zero hits) may be pruned later; an error is never useless.
    """

    text: str
    images: tuple[ImageBlock, ...] = ()
    is_error: bool = False
    useless: bool = False
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    view: ToolView | None = None


class ArtifactSink(Protocol):
    """Where full outputs go (implemented by ``storage.artifacts``)."""

    def save(self, tool: str, text: str) -> str:
        """Stores the text, returns its id (digits)."""
        ...

    def create(self, tool: str) -> tuple[str, Path]:
        """A new empty artifact file and its id, for output that is spilled while it comes."""
        ...

    def find(self, artifact_id: str) -> Path:
        """The file of an id. Raises ``ToolError`` naming the existing ids."""
        ...


class ToolContext(Protocol):
    """What a running tool may use."""

    @property
    def workspace(self) -> "Workspace":
        """Working folder, roots, path resolution, freshness, per-path locks."""
        ...

    @property
    def artifacts(self) -> ArtifactSink:
        """Where full outputs go."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables for children."""
        ...

    def progress(self, text: str) -> None:
        """Shows the output so far (its tail). Cheap; the runtime throttles it to 10 a second."""
        ...

    async def in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs blocking work in a thread."""
        ...


class Tool(Protocol):
    """One file in ``tools/builtin``, offering ``TOOL``."""

    name: str
    arguments: "type[BaseModel]"
    effect: Effect
    prompt: str
    """Name of the prompt file that describes the tool to the model."""

    def preview(self, arguments: Mapping[str, Any]) -> ToolView:
        """What to show while the call streams or waits.

        ``arguments`` are raw and possibly partial. Never raises, does no I/O.
        """
        ...

    async def run(self, args: Any, ctx: ToolContext) -> ToolOutcome:  # noqa: ANN401 - each tool has its own
        """Does the work. Raises ``ToolError`` for a failure the model should read."""
        ...
