"""Dividers, errors and notices: entries turned into the sentences a person reads."""

from musepi_tui.session.entries import BranchSummaryEntry, CompactionEntry, StateEntry
from musepi_tui.session.messages import AssistantMessage, Content, ImageBlock, blocks_of
from musepi_tui.session.passes import NO_SUMMARY, handoff_text, pass_facts, split_files, token_line
from musepi_tui.tui.transcript.blocks import DividerBlock, ErrorBlock, NoticeBlock


def compaction_divider(entry: CompactionEntry, warning: str | None = None) -> DividerBlock:
    """The divider of a compaction (TUI-2.45). ``warning`` was found after the entry had been written."""
    summary, files = split_files(entry.summary)
    return DividerBlock(
        symbol="camera",
        label="compacted",
        heading=token_line(entry.tokens_before, entry.tokens_after),
        facts=pass_facts(entry),
        warning=warning or entry.warning,
        body=summary or NO_SUMMARY,
        files=files,
    )


def branch_divider(entry: BranchSummaryEntry) -> DividerBlock:
    """The divider where the conversation came back from another branch."""
    summary, files = split_files(entry.summary)
    return DividerBlock("branch", "branch", "Branch summary", summary, files=files)


def handoff_divider(content: Content) -> DividerBlock:
    """The divider of a handoff document, shown without its wrapper."""
    document, files = split_files(handoff_text(content))
    return DividerBlock("handoff", "handed off", "Handoff", document, files=files)


def error_block(message: AssistantMessage) -> ErrorBlock:
    """A failed answer: the first line of its message as cause, then what helps."""
    raw = (message.error_message or "").strip()
    first, _, rest = raw.partition("\n")
    return ErrorBlock(
        first.strip() or "The request failed.",
        _remedy(message.error_status, raw),
        raw if rest else None,
    )


def length_notice(message: AssistantMessage) -> NoticeBlock:
    """What to say under an answer that reached the output limit."""
    return NoticeBlock("warning", f"The answer was cut off at the output limit of {message.model}.")


def state_notice(entry: StateEntry) -> NoticeBlock | None:
    """The notice of a model or level change; None for entries that are bookkeeping only (TUI-2.8)."""
    fields = entry.fields
    match entry.type:
        case "model_change":
            model = fields.get("modelId") and f"{fields.get('provider')}/{fields.get('modelId')}"
            role = fields.get("role")
            if role == "promoted":
                return NoticeBlock("info", f"Switched to {model or 'another model'} for a larger window")
            text = f"Model: {model or fields.get('model') or 'unknown'}"
            return NoticeBlock("info", f"{text} ({role})" if role and role != "default" else text)
        case "thinking_level_change":
            return NoticeBlock("info", f"Thinking: {fields.get('thinkingLevel') or 'off'}")
        case _:
            return None


def image_captions(content: Content) -> tuple[str, ...]:
    """``[image 1 · png · 120KB]`` for each image of a message."""
    images = [block for block in blocks_of(content) if isinstance(block, ImageBlock)]
    return tuple(_caption(image, number if len(images) > 1 else 0) for number, image in enumerate(images, 1))


def _caption(image: ImageBlock, number: int) -> str:
    kind = image.mime_type.rpartition("/")[2] or "unknown"
    parts = [f"image {number}" if number else "image", kind]
    if not image.data.startswith("blob:"):
        parts.append(f"{max(1, len(image.data) * 3 // 4 // 1024)}KB")
    return f"[{' · '.join(parts)}]"


def _remedy(status: int | None, raw: str) -> str | None:
    lowered = raw.lower()
    if any(word in lowered for word in ("/model", "/login", "/compact", "api-key", "_api_key")):
        return None  # the message names its remedy itself
    if status in (401, 403):
        return "Check the API key of this provider, or choose another model with /model."
    if status == 404:
        return "Choose another model with /model."
    if status == 413 or "context" in lowered and ("length" in lowered or "window" in lowered):
        return "Make room with /compact, or choose a model with a larger window with /model."
    if status == 429:
        return "Wait a little and send the message again, or choose another model with /model."
    return "Send the message again, or choose another model with /model."
