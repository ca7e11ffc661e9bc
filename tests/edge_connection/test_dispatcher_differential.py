"""`PipeDispatcher` against the SDK's own dispatcher: the same `ClientSession`, peer and pipes, and the same outcome.

To be run anew with each minor release of the SDK, before `TESTED_SDK` is raised.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.client.session import ClientSession
from mcp.client.subscriptions import listen
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, DiscoverResult, InitializeResult
from playbill.actors.edge.wire.bridge import SdkPipes
from playbill.actors.edge.wire.dispatcher import PipeDispatcher
from pydantic import ValidationError

from .peer import Peer, open_peer

INITIALIZED = InitializeResult.model_validate(
    {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
)
DISCOVERED = DiscoverResult.model_validate(
    {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}}
)
KINDS = ["native", "sdk"]
logging.getLogger("client").setLevel(logging.CRITICAL)  # a traceback for each notification that is none
Script = Callable[[Peer, ClientSession, list[Any]], Any]


@asynccontextmanager
async def session_over(peer: Peer, kind: str, seen: list[Any], modern: bool = False) -> AsyncIterator[ClientSession]:
    async def on_message(message: Any) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(type(message).__name__)

    dispatcher: Any
    if kind == "native":
        dispatcher = PipeDispatcher(peer.client_receive, peer.client_send)
    else:
        dispatcher = SdkPipes(peer.client_receive, peer.client_send, max_line=10**8).dispatcher
    with trio.fail_after(20):
        async with ClientSession(dispatcher=dispatcher, message_handler=on_message) as session:
            session.adopt(DISCOVERED if modern else INITIALIZED)
            yield session


def outcome_of(error: BaseException) -> Any:
    if isinstance(error, MCPError):
        return ("MCPError", error.code, error.message, error.data)
    if isinstance(error, ValidationError):
        return ("ValidationError", [(e["type"], e["loc"]) for e in error.errors()])
    return (type(error).__name__, str(error))


async def run_both(script: Script, modern: bool = False) -> list[Any]:
    """What the script notes, with each of the two; asserts that it is the same, and returns it."""
    notes: dict[str, list[Any]] = {}
    for kind in KINDS:
        seen: list[Any] = []
        async with open_peer() as peer, session_over(peer, kind, seen, modern) as session:
            await script(peer, session, seen)
        notes[kind] = seen
    assert notes["native"] == notes["sdk"]
    return notes["native"]


async def call(session: ClientSession, seen: list[Any], done: trio.Event | None = None, **more: Any) -> None:
    try:
        result = await session.call_tool("t", {"a": 1}, **more)
        seen.append(result.model_dump(mode="json", by_alias=True) if isinstance(result, CallToolResult) else result)
    except Exception as error:
        seen.append(outcome_of(error))
    if done is not None:
        done.set()


async def listed(peer: Peer, request: dict[str, Any]) -> None:
    """Answer the hidden listing of ``ClientSession.call_tool``."""
    assert request["method"] == "tools/list"
    await peer.reply(request, tools=[{"name": "t", "inputSchema": {"type": "object"}}])


TEXT = {"content": [{"type": "text", "text": "x"}]}
ANSWERS: list[dict[str, Any]] = [
    {"result": TEXT},
    {"result": {**TEXT, "isError": True}},
    {"result": {**TEXT, "structuredContent": {"a": [1, None]}, "_meta": {"m": 1}, "unknown": 1}},
    {"result": {"content": "nonsense"}},
    {"result": {}},
    {"error": {"code": -32602, "message": "bad"}},
    {"error": {"code": -32000, "message": "Connection closed"}},
    {"error": {"code": 1, "message": "m", "data": {"d": [1]}}},
    {"error": {"code": 1, "message": "m", "data": None}, "extra": 1},
]


@pytest.mark.parametrize("answer", ANSWERS, ids=[json.dumps(answer)[:50] for answer in ANSWERS])
async def test_the_same_outcome_of_a_call(answer: dict[str, Any]) -> None:
    async def script(peer: Peer, session: ClientSession, seen: list[Any]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, session, seen)
            request = await peer.next()
            seen.append(request)
            await peer.send(id=request["id"], **answer)
            if (
                "result" in answer
                and answer["result"].get("content") == TEXT["content"]
                and not answer["result"].get("isError")
            ):
                await listed(peer, await peer.next())

    assert len(await run_both(script)) == 2


JUNK = [
    b"no json",
    b"[]",
    b"null",
    b"{}",
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"1.0","id":1,"result":{}}',
    b'{"id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":true,"result":{}}',
    b'{"jsonrpc":"2.0","id":1.0,"result":{}}',
    b'{"jsonrpc":"2.0","id":null,"result":{}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}',
    b'{"jsonrpc":"2.0","id":77,"result":{}}',
    b'{"jsonrpc":"2.0","method":"notifications/x"}',
    b'{"jsonrpc":"2.0","method":null}',
    b'{"jsonrpc":"2.0","method":"notifications/message","params":[1]}',
    b'{"jsonrpc":"2.0","method":"notifications/message"}',
    b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"\xff"}}',
    b"\xff\xff",
    b"   ",
    b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":NaN}}',
    b'{"jsonrpc":"2.0","id":null,"method":"notifications/message","params":{"level":"info","data":1}}',
    b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}',
]


@given(st.lists(st.sampled_from(JUNK), max_size=12))
@settings(max_examples=25, deadline=None)
def test_junk_between_request_and_response_changes_nothing(junk: list[bytes]) -> None:
    async def script(peer: Peer, session: ClientSession, seen: list[Any]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, session, seen)
            request = await peer.next()
            await peer.raw(b"".join(line + b"\n" for line in junk))
            await peer.reply(request, **TEXT, isError=True)
        # Handlers run in tasks of their own in the SDK: let them, and compare what there was, not its order.
        await trio.testing.wait_all_tasks_blocked()
        seen.sort(key=str)

    trio.run(run_both, script)


async def test_the_same_answers_to_the_servers_requests() -> None:
    requests: list[dict[str, Any]] = [
        {"id": 1, "method": "ping"},
        {"id": "two", "method": "ping", "params": {}},
        {"id": 3, "method": "no/such"},
        {"id": 4, "method": "roots/list"},
        {"id": 5, "method": "sampling/createMessage", "params": {"nonsense": 1}},
        {
            "id": 6,
            "method": "elicitation/create",
            "params": {"message": "m", "requestedSchema": {"type": "object", "properties": {}}},
        },
    ]

    async def script(peer: Peer, session: ClientSession, seen: list[Any]) -> None:
        for request in requests:
            await peer.send(**request)
            seen.append(await peer.next())

    notes = await run_both(script)
    assert notes[0] == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert [note.get("error", {}).get("code") for note in notes[2:]] == [-32601, -32600, -32602, -32600]


async def test_the_same_progress_for_a_call() -> None:
    async def script(peer: Peer, session: ClientSession, seen: list[Any]) -> None:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            await trio.lowlevel.checkpoint()
            seen.append((progress, total, message))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: call(session, seen, progress_callback=on_progress))
            request = await peer.next()
            seen.append(request)
            token = request["params"]["_meta"]["progressToken"]
            for step, total in ((1, 3), (2.5, None), (True, 1), ("x", 1)):
                await peer.send(
                    method="notifications/progress", params={"progressToken": token, "progress": step, "total": total}
                )
                await trio.testing.wait_all_tasks_blocked(0.01)
            await peer.reply(request, **TEXT, isError=True)
        # The session sees each progress notification as well; whether before or after the callback is nobody's business.
        seen.sort(key=str)

    notes = await run_both(script)
    assert [note for note in notes if isinstance(note, tuple)] == [(1.0, 3.0, None), (2.5, None, None)]


async def test_the_same_words_to_the_server_when_a_call_is_cancelled() -> None:
    async def script(peer: Peer, session: ClientSession, seen: list[Any]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, session, seen)
            request = await peer.next()
            nursery.cancel_scope.cancel()
        told = await peer.next()
        seen.append((request["id"], told["method"], told["params"]["requestId"]))

    await run_both(script)


async def test_the_same_end() -> None:
    async def script(peer: Peer, session: ClientSession, seen: list[Any]) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(call, session, seen)
            for _ in range(3):
                await peer.next()
            await peer.stop_writing()
        await call(session, seen)

    assert set(await run_both(script)) == {("MCPError", -32000, "Connection closed", None)}


async def test_the_same_handshakes() -> None:
    async def script(peer: Peer, session: ClientSession, seen: list[Any]) -> None:
        async def initialize() -> None:
            fresh = await session.initialize()
            seen.append(fresh.protocol_version)

        async with trio.open_nursery() as nursery:
            session._initialize_result = None
            nursery.start_soon(initialize)
            request = await peer.next()
            seen.append(request)
            await peer.reply(request, **INITIALIZED.model_dump(mode="json", by_alias=True, exclude_none=True))
            seen.append(await peer.next())

    notes = await run_both(script)
    assert notes[-1] == "2025-11-25" or notes[-2] == "2025-11-25"


async def test_the_same_subscription() -> None:
    meta = "io.modelcontextprotocol/subscriptionId"

    async def script(peer: Peer, session: ClientSession, seen: list[Any]) -> None:
        async def follow() -> None:
            async with listen(session, tools_list_changed=True) as subscription:
                seen.append("acknowledged")
                async for event in subscription:
                    seen.append(type(event).__name__)
            seen.append("ended")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            request = await peer.next()
            stamp = {"_meta": {meta: request["id"]}}
            await peer.send(
                method="notifications/subscriptions/acknowledged",
                params={**stamp, "notifications": {"toolsListChanged": True}},
            )
            await trio.testing.wait_all_tasks_blocked(0.01)
            await peer.send(method="notifications/tools/list_changed", params=stamp)
            await trio.testing.wait_all_tasks_blocked(0.01)
            await peer.reply(request, resultType="complete")

    assert (await run_both(script, modern=True)).count("ToolsListChanged") == 1


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), NESTED, max_size=4))
@settings(max_examples=40, deadline=None)
def test_the_same_bytes_for_the_same_arguments(arguments: dict[str, Any]) -> None:
    async def script(peer: Peer, session: ClientSession, seen: list[Any]) -> None:
        async with trio.open_nursery() as nursery:

            async def one() -> None:
                try:
                    await session.call_tool("t", arguments)
                except Exception as error:
                    seen.append(type(error).__name__)

            nursery.start_soon(one)
            request = await peer.next()
            seen.append(repr(request))
            await peer.send(id=request["id"], error={"code": 1, "message": "m"})

    trio.run(run_both, script)


@given(NESTED)
@settings(max_examples=40, deadline=None)
def test_the_same_value_of_the_same_bytes(value: Any) -> None:
    line = json.dumps(
        {"content": [], "isError": True, "structuredContent": {"v": value}}
    )  # NaN and surrogates included

    async def script(peer: Peer, session: ClientSession, seen: list[Any]) -> None:
        async with trio.open_nursery() as nursery:

            async def one() -> None:
                try:
                    result = await session.call_tool("t", {})
                    seen.append(repr(result.structured_content))
                except Exception as error:
                    seen.append(type(error).__name__)

            nursery.start_soon(one)
            request = await peer.next()
            await peer.raw(b'{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (request["id"], line.encode()))

    trio.run(run_both, script)
