"""The quick call against the session's own: the same request, and of each answer the same result or the same complaint."""

from __future__ import annotations

import copy
import enum
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from mcp.client.session import ClientSession
from mcp_types import (
    LOG_LEVEL_META_KEY,
    CallToolRequest,
    CallToolRequestParams,
    DiscoverResult,
    Icon,
    InitializeResult,
)
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from playbill.actors.edge.wire import quick
from playbill.actors.edge.wire.listing import Tap
from pydantic import ValidationError

TEXT = {"type": "text", "text": "x"}
WHOLE: dict[str, Any] = {"content": [TEXT], "resultType": "complete"}
ASKS: dict[str, Any] = {
    "resultType": "input_required",
    "inputRequests": {"q": {"method": "roots/list", "params": {}}},
    "requestState": "s",
}
ODD: dict[str, list[Any]] = {
    "resultType": [..., "complete", "input_required", "task", None, 1],
    "content": [
        ...,
        [TEXT],
        [],
        "nonsense",
        [{"type": "hologram"}],
        [{"type": "image", "data": "eA==", "mimeType": "i/p"}],
    ],
    "isError": [..., True, "yes", None],
    "structuredContent": [..., {"a": None}, [1], 3, None],
    "inputRequests": [..., ASKS["inputRequests"], {}, {"q": {"method": "nonsense"}}, 7],
    "requestState": [..., "s", 5],
    "ttlMs": [..., -1, -1.5, 10, "soon", True],
    "cacheScope": [..., "public", "nobody"],
    "_meta": [..., {"m": 1}, [], None],
}
SOME = [{}, WHOLE, ASKS, {**WHOLE, "unknown": 1}, {**ASKS, "content": [TEXT]}]
ANSWERS = [
    {name: value for name, value in {**base, key: value, **more}.items() if value is not ...}
    for base in SOME
    for key, values in ODD.items()
    for value in values
    for more in ({}, {"resultType": "input_required"}, {"content": [TEXT]})
]


class Scripted:
    """A dispatcher that notes what it is given and answers with what it is told."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any, dict[str, Any]]] = []
        self.answer: dict[str, Any] = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        self.asked.append((method, json.loads(json.dumps(params)), dict(opts or {})))
        return copy.deepcopy(self.answer)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None:
        await trio.lowlevel.checkpoint()

    async def run(self, on_request: Any, on_notify: Any, intercept: Any = None, *, task_status: Any) -> None:
        task_status.started()
        await trio.sleep_forever()


@asynccontextmanager
async def met(version: str, **more: Any) -> AsyncIterator[tuple[Scripted, Tap, ClientSession]]:
    """A session of that version that has made a request of its own."""
    inner = Scripted()
    tap = Tap(inner, lambda: None)  # type: ignore[arg-type]
    async with ClientSession(dispatcher=tap, **more) as session:
        if version in MODERN_PROTOCOL_VERSIONS:
            session.adopt(
                DiscoverResult.model_validate({"supportedVersions": [version], "capabilities": {"tools": {}}})
            )
        else:
            said = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
            session.adopt(InitializeResult.model_validate(said))
        assert tap.stamp is None
        await session.list_tools()
        assert tap.stamp is not None
        inner.asked.clear()
        yield inner, tap, session


async def slowly(session: ClientSession, arguments: Any, meta: Any = None) -> Any:
    params = CallToolRequestParams(name="t", arguments=arguments, _meta=meta)
    return await session.send_request(CallToolRequest(params=params), quick.RESULT)


def told(error: Exception) -> Any:
    if isinstance(error, ValidationError):
        return [(each["type"], each["loc"], each["msg"]) for each in error.errors()]
    return type(error).__name__, str(error)


@pytest.mark.parametrize("version", KNOWN_PROTOCOL_VERSIONS)
async def test_every_answer_is_judged_as_the_session_judges_it(version: str) -> None:
    kinds = set()
    async with met(version) as (inner, tap, session):
        for inner.answer in ANSWERS:
            outcomes: list[Any] = []
            for way in (slowly(session, {}), quick.call(tap, version, "t", {}, None, None)):
                try:
                    result = await way
                    outcomes.append((type(result).__name__, result.model_dump(mode="json", by_alias=True)))
                except Exception as error:
                    outcomes.append(("refused", told(error)))
            kinds.add(outcomes[0][0])
            assert outcomes[0] == outcomes[1], inner.answer
    modern = version in MODERN_PROTOCOL_VERSIONS
    assert kinds == {"CallToolResult", "refused"} | ({"InputRequiredResult"} if modern else set())


class Colour(enum.Enum):
    RED = "red"


ARGUMENTS: list[dict[str, Any]] = [
    {},
    {"text": "hello", "n": None, "deep": {"l": [1, 2.5, None, {"a": None}]}},
    {"when": datetime(2026, 1, 2, tzinfo=UTC), "set": {1}, "tuple": (1, 2), "bytes": b"abc", "colour": Colour.RED},
    {"icon": Icon(src="https://example.com/i.png")},
    {"big": 10**30, "nan": float("nan")},
    {"unknown": object()},
]
METAS: list[dict[str, Any] | None] = [
    None,
    {},
    {"example.com/trace": "1", "n": None, "deep": {"n": None}},
    {LOG_LEVEL_META_KEY: "error", "io.modelcontextprotocol/protocolVersion": "1"},
]


@pytest.mark.parametrize("version", KNOWN_PROTOCOL_VERSIONS)
async def test_the_request_is_the_one_that_the_session_makes(version: str) -> None:
    async with met(version, log_level="debug") as (inner, tap, session):
        inner.answer = WHOLE
        for arguments, meta in itertools.product(ARGUMENTS, METAS):
            refusals = []
            for way in (slowly(session, arguments, meta), quick.call(tap, version, "t", arguments, meta, None)):
                try:
                    await way
                except ValueError as error:
                    refusals.append(told(error))
            if refusals:
                assert refusals[0] == refusals[1]
                assert "unknown" in arguments
                continue
            (_, theirs, _), (_, ours, opts) = inner.asked
            inner.asked.clear()
            if meta == {}:  # nothing is said by either
                theirs, ours = ({**params, "_meta": params.get("_meta") or {}} for params in (theirs, ours))
            assert theirs == ours
            assert opts == {}


async def test_progress_is_told() -> None:
    async def progress(done: float, total: float | None, message: str | None) -> None:
        await trio.lowlevel.checkpoint()

    async with met("2025-11-25") as (inner, tap, _):
        inner.answer = WHOLE
        await quick.call(tap, "2025-11-25", "t", {}, None, progress)
        assert inner.asked == [("tools/call", {"name": "t", "arguments": {}}, {"on_progress": progress})]
