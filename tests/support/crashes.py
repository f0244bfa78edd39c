"""A session that is worked on and killed again and again, and what must be true after each kill."""

import json
import os
import random
import select
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from musepi_tui.session.codec import encode_message
from musepi_tui.session.entries import CompactionEntry, CustomMessageEntry, MessageEntry, StateEntry
from musepi_tui.storage.loading import load_session
from tests.support.server import Reply, SeenRequest, anthropic_reply
from tests.support.stored import keeps_the_rules
from tests.support.zygote import Child, Zygote

REACHED_WITHIN_S = 30.0
"""How long a run may take to the moment it is killed at; only a run that hangs takes so long."""

SETTINGS = (
    "tokens.estimator=chars4",
    "compaction.keepRecentTokens=200",
    "compaction.threshold=1500",
    "retry.baseDelayMs=1",
)
FLAGS = ("--mode", "rpc", "--yolo", *(part for setting in SETTINGS for part in ("--set", setting)))
STORED = ("message_end", "auto_compaction_end", "compaction_end")


def answer(request: SeenRequest, chance: random.Random) -> Reply:
    """A model that answers at length, uses a tool now and then, and summarises when it is asked to."""
    if not request.body.get("tools"):
        return anthropic_reply(text="## Goal\nKeep counting.\n\n## Next\nCount on.")
    words = " ".join(f"word{chance.randrange(1000)}" for _ in range(chance.randrange(20, 120)))
    last = request.body["messages"][-1]["content"]
    was_result = isinstance(last, list) and last[-1]["type"] == "tool_result"
    tools = [] if was_result or chance.random() < 0.5 else [("ls", {}, f"toolu_{chance.getrandbits(60):x}")]
    return anthropic_reply(text=words, tools=tools).packed(16)


@dataclass(frozen=True)
class Moment:
    """When a run is killed: after so many lines of one of these types, and then a little later."""

    types: tuple[str, ...]
    count: int
    later_s: float


def any_moment(chance: random.Random) -> Moment:
    """A moment during the start, while lines are written, or around a compaction."""
    kind = chance.choices(("start", "stored", "compacting"), (1, 4, 3))[0]
    if kind == "start":
        return Moment((), 0, chance.uniform(0, 0.3))
    if kind == "stored":
        return Moment(STORED, chance.randint(1, 12), chance.uniform(0, 0.02))
    return Moment(("auto_compaction_start", "compaction_start"), 1, chance.uniform(0, 0.03))


@dataclass
class KilledSession:
    """One session file over several lives.

    ``acknowledged`` is what was told as stored, by entry id: the message, None for a compaction. ``names``
    are those that were answered after the first message: before it there is nothing to store them in.
    """

    path: Path
    cwd: Path
    old_ids: Sequence[str] = ()
    acknowledged: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    compactions: int = 0

    def live(self, zygote: Zygote, chance: random.Random, moment: Moment) -> None:
        """Runs musepi on the session until the moment, kills it, and notes what it told until then."""
        with zygote.start(*FLAGS, "--model", "local/m1", "--session", str(self.path), cwd=self.cwd) as child:
            child.stdin.write(b"".join(_line(command) for command in _work(chance)))
            child.stdin.flush()
            for event in _until(child, moment):
                self._note(event)

    def problems(self) -> list[str]:
        """What is wrong with the file now; nothing when all is well."""
        if not self.path.exists() or self.path.stat().st_size == 0:
            return ["there is no file"] if self.acknowledged or self.old_ids else []
        found = [] if keeps_the_rules(self.path) else ["the check of the file found a breach"]
        loaded = load_session(self.path, thorough=True)
        on_path = {head.id for head in loaded.tree.path()}
        found += [
            f"the old entry {entry_id} is gone" for entry_id in self.old_ids if entry_id not in loaded.tree
        ]
        entries = [loaded.bodies.get(head) for head in loaded.heads if head.type == "session_info"]
        stored = {entry.fields.get("name") for entry in entries if isinstance(entry, StateEntry)}
        found += [f"the acknowledged name {name} is gone" for name in self.names - stored]
        for entry_id, message in self.acknowledged.items():
            if entry_id not in on_path:
                found.append(f"the acknowledged entry {entry_id} is not on the path")
                continue
            entry = loaded.bodies.get(loaded.tree.head(entry_id))
            if message is None and not isinstance(entry, CompactionEntry):
                found.append(f"the acknowledged compaction {entry_id} is a {entry.type}")
            if message is not None and _message_of(entry) != message:
                found.append(f"the acknowledged message {entry_id} is stored differently")
        return found

    def _note(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "message_end":
            self.acknowledged[event["entryId"]] = event["message"]
        elif event["type"] == "response" and event["command"] == "set_session_name":
            self.names.update([event["id"]] if event["success"] and self.acknowledged else [])
        elif event["type"] in STORED and event["result"] is not None:
            self.compactions += 1
            self.acknowledged[event["result"]["entryId"]] = None


def _message_of(entry: object) -> Mapping[str, Any] | None:
    if isinstance(entry, MessageEntry):
        return encode_message(entry.message)
    return {"role": "custom"} if isinstance(entry, CustomMessageEntry) else None


def _line(command: Mapping[str, Any]) -> bytes:
    return json.dumps(command).encode() + b"\n"


def _work(chance: random.Random) -> list[dict[str, Any]]:
    """More work than a life has time for: it comes to its fourth prompt at most."""
    work: list[dict[str, Any]] = []
    for number in range(12):
        text = f"prompt {number} " + "please " * chance.randrange(30)
        work.append({"type": "prompt", "message": text, "streamingBehavior": "followUp"})
        if chance.random() < 0.2:
            name = f"name {chance.getrandbits(40):x}"
            work.append({"type": "set_session_name", "id": name, "name": name})
    return work


def _until(child: Child, moment: Moment) -> list[dict[str, Any]]:
    """The events a child told until it was killed; it is killed at the moment."""
    data = bytearray()
    descriptor = child.stdout.fileno()
    deadline = time.monotonic() + REACHED_WITHIN_S
    seen = checked = 0
    while seen < moment.count:
        if time.monotonic() > deadline or child.poll() is not None:
            raise AssertionError(f"the run never came to {moment}; it told {bytes(data[-2000:])!r}")
        if not select.select([descriptor], [], [], 1.0)[0]:
            continue
        data += os.read(descriptor, 65536)
        *lines, rest = bytes(data[checked:]).split(b"\n")
        seen += sum(json.loads(line)["type"] in moment.types for line in lines)
        checked = len(data) - len(rest)
    time.sleep(moment.later_s)
    child.kill()
    child.wait()
    while block := os.read(descriptor, 65536):
        data += block
    return [json.loads(line) for line in bytes(data).split(b"\n")[:-1]]
