"""The providers' own clients put our tools and results into their requests as we made them. Nothing is sent: each client is
given a transport that keeps what it gets and answers with an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from mcp.types import CallToolResult, ImageContent, TextContent
from playbill.actors import result_for_provider

from .sdk import names
from .test_answers import PNG, b64
from .test_export import SERVERS, projected

Sent = list[dict[str, Any]]


@contextmanager
def kept() -> Iterator[tuple[httpx2.Client, Sent]]:
    sent: Sent = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.content))
        return httpx2.Response(500, json={})

    with httpx2.Client(transport=httpx2.MockTransport(answer)) as client:
        yield client, sent


def openai_body(tools: Any, answer: Any) -> dict[str, Any]:
    import openai

    with kept() as (http, sent):
        client = openai.OpenAI(api_key="none", http_client=http, max_retries=0)
        with pytest.raises(openai.APIStatusError):
            client.chat.completions.create(model="m", messages=[answer], tools=tools)
    return {"tools": sent[0]["tools"], "answer": sent[0]["messages"][0]}


def responses_body(tools: Any, answer: Any) -> dict[str, Any]:
    import openai

    with kept() as (http, sent):
        client = openai.OpenAI(api_key="none", http_client=http, max_retries=0)
        with pytest.raises(openai.APIStatusError):
            client.responses.create(model="m", input=[answer], tools=tools)
    return {"tools": sent[0]["tools"], "answer": sent[0]["input"][0]}


def anthropic_body(tools: Any, answer: Any) -> dict[str, Any]:
    import anthropic

    with kept() as (http, sent):
        client = anthropic.Anthropic(api_key="none", http_client=http, max_retries=0)
        with pytest.raises(anthropic.APIStatusError):
            client.messages.create(
                model="m", max_tokens=9, messages=[{"role": "user", "content": [answer]}], tools=tools
            )
    return {"tools": sent[0]["tools"], "answer": sent[0]["messages"][0]["content"][0]}


def gemini_body(tools: Any, answer: Any) -> dict[str, Any]:
    from google import genai
    from google.genai import errors, types

    with kept() as (http, sent):
        client = genai.Client(api_key="none", http_options=types.HttpOptions(httpx_client=http))
        contents: Any = [{"role": "user", "parts": [answer]}]
        with pytest.raises(errors.ServerError):
            client.models.generate_content(model="m", contents=contents, config={"tools": tools})
    # Of the two spellings of a key, the client writes now the one and now the other.
    return {"tools": camel(sent[0]["tools"]), "answer": camel(sent[0]["contents"][0]["parts"][0])}


_CAMEL = {"parameters_json_schema": "parametersJsonSchema", "inline_data": "inlineData", "mime_type": "mimeType"}


def camel(value: Any) -> Any:
    if isinstance(value, dict):
        return {_CAMEL.get(key, key): camel(each) for key, each in value.items()}
    return list(map(camel, value)) if isinstance(value, list) else value


def bedrock_body(tools: Any, answer: Any) -> dict[str, Any]:
    import botocore.exceptions
    import botocore.session

    sent: Sent = []

    def keep(request: Any, **_: Any) -> Any:
        sent.append(json.loads(request.body))
        raise botocore.exceptions.EndpointConnectionError(endpoint_url="none")

    session = botocore.session.get_session()
    session.set_credentials("none", "none")
    client = session.create_client("bedrock-runtime", region_name="us-east-1")
    client.meta.events.register("before-send.bedrock-runtime.Converse", keep)
    try:
        with pytest.raises(botocore.exceptions.EndpointConnectionError):
            client.converse(modelId="m", messages=[{"role": "user", "content": [answer]}], toolConfig={"tools": tools})
    finally:
        client.close()
    return {"tools": sent[0]["toolConfig"]["tools"], "answer": sent[0]["messages"][0]["content"][0]}


def in_base64(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: in_base64(each) for key, each in value.items()}
    if isinstance(value, list):
        return list(map(in_base64, value))
    return b64(value) if isinstance(value, bytes) else value


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("openai", openai_body),
        ("openai-responses", responses_body),
        ("anthropic", anthropic_body),
        ("gemini", gemini_body),
        ("bedrock", bedrock_body),
    ],
)
def test_a_client_sends_what_was_made(provider: str, body: Callable[[Any, Any], dict[str, Any]]) -> None:
    catalog = projected(SERVERS)
    tools = catalog.for_provider(provider)
    content = [TextContent(text="seen"), ImageContent(data=b64(PNG), mime_type="image/png")]
    result = CallToolResult(content=content, structured_content={"a": [1, None]})
    answer = result_for_provider(result, provider, call_id="call_1", name=catalog.tools[0].wire_name)
    sent = body(tools, answer)
    assert sent["tools"] == tools
    assert names(provider, sent["tools"]) == [tool.wire_name for tool in catalog.tools]
    assert sent["answer"] == in_base64(answer)
