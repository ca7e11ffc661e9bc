"""Any result that the SDK can parse becomes something that each provider's SDK takes, within the limit, the same each time."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.types import CallToolResult
from playbill.actors import result_for_provider

from .sdk import PROVIDERS, check_answer
from .test_answers import JPEG, PDF, PNG, said

steady = settings(derandomize=True, deadline=None, max_examples=150, database=None)

texts = st.text(max_size=40) | st.sampled_from(["", " ", "\u0301", "a\u200d", "x" * 300, '{"a":1}', "null", "[]"])
mimes = (
    st.sampled_from(["image/png", "IMAGE/JPG", "application/pdf", "text/plain", "a/b+json", "audio/ogg", "", "x"])
    | texts
)
payloads = st.sampled_from([PNG, JPEG, PDF, b"", b"PK", b"\xff", b"text"]) | st.binary(max_size=30)
data = payloads.map(lambda raw: b64encode(raw).decode()) | texts
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
annotations = st.none() | st.fixed_dictionaries({"priority": st.floats(0, 1)})


def block(kind: str, **keys: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind), **keys})


inner_text = st.fixed_dictionaries({"uri": texts, "text": texts}, optional={"mimeType": mimes})
inner_blob = st.fixed_dictionaries({"uri": texts, "blob": data}, optional={"mimeType": mimes})
blocks = st.one_of(
    block("text", text=texts, annotations=annotations),
    block("image", data=data, mimeType=mimes),
    block("audio", data=data, mimeType=mimes),
    block("resource", resource=inner_text | inner_blob),
    block(
        "resource_link", name=texts, uri=texts, size=st.none() | st.integers(-1, 10**20), description=st.none() | texts
    ),
)
results = st.fixed_dictionaries(
    {"content": st.lists(blocks, max_size=5)},
    optional={
        "structuredContent": values,
        "isError": st.booleans(),
        "_meta": st.dictionaries(texts, texts, max_size=2),
    },
)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_any_result_becomes_what_the_sdk_takes(provider: str) -> None:
    @steady
    @given(results, st.sampled_from([0, 50, 200, 100_000]), st.booleans())
    def check(given_result: dict[str, Any], limit: int, media: bool) -> None:
        parsed = CallToolResult.model_validate(given_result)
        before = parsed.model_dump()
        keys: dict[str, Any] = {"call_id": "c", "name": "n", "max_chars": limit, "media": media}
        made = result_for_provider(parsed, provider, **keys)
        check_answer(provider, made)
        assert repr(parsed.model_dump()) == repr(before)
        assert repr(result_for_provider(parsed, provider, **keys)) == repr(made)
        if provider != "bedrock":
            json.dumps(made, allow_nan=False).encode()
        if provider in ("openai", "openai-responses"):
            error = len("[The tool reported an error.]\n") if parsed.is_error else 0
            most = max(limit, len("[… 1,000 of 1,000 characters cut]"), len("(no output)"))
            parts = len(parsed.content) + 2
            assert len(said(provider, made)) <= most + error + parts

    check()
