import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.session.codec import (
    decode_entry,
    decode_header,
    decode_message,
    decode_usage,
    dump_json,
    dump_line,
    encode_entry,
    encode_header,
    encode_message,
    encode_usage,
)
from musepi_tui.session.entries import (
    KEEP_NOTHING,
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    MessageEntry,
    SessionHeader,
    StateEntry,
)
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    Cost,
    CustomMessage,
    FileMention,
    ImageBlock,
    OpaqueBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UnknownMessage,
    Usage,
    UserMessage,
)
from tests.support.lines import answer_record, record, user_record

AT = ("e1", None, "2026-01-01T00:00:00.000Z")

FULL_ANSWER = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln", "itemId": "rs_1"},
        {"type": "thinking", "thinking": "", "thinkingSignature": "enc", "redacted": True},
        {"type": "redactedThinking", "data": "blob"},
        {"type": "text", "text": " hi ", "textSignature": '{"v":1}'},
        {
            "type": "toolCall",
            "id": "call_1|fc_1",
            "name": "read",
            "arguments": {"b": 1, "a": [2]},
            "intent": "look",
        },
        {"type": "fallback", "from": {"model": "x"}, "to": {"model": "y"}},
    ],
    "api": "anthropic-messages",
    "provider": "anthropic",
    "model": "claude",
    "usage": {
        "input": 1,
        "output": 2,
        "cacheRead": 3,
        "cacheWrite": 4,
        "totalTokens": 10,
        "cost": {"input": 0.1, "output": 0.2, "cacheRead": 0.3, "cacheWrite": 0.4, "total": 1.0},
        "reasoning": 1,
        "premiumRequests": 2,
    },
    "stopReason": "toolUse",
    "errorMessage": "no",
    "responseId": "resp_1",
    "timestamp": 17,
    "ttft": 12,
    "retryRecovery": {"status": "recovered"},
}

