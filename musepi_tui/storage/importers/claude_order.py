"""Records of Claude Code as a tree of messages (session-format 17). Pure.

A message stands in several records, one for each block, and the results of its calls hang under the blocks
they answer: as it is stored every parallel call looks like a branch. Here all records of a message are one
unit and its results belong to it, in the order of the file; what hangs under any of them hangs under the last
one. Records that are not carried over are taken out of the chain.
"""

from collections.abc import Iterable
from dataclasses import field

from musepi_tui.base.dataclass import dataclass
from musepi_tui.storage.importers.claude_records import RecordKind, Sketch
from musepi_tui.storage.importers.source import Place
from musepi_tui.storage.importers.tally import Tally


@dataclass(slots=True)
class Unit:
    """What becomes one entry, or an answer and its results.

    ``kind`` is ``PROMPT``, ``ANSWER`` or ``BOUNDARY``, which stands for a whole compaction: its record, if it
    has one, and ``summary``. ``parent`` is another unit. ``results`` are records and the
    index of a block in them. ``kept_from`` is the first unit a compaction kept.
    """

    kind: RecordKind
    parent_uuid: str | None
    places: list[Place] = field(default_factory=list[Place])
    results: list[tuple[Place, int]] = field(default_factory=list[tuple[Place, int]])
    summary: Place | None = None
    kept: tuple[str, ...] = ()
    parent: "Unit | None" = None
    kept_from: "Unit | None" = None

    @property
    def is_void(self) -> bool:
        """Whether nothing can be made of it: a compaction without a summary."""
        return self.kind is RecordKind.BOUNDARY and self.summary is None


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Units in the order they are to be written, parents first, and the one the conversation stands at."""

    units: tuple[Unit, ...]
    leaf: Unit | None


def arrange(sketches: Iterable[Sketch], active_uuid: str | None, tally: Tally) -> Arrangement:
    """The units of a file's records. ``active_uuid`` names the leaf where the file says which it is.

    Never raises: a parent that is missing, and one of a ring, becomes the unit before in the file.
    """
    sorter = _Sorter(tally)
    for sketch in sketches:
        sorter.take(sketch)
    units = sorter.link()
    leaf = None if active_uuid is None else sorter.find(active_uuid)
    return Arrangement(_parents_first(units), sorter.last if leaf is None else leaf)


class _Sorter:
    """Sorts sketches into units; ``last`` is the unit of the last record that was carried over."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._units: list[Unit] = []
        self._owners: dict[str, Unit] = {}
        self._passed: dict[str, str | None] = {}
        self._answers: dict[str, Unit] = {}
        self._calls: dict[str, Unit] = {}
        self._answered: set[str] = set()
        self.last: Unit | None = None

    def take(self, sketch: Sketch) -> None:
        """Take in the next record of the file."""
        uuid = sketch.uuid
        if uuid is None:
            self._tally.skip(sketch.reason)
            return
        if uuid in self._owners or uuid in self._passed:
            self._tally.skip("repeated record")
            return
        unit = self._unit_for(sketch)
        if unit is None:
            self._passed[uuid] = sketch.parent
        else:
            self._owners[uuid] = self.last = unit

    def link(self) -> list[Unit]:
        """All units that hold something, in file order, with their parents."""
        found: list[Unit] = []
        for unit in self._units:
            if unit.is_void:
                self._tally.skip("compaction without a summary")
                continue
            unit.parent = self._parent_of(unit, found[-1] if found else None)
            found.append(unit)
        for unit in found:
            kept = (self.find(uuid) for uuid in unit.kept)
            unit.kept_from = next((each for each in kept if each is not None), None)
        self.last = None if self.last is None else self._holding(self.last)
        return found

    def find(self, uuid: str) -> Unit | None:
        """The unit a record became part of, or that of the nearest one before it; None without any."""
        end = self._resolve(uuid)
        return None if end is None else self._holding(self._owners[end]) if end in self._owners else None

    def _unit_for(self, sketch: Sketch) -> Unit | None:
        match sketch.kind:
            case RecordKind.ANSWER:
                return self._answer_unit(sketch)
            case RecordKind.RESULTS:
                return self._place_results(sketch)
            case RecordKind.PROMPT:
                return self._new(RecordKind.PROMPT, sketch)
            case RecordKind.BOUNDARY:
                return self._new(RecordKind.BOUNDARY, sketch)
            case RecordKind.SUMMARY:
                return self._summary_unit(sketch)
            case RecordKind.PASSED:
                self._tally.skip(sketch.reason)
                return None

    def _new(self, kind: RecordKind, sketch: Sketch) -> Unit:
        unit = Unit(kind, sketch.parent, [sketch.place], kept=sketch.kept)
        self._units.append(unit)
        return unit

    def _answer_unit(self, sketch: Sketch) -> Unit:
        unit = None if sketch.message_id is None else self._answers.get(sketch.message_id)
        if unit is None:
            unit = self._new(RecordKind.ANSWER, sketch)
            if sketch.message_id is not None:
                self._answers[sketch.message_id] = unit
        else:
            unit.places.append(sketch.place)
        self._calls.update(dict.fromkeys(sketch.calls, unit))
        return unit

    def _place_results(self, sketch: Sketch) -> Unit | None:
        unit = None
        for index, call_id in sketch.answers:
            asked = self._calls.get(call_id)
            if asked is None or call_id in self._answered:
                self._tally.skip("tool result without a call" if asked is None else "repeated tool result")
                continue
            self._answered.add(call_id)
            asked.results.append((sketch.place, index))
            unit = asked
        return self._new(RecordKind.PROMPT, sketch) if sketch.has_words else unit

    def _summary_unit(self, sketch: Sketch) -> Unit:
        end = None if sketch.parent is None else self._resolve(sketch.parent)
        unit = None if end is None else self._owners.get(end)
        if unit is None or unit.kind is not RecordKind.BOUNDARY or unit.summary is not None:
            unit = self._new(RecordKind.BOUNDARY, sketch)
            unit.places.clear()
        unit.summary = sketch.place
        return unit

    def _resolve(self, uuid: str) -> str | None:
        """The nearest record at or above ``uuid`` that was not passed over; None at a root."""
        trail: list[str] = []
        seen: set[str] = set()
        at: str | None = uuid
        while at is not None and at in self._passed and at not in seen:
            seen.add(at)
            trail.append(at)
            at = self._passed[at]
        end = None if at in seen else at
        for each in trail:
            self._passed[each] = end
        return end

    def _parent_of(self, unit: Unit, before: Unit | None) -> Unit | None:
        is_cut = unit.kind is RecordKind.BOUNDARY
        if unit.parent_uuid is None:
            return before if is_cut else None
        end = self._resolve(unit.parent_uuid)
        if end is None:
            return before if is_cut else None
        owner = self._owners.get(end)
        found = None if owner is None else self._holding(owner)
        return before if found is None or found is unit else found

    def _holding(self, unit: Unit) -> Unit | None:
        """The unit itself, or when it holds nothing the nearest one above that does."""
        seen: set[int] = set()
        at: Unit | None = unit
        while at is not None and at.is_void and id(at) not in seen:
            seen.add(id(at))
            end = None if at.parent_uuid is None else self._resolve(at.parent_uuid)
            at = None if end is None else self._owners.get(end)
        return None if at is None or at.is_void else at


def _parents_first(units: list[Unit]) -> tuple[Unit, ...]:
    """The units in file order, except that a parent that comes later is moved in front of its child."""
    ordered: list[Unit] = []
    done: set[int] = set()
    for unit in units:
        climb: list[Unit] = []
        on_climb: set[int] = set()
        at: Unit | None = unit
        while at is not None and id(at) not in done:
            if id(at) in on_climb:
                climb[-1].parent = ordered[-1] if ordered else None
                break
            climb.append(at)
            on_climb.add(id(at))
            at = at.parent
        for each in reversed(climb):
            done.add(id(each))
            ordered.append(each)
    return tuple(ordered)
