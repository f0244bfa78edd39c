"""The RPC door: commands on stdin, responses and events on stdout, one JSON object a line (contract 3.2).

Commands are carried out in the order they come and never wait for one another: a command that takes time is
answered when its intent settles. Bad input gets an error response and the process goes on.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from musepi_tui.base.errors import MusepiError
from musepi_tui.cli.rpc.handlers import find_handler
from musepi_tui.cli.rpc.protocol import Pending, RpcError, words_for_scripts
from musepi_tui.cli.stdio import LINE_LIMIT_BYTES, LineReader, LineWriter
from musepi_tui.runtime.event_json import dump_line, to_json
from musepi_tui.runtime.events import (
    AgentSettled,
    ApprovalAsked,
    Event,
    IntentSettled,
    MaintenanceEnded,
    Phase,
    SessionReady,
)
from musepi_tui.runtime.intents import AnswerApproval
from musepi_tui.runtime.session import SessionRuntime


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A command whose intent has not settled yet."""

    command_id: object
    command: str
    pending: Pending


class RpcServer:
    """Serves one host until its input ends and the work it asked for is done."""

    def __init__(self, runtime: SessionRuntime) -> None:
        self._runtime = runtime
        self._subscription = runtime.subscribe()
        self._waiting: dict[str, _Waiting] = {}
        self._asked: set[str] = set()
        self._held: list[bytes] = []
        self._ready = False
        self._ended = False
        self._last_pass: MaintenanceEnded | None = None
        self._writer = LineWriter(sys.stdout.fileno(), self._on_reader_gone)

    @property
    def runtime(self) -> SessionRuntime:
        """The session this server drives."""
        return self._runtime

    @property
    def last_pass(self) -> MaintenanceEnded | None:
        """The end of the newest maintenance pass."""
        return self._last_pass

    async def serve(self) -> int:
        """Runs until the host is done; the exit code (1 when the host stopped reading).

        A cancel closes the runtime; what that stores and settles is told before the ``CancelledError``.
        """
        LineReader(self._on_line, self._on_too_long, self._on_end).start()
        try:
            async for event in self._subscription:
                self._on_event(event)
        except asyncio.CancelledError:
            await self._runtime.close()
            for event in self._subscription.drain():
                self._on_event(event)
            raise
        finally:
            self._writer.close()
        return 1 if self._writer.broken else 0

    def _on_event(self, event: Event) -> None:
        match event:
            case SessionReady(reason="start"):
                self._ready = True
                held, self._held = self._held, []
                for line in held:
                    self._on_line(line)
            case MaintenanceEnded():
                self._last_pass = event
            case IntentSettled():
                self._settle(event)
            case ApprovalAsked():
                self._ask(event)
            case _:
                pass
        for shape in to_json(event, self._runtime.read_entry):
            self._writer.write(dump_line(shape))
        if isinstance(event, IntentSettled | AgentSettled | MaintenanceEnded | SessionReady):
            self._finish_when_idle()

    def _on_line(self, line: bytes) -> None:
        if not self._ready:
            self._held.append(line)
        elif line.strip():
            self._carry_out(line)

    def _carry_out(self, line: bytes) -> None:
        try:
            command: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            self._respond(None, None, error=f"not a JSON line: {error}")
            return
        fields = cast("dict[str, Any]", command) if isinstance(command, dict) else {}
        if not isinstance(fields.get("type"), str):
            self._respond(fields.get("id"), None, error='a command is an object with a string "type"')
            return
        self._dispatch(fields)

    def _dispatch(self, command: Mapping[str, Any]) -> None:
        name, command_id = command["type"], command.get("id")
        try:
            answer = find_handler(name)(self, command)
        except MusepiError as error:
            self._respond(command_id, name, error=str(error))
            return
        if isinstance(answer, Pending):
            intent_id = self._runtime.send(answer.intent)
            self._waiting[intent_id] = _Waiting(command_id, name, answer)
        else:
            self._respond(command_id, name, data=answer)

    def _settle(self, settled: IntentSettled) -> None:
        waiting = self._waiting.pop(settled.intent_id, None)
        if waiting is None:
            return
        try:
            data = waiting.pending.finish(self, words_for_scripts(settled))
        except RpcError as error:
            self._respond(waiting.command_id, waiting.command, error=str(error))
        else:
            self._respond(waiting.command_id, waiting.command, data=data)

    def _respond(
        self, command_id: object, command: str | None, *, data: object = None, error: str | None = None
    ) -> None:
        response: dict[str, Any] = {"type": "response", "command": command, "success": error is None}
        if command_id is not None:
            response = {"type": "response", "id": command_id, "command": command, "success": error is None}
        if error is not None:
            response["error"] = error
        elif data is not None:
            response["data"] = data
        self._writer.write(dump_line(response))

    def _ask(self, asked: ApprovalAsked) -> None:
        if self._ended:
            self._deny(asked.request_id)
        else:
            self._asked.add(asked.request_id)

    def _deny(self, request_id: str) -> None:
        self._runtime.send(AnswerApproval(request_id, "deny", "the host has closed its input"))

    def _on_too_long(self) -> None:
        limit_mib = LINE_LIMIT_BYTES // (1024 * 1024)
        self._respond(None, None, error=f"a line may have at most {limit_mib} MiB; it was skipped")

    def _on_end(self) -> None:
        self._ended = True
        for request_id in sorted(self._asked):
            self._deny(request_id)
        self._asked.clear()
        self._finish_when_idle()

    def _on_reader_gone(self) -> None:
        self._runtime.call_soon(self._subscription.close)

    def _finish_when_idle(self) -> None:
        if not self._ended or not self._ready or self._waiting:
            return
        view = self._runtime.view()
        if view.phase is Phase.IDLE and not view.turn_open and not view.compacting:
            self._subscription.close()