MESSAGES = {
    "user": {"role": "user", "content": "hi", "timestamp": 1, "steering": True},
    "user blocks": {
        "role": "user",
        "content": [
            {"type": "text", "text": "see"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png", "detail": "low"},
        ],
        "timestamp": 1,
    },
    "developer": {"role": "developer", "content": "rule", "timestamp": 1, "attribution": "agent"},
    "assistant": FULL_ANSWER,
    "deferred answer": FULL_ANSWER | {"stopReason": "deferred"},
    "answer with odd usage": FULL_ANSWER | {"usage": {"input": "many"}},
    "toolResult": {
        "role": "toolResult",
        "toolCallId": "call_1",
        "toolName": "read",
        "content": [{"type": "text", "text": "x"}],
        "isError": False,
        "details": {"lines": 3},
        "prunedAt": 5,
        "timestamp": 2,
        "metrics": {"ms": 3},
    },
    "bash": {
        "role": "bashExecution",
        "command": "ls",
        "output": "a",
        "exitCode": 0,
        "cancelled": False,
        "truncated": False,
        "timestamp": 3,
        "fullOutputPath": "/tmp/x",
    },
    "python": {
        "role": "pythonExecution",
        "code": "1+1",
        "output": "2",
        "cancelled": False,
        "truncated": True,
        "excludeFromContext": True,
        "timestamp": 3,
    },
    "mention": {"role": "fileMention", "files": [{"path": "a.py", "content": "x"}], "timestamp": 4},
    "custom": {
        "role": "custom",
        "customType": "note",
        "content": "c",
        "display": False,
        "details": {"a": 1},
        "attribution": "user",
        "timestamp": 5,
    },
    "unknown": {"role": "system", "content": "s", "sections": [1], "timestamp": 6},
    "number where a text belongs": {"role": "user", "content": None, "timestamp": 1.5},
}


@pytest.mark.parametrize("name", [name for name in MESSAGES if name != "number where a text belongs"])
def test_message_survives_a_round_trip(name):
    assert encode_message(decode_message(MESSAGES[name])) == MESSAGES[name]


def test_assistant_is_decoded_into_its_blocks():
    message = decode_message(FULL_ANSWER)
    assert isinstance(message, AssistantMessage)
    assert message.content == (
        ThinkingBlock("hm", "c2ln", extra={"itemId": "rs_1"}),
        ThinkingBlock("", "enc", redacted=True),
        ThinkingBlock("", "blob", redacted=True, extra={"type": "redactedThinking"}),
        TextBlock(" hi ", '{"v":1}'),
        ToolCallBlock("call_1|fc_1", "read", {"b": 1, "a": [2]}, extra={"intent": "look"}),
        OpaqueBlock({"type": "fallback", "from": {"model": "x"}, "to": {"model": "y"}}),
    )
    assert message.usage == Usage(
        1, 2, 3, 4, 10, Cost(0.1, 0.2, 0.3, 0.4, 1.0), 1, extra={"premiumRequests": 2}
    )
    assert message.stop_reason is StopReason.TOOL_USE


@pytest.mark.parametrize("content", [None, "missing"])
def test_assistant_without_content_has_no_blocks(content):
    stored = {key: value for key, value in FULL_ANSWER.items() if key != "content"}
    if content is None:
        stored["content"] = None
    message = decode_message(stored)
    assert isinstance(message, AssistantMessage)
    assert message.content == ()


def test_usage_of_old_files_gets_its_total_and_no_cost():
    assert decode_usage({"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4}) == Usage(1, 2, 3, 4, 10)


@pytest.mark.parametrize("stored", [None, {}, "many", {"input": "many"}, {"input": True, "output": 1}, [1]])
def test_usage_without_numbers_is_unknown(stored):
    assert decode_usage(stored) is None


def test_usage_without_total_is_written_with_their_sum():
    assert encode_usage(Usage(1, 2, 3, 4))["totalTokens"] == 10


def test_error_result_is_never_useless():
    stored = MESSAGES["toolResult"] | {"isError": True, "useless": True}
    message = decode_message(stored)
    assert isinstance(message, ToolResultMessage)
    assert not message.useless
    assert "useless" not in encode_message(ToolResultMessage("c", "read", (), is_error=True, useless=True))


def test_parse_error_of_a_call_is_not_stored():
    answer = AssistantMessage(
        (ToolCallBlock("c", "read", {}, parse_error="cut"),), "x", "p", "m", StopReason.TOOL_USE
    )
    assert encode_message(answer)["content"] == [
        {"type": "toolCall", "id": "c", "name": "read", "arguments": {}}
    ]


def test_new_entry_starts_with_type_id_parent_and_time():
    line = dump_line(MessageEntry(*AT, message=UserMessage("hi", 1)))
    assert line.startswith(
        b'{"type":"message","id":"e1","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":'
    )


def test_model_change_is_written_for_both_families_of_tools():
    entry = StateEntry(*AT, type="model_change", fields={"provider": "a", "modelId": "b/c"})
    expected = record("model_change", "e1", None, 0, provider="a", modelId="b/c", model="a/b/c")
    assert encode_entry(entry) == expected
    entry = StateEntry(*AT, type="model_change", fields={"model": "a/b/c", "role": "smol"})
    assert encode_entry(entry) == expected | {"role": "smol"}


def test_compaction_is_written_with_what_it_has():
    entry = CompactionEntry(
        *AT,
        summary="S",
        first_kept_entry_id=KEEP_NOTHING,
        tokens_before=9,
        tokens_after=3,
        details={"readFiles": []},
        from_extension=True,
        warning="w",
        method="summary",
        reason="manual",
        mid_turn=True,
        model="a/b",
        duration_ms=12,
        usage=Usage(1, 2, cost=Cost(total=0.5)),
    )
    assert encode_entry(entry) == record(
        "compaction",
        "e1",
        None,
        0,
        summary="S",
        firstKeptEntryId=KEEP_NOTHING,
        tokensBefore=9,
        tokensAfter=3,
        details={"readFiles": []},
        fromExtension=True,
        fromHook=True,
        warning="w",
        method="summary",
        reason="manual",
        midTurn=True,
        model="a/b",
        durationMs=12,
        usage={
            "input": 1,
            "output": 2,
            "cacheRead": 0,
            "cacheWrite": 0,
            "totalTokens": 3,
            "cost": {"input": 0.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.5},
        },
    )


def test_plain_compaction_has_only_its_three_fields():
    entry = CompactionEntry(*AT, summary="S", first_kept_entry_id="u1", tokens_before=0)
    assert list(encode_entry(entry))[4:] == ["summary", "firstKeptEntryId", "tokensBefore"]


@pytest.mark.parametrize(
    "entry",
    [
        MessageEntry(*AT, message=BashExecution("ls", "a", 1, cancelled=True, excluded=True, timestamp_ms=3)),
        MessageEntry(*AT, message=FileMention(({"path": "a"},), 4)),
        MessageEntry(*AT, message=CustomMessage("note", "c", timestamp_ms=3)),
        BranchSummaryEntry(
            *AT, from_id="e0", summary="B", details={"abandonedLeafId": "x"}, usage=Usage(1, 1, 0, 0, 2)
        ),
        CustomMessageEntry(
            *AT, custom_type="note", content=(TextBlock("x"), ImageBlock("aGk=", "image/png"))
        ),
        ContextEditEntry(*AT, target_id="e0", replacement=None, reason="useless", pruned_at_ms=4),
        ContextEditEntry(*AT, target_id="e0", replacement=(TextBlock("cut"),), reason="tail"),
        StateEntry(*AT, type="future_kind", fields={"payload": {"keep": [1, 2]}}),
    ],
    ids=lambda entry: entry.type,
)
def test_new_entry_reads_back_as_it_was(entry):
    again = decode_entry(json.loads(dump_line(entry)))
    assert encode_entry(again) == encode_entry(entry)
    assert type(again) is type(entry)


def test_read_entry_is_written_with_unknown_fields_in_place():
    stored = {"customType": "x", "type": "custom_message", "future": [1], "id": "e", "parentId": None}
    stored |= {"timestamp": "t", "content": "c", "display": True}
    assert list(encode_entry(decode_entry(stored)).items()) == list(stored.items())


def test_changed_field_of_a_read_entry_is_the_only_difference():
    from dataclasses import replace

    stored = answer_record("a", None, "hi") | {"future": 1}
    entry = decode_entry(stored)
    assert isinstance(entry, MessageEntry)
    changed = encode_entry(replace(entry, message=replace(entry.message, error_message="late")))
    expected = json.loads(json.dumps(stored))
    expected["message"]["errorMessage"] = "late"
    assert changed == expected


def test_relinked_entry_is_written_with_its_new_parent():
    from dataclasses import replace

    entry = replace(decode_entry(user_record("b", "gone", "x")), parent_id="a")
    assert encode_entry(entry)["parentId"] == "a"


@pytest.mark.parametrize(
    "stored",
    [
        {"id": "e", "message": {"role": "user"}},
        record("message", "e", None),
        record("message", "e", None, message={"content": "no role"}),
        record("message", "e", None, message="text"),
        record("context_edit", "e", None, replacement={"content": "x"}),
        record("context_edit", "e", None, targetId="x", replacement=3),
    ],
    ids=["no type", "no message", "no role", "message is text", "edit without target", "odd replacement"],
)
def test_record_of_odd_shape_becomes_a_state_entry(stored):
    entry = decode_entry(stored)
    assert isinstance(entry, StateEntry)
    assert encode_entry(entry) == stored | encode_entry(entry)
    assert all(encode_entry(entry)[key] == value for key, value in stored.items())


def test_lone_surrogates_are_written_escaped():
    entry = decode_entry(
        json.loads('{"type":"custom","id":"e","parentId":null,"timestamp":"t","data":"\\ud800é"}')
    )
    line = dump_line(entry)
    assert b"\\ud800" in line
    assert "é".encode() in line
    assert json.loads(line)["data"] == "\ud800é"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_json_does_not_have_are_written_as_null(number):
    assert dump_json({"a": [number, 1.5]}) == b'{"a":[null,1.5]}'


def test_big_whole_numbers_stay_exact():
    assert dump_json(json.loads('{"n":9007199254740993123}')) == b'{"n":9007199254740993123}'


def test_header_of_version_one_is_read():
    header = decode_header(
        {"type": "session", "id": "s", "timestamp": "t", "cwd": "/p", "modelId": "m", "branchedFrom": "/old"}
    )
    assert (header.version, header.parent_session) == (1, "/old")
    assert header.extra == {"modelId": "m", "branchedFrom": "/old"}


def test_header_is_written_as_other_tools_read_it():
    header = SessionHeader("s", "t", "/p", parent_session="/x", title="T", extra={"later": 1})
    assert dump_json(encode_header(header)) == (
        b'{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/p","parentSession":"/x","title":"T","later":1}'
    )


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
field_names = st.sampled_from(
    [
        "type",
        "role",
        "content",
        "text",
        "data",
        "mimeType",
        "id",
        "name",
        "arguments",
        "usage",
        "cost",
        "input",
    ]
    + [
        "output",
        "stopReason",
        "timestamp",
        "display",
        "targetId",
        "replacement",
        "summary",
        "retainedTail",
        "message",
    ]
)
kinds = st.sampled_from(
    [
        "message",
        "compaction",
        "branch_summary",
        "custom_message",
        "context_edit",
        "label",
        "model_change",
        "text",
    ]
    + [
        "user",
        "assistant",
        "toolResult",
        "custom",
        "toolCall",
        "thinking",
        "image",
        "fileMention",
        "bashExecution",
    ]
)
odd_objects = st.recursive(
    json_values,
    lambda inner: st.dictionaries(field_names, inner | kinds, max_size=6) | st.lists(inner, max_size=3),
    max_leaves=12,
).filter(lambda value: isinstance(value, dict))


@settings(max_examples=50, deadline=None)
@given(odd_objects, kinds)
def test_any_record_is_decoded_and_written_back_unchanged(obj, kind):
    stored = {"type": kind, "id": "e", "parentId": None, "timestamp": "t"} | obj
    entry = decode_entry(stored)
    assert encode_entry(entry) == stored
    assert json.loads(dump_line(entry)) == json.loads(dump_json(stored))


@settings(max_examples=50, deadline=None)
@given(
    odd_objects,
    st.sampled_from(["user", "assistant", "toolResult", "custom", "bashExecution", "fileMention", "new"]),
)
def test_any_message_is_decoded_and_encoded_without_complaint(obj, role):
    message = decode_message(obj | {"role": role})
    again = decode_message(encode_message(message))
    assert encode_message(again) == encode_message(message)


def test_unknown_role_is_kept_whole():
    message = decode_message(MESSAGES["unknown"])
    assert message == UnknownMessage("system", MESSAGES["unknown"], 6)
