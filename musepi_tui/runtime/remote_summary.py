"""Summaries from an endpoint of the person's own, ``compaction.remoteEndpoint`` (compaction 6.8)."""

import asyncio
import json
import logging
from typing import Any
from urllib.parse import urlsplit

from musepi_tui.base.address import address_of, is_web_address
from musepi_tui.base.errors import ErrorKind, MaintenanceError, ProviderError
from musepi_tui.base.http import HttpResponse, check_plain_http, current_policy, shared_client
from musepi_tui.base.resources import read_prompt
from musepi_tui.providers.classify import classify_http
from musepi_tui.runtime.candidates import Candidate
from musepi_tui.runtime.gateway import ModelGateway
from musepi_tui.session.fields import as_list, as_object, as_text

TIMEOUT_S = 180.0
"""Seconds for everything, the body included (compaction 6.8)."""

ANSWER_BYTES = 4 * 1024 * 1024
LOGGED_CHARS = 4096
_LOG = logging.getLogger("musepi.maintenance")


async def ask_endpoint(candidate: Candidate, gateway: ModelGateway, prompt: str) -> str:
    """The summary the endpoint gives for ``prompt``; may be blank.

    Raises ``ProviderError`` when it cannot be reached or refuses, ``MaintenanceError`` for an answer without
    a summary.
    """
    endpoint = candidate.endpoint or ""
    _check_address(endpoint)
    is_chat = urlsplit(endpoint).path.rstrip("/").endswith("/chat/completions")
    body = _chat_body(candidate, prompt) if is_chat else _plain_body(prompt)
    headers = {"content-type": "application/json", **_authorization(endpoint, gateway)}
    try:
        async with (
            asyncio.timeout(TIMEOUT_S),
            shared_client().post_stream(endpoint, headers, json.dumps(body).encode()) as response,
        ):
            data = await response.read_limited(ANSWER_BYTES)
    except TimeoutError as error:
        failure = ProviderError(
            f"compaction.remoteEndpoint gave no summary within {TIMEOUT_S:g} s", kind=ErrorKind.TRANSPORT
        )
        failure.cause = "timeout"
        raise failure from error
    _refuse_failure(response, data)
    return _summary_in(data, is_chat=is_chat)


def _check_address(endpoint: str) -> None:
    """Refuses what the settings file would not let through, in words about this setting."""
    if is_web_address(endpoint):
        return
    error = ProviderError(
        f"compaction.remoteEndpoint is {endpoint[:300]!r}, which is no usable address: set it to http(s)://host…",
        kind=ErrorKind.INVALID_REQUEST,
    )
    error.cause = "address"
    raise error


def _chat_body(candidate: Candidate, prompt: str) -> dict[str, Any]:
    system = {"role": "system", "content": read_prompt("summarization-system")}
    user = {"role": "user", "content": prompt}
    return {"model": candidate.model.id, "messages": [system, user], "stream": False}


def _plain_body(prompt: str) -> dict[str, Any]:
    return {"systemPrompt": read_prompt("summarization-system"), "prompt": prompt}


def _authorization(endpoint: str, gateway: ModelGateway) -> dict[str, str]:
    """The key of a provider that lives at the endpoint's address; a key goes nowhere else (SAF-112)."""
    address = address_of(endpoint)
    for model in gateway.available():
        if address_of(model.base_url) == address:
            key = gateway.registry.credentials(model).key
            if key:
                check_plain_http(endpoint, current_policy())
                return {"authorization": f"Bearer {key}"}
    return {}


def _refuse_failure(response: HttpResponse, data: bytes) -> None:
    if 200 <= response.status < 300:
        return
    _LOG.warning(
        "compaction.remoteEndpoint answered %d: %s",
        response.status,
        data.decode("utf-8", "replace")[:LOGGED_CHARS],
    )
    raise classify_http(response.status, response.headers, data)


def _summary_in(data: bytes, *, is_chat: bool) -> str:
    try:
        answer = as_object(json.loads(data)) or {}
    except ValueError as error:
        raise MaintenanceError(
            "compaction.remoteEndpoint answered with no JSON; check its address, or unset it."
        ) from error
    found = _chat_text(answer) if is_chat else as_text(answer.get("summary"))
    if found is None:
        wanted = "choices[0].message.content" if is_chat else "summary"
        raise MaintenanceError(
            f"compaction.remoteEndpoint answered without {wanted}; check its address, or unset it."
        )
    return found


def _chat_text(answer: dict[str, Any]) -> str | None:
    """The content of the first choice: a text, or the texts of its parts joined."""
    choice = next(iter(as_list(answer.get("choices")) or ()), None)
    message = as_object((as_object(choice) or {}).get("message")) or {}
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = as_list(content)
    if parts is None:
        return None
    return "".join(as_text((as_object(part) or {}).get("text")) or "" for part in parts)
