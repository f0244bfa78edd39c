"""Whether a tool call runs, asks or is refused (safety 7.1). Looks at paths; changes nothing.

Order: forbidden, dangerous or protected, rules that ask, rules that allow everything the call does, grants of
the session, mode.
"""

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from musepi_tui.base.errors import ToolError
from musepi_tui.base.text import plural
from musepi_tui.tools.approval.commands import CommandCall
from musepi_tui.tools.approval.rules import (
    COMMAND_TOOL,
    PATH_TOOLS,
    Rule,
    covers_path,
    exact_path_rule,
    parse_rules,
)
from musepi_tui.tools.paths import ResolvedPath, Workspace, names_note
from musepi_tui.tools.selector import ARTIFACT, split_path
from musepi_tui.tools.types import Effect
from musepi_tui.tools.validate import plain_arguments

_LOG = logging.getLogger("musepi.approval")
_FOLDER_TOOLS = frozenset({"grep", "find", "ls"})


@dataclass(frozen=True, slots=True)
class CallToDecide:
    """A call with its validated arguments; those that run must be the same."""

    tool_name: str
    effect: Effect
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Policy:
    """Mode (``ask``, ``auto-edit``, ``yolo``), the three lists of rules, what was granted in the session."""

    mode: str = "ask"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """``rule``: for ``ask`` what "allow for the session" would grant, None when that is not offered; else the
    rule that decided, if one did. ``dangerous``: the reason names a danger or a protected place."""

    kind: Literal["allow", "ask", "deny"]
    reason: str
    rule: str | None = None
    dangerous: bool = False


def decide(call: CallToDecide, policy: Policy, workspace: Workspace) -> Decision:
    """The decision. A failure in here is a bug, logged, and asks."""
    plain = CallToDecide(call.tool_name, call.effect, plain_arguments(call.arguments))
    try:
        if call.tool_name == COMMAND_TOOL:
            return _decide_command(plain, policy, workspace)
        if call.tool_name in PATH_TOOLS:
            return _decide_path(plain, policy, workspace)
        return _decide_other(plain, policy)
    except ToolError as error:
        return Decision("deny", str(error))
    except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError):
        _LOG.exception("deciding about %s failed", call.tool_name)
        return Decision("ask", "something went wrong while this call was checked", dangerous=True)


def _decide_command(call: CallToDecide, policy: Policy, workspace: Workspace) -> Decision:
    command = CommandCall.read(call.arguments, workspace)
    objection = _objection(command, policy)
    if objection is not None:
        return objection
    allow = _rules((*policy.allow, *policy.grants), COMMAND_TOOL)
    bare = next((rule for rule in allow if rule.is_bare), None)
    if bare is not None:
        return Decision("allow", "allowed by a rule", bare.text)
    if policy.mode == "yolo":
        return Decision("allow", "mode yolo")
    return _decide_parts(command, allow)


def _objection(command: CommandCall, policy: Policy) -> Decision | None:
    """What no rule that allows can overcome: rules that forbid, dangers, rules that ask."""
    deny = _rules(policy.deny, COMMAND_TOOL)
    forbidding = command.first_rule_for(deny)
    if forbidding is not None:
        return Decision("deny", f"the rule {forbidding.text} forbids it", forbidding.text)
    if deny and command.hides_programs is not None:
        reason = f"it is not fully understood ({command.hides_programs}), and some commands are forbidden"
        return Decision("ask", reason)
    if command.danger is not None and policy.mode != "yolo":
        return Decision("ask", command.danger, dangerous=True)
    asking = command.first_rule_for(_rules(policy.ask, COMMAND_TOOL))
    return None if asking is None else Decision("ask", f"the rule {asking.text} asks")


def _decide_parts(command: CommandCall, rules: tuple[Rule, ...]) -> Decision:
    """Every part must be covered by some rule."""
    if command.problem is not None:
        return Decision("ask", f"the command is not fully understood: {command.problem}")
    surroundings = command.surroundings_problem()
    if surroundings is not None:
        return Decision("ask", surroundings)
    uncovered = command.uncovered(rules)
    if not uncovered:
        return Decision("allow", "every part is allowed by a rule")
    more = len(uncovered) - 1
    reason = uncovered[0][1] + (f" (and {plural(more, 'more part')})" if more else "")
    return Decision("ask", reason, command.grant(uncovered))


def _decide_path(call: CallToDecide, policy: Policy, workspace: Workspace) -> Decision:
    text = call.arguments.get("path", "." if call.tool_name in _FOLDER_TOOLS else "")
    if not isinstance(text, str):
        raise ToolError("path is no text.")
    decisions = [_decide_place(call, policy, workspace, place) for place in _places(call, text, workspace)]
    order = ("deny", "ask", "allow")
    return min(
        decisions, key=lambda decision: order.index(decision.kind), default=Decision("allow", "artifact")
    )


def _places(call: CallToDecide, text: str, workspace: Workspace) -> list[ResolvedPath]:
    """The paths the call may touch: the one it names, and for ``read`` the one that is taken in its stead."""
    if call.tool_name != "read":
        return [workspace.resolve(text)]
    path, _ = split_path(text, workspace)
    if path.startswith(ARTIFACT):
        return []
    places = [workspace.resolve(path)]
    with contextlib.suppress(ToolError):  # nothing there: the call will fail, with suggestions
        places.append(workspace.find(path)[0])
    return list(dict.fromkeys(places))


def _decide_place(call: CallToDecide, policy: Policy, workspace: Workspace, place: ResolvedPath) -> Decision:
    writes = call.effect is not Effect.READ
    if workspace.is_own(place) and (writes or workspace.is_own_secret(place)):
        return Decision(
            "deny",
            f"{place.shown} belongs to musepi itself; people change it with musepi config",
            dangerous=True,
        )
    forbidding = _covering(policy.deny, call, place, workspace, eager=True)
    if forbidding is not None:
        return Decision("deny", f"the rule {forbidding} forbids it", forbidding)
    guard = _guard(place, workspace, writes=writes)
    if guard is not None and policy.mode != "yolo":
        return Decision("ask", guard, dangerous=True)
    asking = _covering(policy.ask, call, place, workspace, eager=True)
    if asking is not None:
        return Decision("ask", f"the rule {asking} asks")
    allowing = _covering((*policy.allow, *policy.grants), call, place, workspace, eager=False)
    if allowing is not None:
        return Decision("allow", "allowed by a rule", allowing)
    return _by_mode(call, policy, workspace, place)


def _by_mode(call: CallToDecide, policy: Policy, workspace: Workspace, place: ResolvedPath) -> Decision:
    writes = call.effect is not Effect.READ
    if policy.mode == "yolo" or (place.inside and (not writes or policy.mode == "auto-edit")):
        return Decision("allow", f"mode {policy.mode}")
    doing = "writes to" if writes else "reads"
    where = place.shown if place.inside else f"{place.shown}, outside the project"
    return Decision(
        "ask", f"{call.tool_name} {doing} {where}", exact_path_rule(call.tool_name, place, workspace)
    )


def _guard(place: ResolvedPath, workspace: Workspace, *, writes: bool) -> str | None:
    """Why this place asks whatever the rules say."""
    secret = workspace.secret_reason(place)
    if secret is not None or not writes:
        return secret
    return workspace.protected_reason(place) or names_note(place)


def _decide_other(call: CallToDecide, policy: Policy) -> Decision:
    """A tool without a path or a command: by bare rules, its effect and the mode."""
    for kind, texts in (
        ("deny", policy.deny),
        ("ask", policy.ask),
        ("allow", (*policy.allow, *policy.grants)),
    ):
        rule = next(iter(_rules(texts, call.tool_name)), None)
        if rule is not None and kind == "ask":
            return Decision("ask", f"the rule {rule.text} asks")
        if rule is not None:
            return Decision("deny" if kind == "deny" else "allow", f"the rule {rule.text} says so", rule.text)
    if policy.mode == "yolo" or call.effect is Effect.READ:
        return Decision("allow", f"mode {policy.mode}")
    return Decision("ask", f"{call.tool_name} may change something", call.tool_name)


def _rules(texts: tuple[str, ...], tool: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in parse_rules(texts) if rule.tool == tool)


def _covering(
    texts: tuple[str, ...], call: CallToDecide, place: ResolvedPath, workspace: Workspace, *, eager: bool
) -> str | None:
    rules = _rules(texts, call.tool_name)
    return next((rule.text for rule in rules if covers_path(rule, place, workspace, eager=eager)), None)
