"""`PipeDispatcher` against a scripted peer over real pipes. No clocks: what must have happened is waited for."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, REQUEST_TIMEOUT
from playbill.actors.edge.dispatcher import MAX_INBOUND, MAX_NOTICES, PipeDispatcher
from playbill.actors.edge.rpc import MAX_PROGRESS_BUSY, ConnectionClosed

from .peer import Peer, open_peer


class Handlers:
    """What a session would be."""

    def __init__(self) -> None:
        self.notified: list[tuple[str, Any]] = []
        self.intercepted: list[str] = []
        self.gate: trio.Event | None = None
        self.handling = 0

    async def on_request(self, context: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        self.handling += 1
        try:
            if self.gate is not None:
                await self.gate.wait()
            if method == "fail":
                raise MCPError(code=-5, message="no")
            if method == "crash":
                raise LookupError("what")
            if method == "unwritable":
                return {"it": object()}
            if method == "progress":
                await context.progress(1, 2, "half")
            return {"method": method, "params": params}
        finally:
            self.handling -= 1

    async def on_notify(self, context: Any, method: str, params: Mapping[str, Any] | None) -> None:
        if method == "crash":
            raise LookupError("what")
        if self.gate is not None:
            await self.gate.wait()
        self.notified.append((method, params))

    def intercept(self, method: str, params: Mapping[str, Any] | None) -> bool:
        self.intercepted.append(method)
        return method == "eat me"


@asynccontextmanager
async def started(peer: Peer, handlers: Handlers | None = None, **settings: Any) -> AsyncIterator[PipeDispatcher]:
    handlers = handlers or Handlers()
    dispatcher = PipeDispatcher(peer.client_receive, peer.client_send, **settings)
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            await nursery.start(dispatcher.run, handlers.on_request, handlers.on_notify, handlers.intercept)
            yield dispatcher
            dispatcher.shut()


class Asked:
    """A request in a task of its own, and its outcome."""

    def __init__(self, nursery: trio.Nursery, dispatcher: PipeDispatcher, method: str = "m", **opts: Any) -> None:
        self.result: Any = None
        self.error: Exception | None = None
        self.done = trio.Event()
        self.scope = trio.CancelScope()
        nursery.start_soon(self._ask, dispatcher, method, opts)

    async def _ask(self, dispatcher: PipeDispatcher, method: str, opts: Any) -> None:
        with self.scope:
            try:
                self.result = await dispatcher.send_raw_request(method, None, opts)
            except Exception as error:
                self.error = error
        self.done.set()


async def test_a_request_gets_its_own_response_in_any_order() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        asked = [Asked(nursery, dispatcher, f"m{n}") for n in range(5)]
        seen = [await peer.next() for _ in asked]
        assert sorted(message["method"] for message in seen) == [f"m{n}" for n in range(5)]
        for message in reversed(seen):
            await peer.reply(message, was=message["method"])
        for n, one in enumerate(asked):
            await one.done.wait()
            assert one.result == {"was": f"m{n}"}


async def test_params_are_left_out_when_there_are_none() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        one = Asked(nursery, dispatcher)
        message = await peer.next()
        assert message == {"jsonrpc": "2.0", "id": 1, "method": "m"}
        await peer.reply(message)
        await one.done.wait()
        await dispatcher.notify("n", None)
        assert await peer.next() == {"jsonrpc": "2.0", "method": "n"}


@pytest.mark.parametrize(("sent", "answered"), [(None, "1"), ("7", 7), ("7", "7"), ("listen-1", "listen-1")])
async def test_ids_match_as_string_or_number(sent: Any, answered: Any) -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        one = Asked(nursery, dispatcher, **({} if sent is None else {"request_id": sent}))
        message = await peer.next()
        assert message["id"] == (1 if sent is None else sent)
        await peer.send(id=answered, result={"ok": 1})
        await one.done.wait()
        assert one.result == {"ok": 1}


async def test_an_id_in_flight_is_refused_to_a_caller_and_skipped_by_the_counter() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        Asked(nursery, dispatcher, request_id="1")
        first = await peer.next()
        again = Asked(nursery, dispatcher, request_id=1)
        await again.done.wait()
        assert isinstance(again.error, ValueError)
        Asked(nursery, dispatcher)
        second = await peer.next()
        assert (first["id"], second["id"]) == ("1", 2)
        for message in (first, second):
            await peer.reply(message)


async def test_unknown_late_and_boolean_ids_are_dropped() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        one = Asked(nursery, dispatcher)
        message = await peer.next()
        for stray in (99, "x", True, None, 1.5, [1]):
            await peer.send(id=stray, result={"stray": True})
        await peer.send(id=None, error={"code": -32700, "message": "parse error"})
        await peer.reply(message, right=True)
        await peer.reply(message, twice=True)
        await one.done.wait()
        assert one.result == {"right": True}


async def test_an_error_response_is_raised_with_its_data() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        one = Asked(nursery, dispatcher)
        message = await peer.next()
        await peer.send(id=message["id"], error={"code": -32000, "message": "Connection closed", "data": {"a": 1}})
        await one.done.wait()
        assert isinstance(one.error, MCPError)
        assert not isinstance(one.error, ConnectionClosed)
        assert (one.error.code, one.error.message, one.error.data) == (-32000, "Connection closed", {"a": 1})


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"result": None}, "its result is null, not an object"),
        ({"result": [1]}, "its result is a list, not an object"),
        ({"error": "boom"}, "invalid error response: boom"),
        ({"error": {"code": "x"}}, 'invalid error response: {"code":"x"}'),
        ({"error": None}, "invalid error response: null"),
    ],
)
async def test_a_response_that_is_none_fails_its_call(answer: dict[str, Any], text: str) -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        one = Asked(nursery, dispatcher)
        message = await peer.next()
        await peer.send(id=message["id"], **answer)
        await one.done.wait()
        assert isinstance(one.error, MCPError)
        assert one.error.code == INTERNAL_ERROR
        assert text in one.error.message


GARBAGE = [b"log line", b"[]", b"{}", b'{"jsonrpc": "1.0", "id": 1, "result": {}}', b'{"jsonrpc": "2.0"}', b"{", b"\xff\xfe",
           b'{"jsonrpc": "2.0", "method": 5}', b'{"jsonrpc": "2.0", "method": "m", "params": [1]}', b'"x"', b"nul"]  # fmt: skip


async def test_garbage_is_skipped_counted_and_remembered() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        one = Asked(nursery, dispatcher)
        message = await peer.next()
        await peer.raw(b"\n".join(GARBAGE) + b"\n\n   \r\n")
        await peer.reply(message, right=True)
        await one.done.wait()
        assert one.result == {"right": True}
        assert dispatcher.garbage == len(GARBAGE)
        assert dispatcher.last_garbage == "nul"


async def test_invalid_utf8_is_replaced_and_the_session_lives() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        one = Asked(nursery, dispatcher)
        message = await peer.next()
        await peer.raw(b'{"jsonrpc": "2.0", "id": %d, "result": {"t": "caf\xe9"}}\n' % message["id"])
        await one.done.wait()
        assert one.result == {"t": "caf\N{REPLACEMENT CHARACTER}"}


@pytest.mark.parametrize(
    ("line", "fails"),
    [
        (b'{"jsonrpc": "2.0", "id": 1, "resu', True),
        (b'{"id":"1","result":{"a":' + b"[" * 1000, True),
        (b'{"jsonrpc": "2.0", "id": 1, "error": {"code"', True),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "pi', False),
        (b'{"id": 1, "message": "a log line', False),
        (b'{"jsonrpc": "2.0", "id": 3, "resu', False),
    ],
)
async def test_a_mangled_response_fails_its_call_only_when_it_is_known_to_be_one(line: bytes, fails: bool) -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        one, other = Asked(nursery, dispatcher, request_id=1), Asked(nursery, dispatcher, request_id=2)
        for _ in range(2):
            await peer.next()
        await peer.raw(line + b"\n")
        await peer.reply({"id": 2}, right=True)
        await other.done.wait()
        assert dispatcher.garbage == 1
        assert one.done.is_set() == fails
        if not fails:
            await peer.reply({"id": 1})
        await one.done.wait()
        assert other.result == {"right": True}
        assert ("not valid JSON" in str(one.error)) == fails


def _nested(depth: int) -> bytes:
    return b'{"a": ' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize(
    ("result", "read"),
    [
        (rb'{"t": "a\ud800b", "\udfff": 1}', {"t": "a\ufffdb", "\ufffd": 1}),
        (rb'{"t": "\ud800\ud83d\ude00 \\ud800 \u00e9\uD83D"}', {"t": "\ufffd\U0001f600 \\ud800 \u00e9\ufffd"}),
        (b'{"t": 1' + b"0" * 5000 + b"}", {"t": math.inf}),
        (_nested(400), json.loads(_nested(400))),
    ],
    ids=["half a character", "among whole ones", "more digits than Python takes", "deep"],
)
async def test_json_that_the_fast_parser_refuses_is_read(result: bytes, read: Any) -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        one = Asked(nursery, dispatcher)
        message = await peer.next()
        await peer.raw(b'{"jsonrpc": "2.0", "id": %d, "result": ' % message["id"] + result + b"}\n")
        await one.done.wait()
        assert one.result == read


@pytest.mark.parametrize(("kind", "depth"), [("result", 100_000), ("error", 100_000), ("error", 300)])
async def test_what_nests_too_deep_fails_its_call_only(kind: str, depth: int) -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        one, other = Asked(nursery, dispatcher, request_id=1), Asked(nursery, dispatcher, request_id=2)
        for _ in range(2):
            await peer.next()
        await peer.raw(b'{"jsonrpc": "2.0", "id": 1, "%s": ' % kind.encode() + _nested(depth) + b"}\n")
        await peer.reply({"id": 2}, right=True)
        await one.done.wait()
        await other.done.wait()
        assert isinstance(one.error, MCPError)
        assert other.result == {"right": True}


async def test_a_message_that_makes_something_raise_is_dropped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    def on_list_changed() -> None:
        raise LookupError("what")

    async with (
        open_peer() as peer,
        started(peer, on_list_changed=on_list_changed) as dispatcher,
        trio.open_nursery() as nursery,
    ):
        one = Asked(nursery, dispatcher)
        message = await peer.next()
        await peer.send(method="notifications/tools/list_changed")
        await peer.reply(message, right=True)
        await one.done.wait()
        assert one.result == {"right": True}
        assert "LookupError" in caplog.text


async def test_a_response_over_the_cap_fails_its_call_and_no_other() -> None:
    async with open_peer() as peer, started(peer, max_line=1000) as dispatcher, trio.open_nursery() as nursery:
        big = Asked(nursery, dispatcher)
        message = await peer.next()
        small = Asked(nursery, dispatcher)
        second = await peer.next()
        await peer.reply(message, text="x" * 5000)
        await peer.reply(second, right=True)
        await big.done.wait()
        await small.done.wait()
        assert "longer than 1000 bytes" in str(big.error)
        assert small.result == {"right": True}
        assert dispatcher.overlong == 1


async def test_end_of_stream_settles_every_pending_call_in_one_step() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        asked = [Asked(nursery, dispatcher) for _ in range(20)]
        for _ in asked:
            await peer.next()
        await peer.stop_writing()
        await dispatcher.closed.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert all(isinstance(one.error, ConnectionClosed) for one in asked)
        with pytest.raises(ConnectionClosed):
            await dispatcher.send_raw_request("m", None)
        await dispatcher.notify("n", None)


async def test_answers_written_before_the_end_still_count() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        one, lost = Asked(nursery, dispatcher), Asked(nursery, dispatcher)
        message = await peer.next()
        await peer.next()
        await peer.reply(message, right=True)
        await peer.stop_writing()
        await one.done.wait()
        await lost.done.wait()
        assert {True, None} == {(one.result or {}).get("right"), (lost.result or {}).get("right")}


async def test_shut_settles_although_nothing_ended() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        one = Asked(nursery, dispatcher)
        await peer.next()
        dispatcher.shut()
        await one.done.wait()
        assert isinstance(one.error, ConnectionClosed)


async def test_a_server_that_closed_its_stdin_is_of_no_use() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        await peer.stop_reading()
        one = Asked(nursery, dispatcher)
        await dispatcher.failed.wait()
        assert not dispatcher.closed.is_set()  # what it wrote before may still be read
        with pytest.raises(ConnectionClosed):
            await dispatcher.send_raw_request("m", None)
        dispatcher.shut()
        await one.done.wait()
        assert isinstance(one.error, ConnectionClosed)


async def test_cancelling_a_call_tells_the_server_without_waiting() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        one = Asked(nursery, dispatcher)
        message = await peer.next()
        one.scope.cancel()
        told = await peer.next()
        assert told["method"] == "notifications/cancelled"
        assert told["params"]["requestId"] == message["id"]
        await peer.reply(message, late=True)
        after = Asked(nursery, dispatcher)
        await peer.reply(await peer.next(), right=True)
        await after.done.wait()
        assert after.result == {"right": True}


async def test_what_may_not_be_cancelled_is_not() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        one = Asked(nursery, dispatcher, "initialize", cancel_on_abandon=False)
        await peer.next()
        one.scope.cancel()
        await one.done.wait()
        await dispatcher.notify("next", None)
        assert (await peer.next())["method"] == "next"


async def test_a_call_that_was_cancelled_before_it_began_sends_nothing() -> None:
    async with open_peer() as peer, started(peer) as dispatcher:
        with trio.CancelScope() as scope:
            scope.cancel()
            await dispatcher.send_raw_request("m", None)
        assert scope.cancelled_caught
        await dispatcher.notify("next", None)
        assert (await peer.next())["method"] == "next"


async def test_a_timeout_covers_the_answer_and_tells_the_server(autojump_clock: trio.testing.MockClock) -> None:
    async with open_peer() as peer, started(peer) as dispatcher:
        with pytest.raises(MCPError) as caught:
            await dispatcher.send_raw_request("m", None, {"timeout": 5})
        assert caught.value.code == REQUEST_TIMEOUT
        assert trio.current_time() == pytest.approx(5, abs=0.1)
        assert (await peer.next())["method"] == "m"
        assert (await peer.next())["method"] == "notifications/cancelled"


async def test_a_server_that_stops_reading_blocks_callers_only_under_their_own_scope() -> None:
    text = {"text": "x" * 50_000}
    async with open_peer() as peer, started(peer, max_outbox=100_000) as dispatcher, trio.open_nursery() as nursery:
        scopes = [trio.CancelScope() for _ in range(20)]

        async def call(scope: trio.CancelScope) -> None:
            with scope:
                await dispatcher.send_raw_request("m", text)

        for scope in scopes:
            nursery.start_soon(call, scope)
        await trio.testing.wait_all_tasks_blocked()
        assert dispatcher._outbox.size < 200_000
        for scope in scopes:
            scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert all(scope.cancelled_caught for scope in scopes)
        # What was never written was taken back; what was, at least in part, is cancelled.
        nursery.start_soon(dispatcher.notify, "last", None)
        seen = []
        while not seen or seen[-1]["method"] != "last":
            seen.append(await peer.next())
        sent = {message["id"] for message in seen if message["method"] == "m"}
        told = {message["params"]["requestId"] for message in seen if message["method"] == "notifications/cancelled"}
        assert sent == told
        assert 0 < len(sent) < 20


async def test_a_queued_call_that_is_cancelled_is_taken_back() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:

        async def fill_the_pipe() -> None:
            await dispatcher.send_raw_request("big", {"text": "x" * 1_000_000})

        nursery.start_soon(fill_the_pipe)
        await trio.testing.wait_all_tasks_blocked()
        queued = Asked(nursery, dispatcher, "queued")
        await trio.testing.wait_all_tasks_blocked()
        queued.scope.cancel()
        await queued.done.wait()
        nursery.start_soon(dispatcher.notify, "last", None)
        big = await peer.next()
        assert [big["method"], (await peer.next())["method"]] == ["big", "last"]
        await peer.reply(big)


async def test_progress_runs_in_the_callers_task_in_order_and_before_the_result() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        seen: list[Any] = []
        tasks = set()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            tasks.add(trio.lowlevel.current_task())
            await trio.lowlevel.checkpoint()
            seen.append((progress, total, message))
            if progress == 1:
                raise LookupError("a callback's own error")

        async def call() -> None:
            tasks.add(trio.lowlevel.current_task())
            seen.append(await dispatcher.send_raw_request("m", {"_meta": {"a": 1}}, {"on_progress": on_progress}))

        nursery.start_soon(call)
        message = await peer.next()
        token = message["params"]["_meta"]["progressToken"]
        assert message["params"]["_meta"] == {"a": 1, "progressToken": token}
        for params in (
            {"progress": 0},
            {"progress": 1, "total": 3},
            {"progress": True},
            {"progress": "2"},
            {"progress": 2.5, "total": "x", "message": "m"},
        ):
            await peer.send(method="notifications/progress", params={"progressToken": token, **params})
        await peer.send(method="notifications/progress", params={"progressToken": 99, "progress": 1})
        await peer.reply(message, done=True)
        while len(seen) < 4:
            await trio.testing.wait_all_tasks_blocked()
        assert seen == [(0.0, None, None), (1.0, 3.0, None), (2.5, None, "m"), {"done": True}]
        assert len(tasks) == 1


async def test_progress_that_arrives_together_with_the_result_is_not_lost() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        seen: list[Any] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            await trio.lowlevel.checkpoint()
            seen.append(progress)

        async def call() -> None:
            seen.append(await dispatcher.send_raw_request("m", None, {"on_progress": on_progress}))

        nursery.start_soon(call)
        await peer.next()
        line = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":%d}}\n'
        await peer.raw(b"".join(line % n for n in range(3)) + b'{"jsonrpc":"2.0","id":1,"result":{"done":true}}\n')
        while len(seen) < 4:
            await trio.testing.wait_all_tasks_blocked()
        assert seen == [0.0, 1.0, 2.0, {"done": True}]


@pytest.mark.parametrize(
    ("params", "told"),
    [
        (b'"progress": 1' + b"0" * 400, []),
        (b'"progress": 1' + b"0" * 5000, []),
        (b'"progress": NaN', []),
        (b'"progress": 1e999', []),
        (b'"progress": 1, "total": 1' + b"0" * 400, [(1.0, None, None)]),
        (b'"progress": 1, "total": NaN', [(1.0, None, None)]),
        (b'"progress": 1, "total": true', [(1.0, None, None)]),
    ],
    ids=["huge", "more digits than Python takes", "nan", "infinite", "huge total", "nan total", "no total"],
)
async def test_a_number_that_is_no_float_ends_nothing(params: bytes, told: list[Any]) -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        seen: list[Any] = []

        async def on_progress(*progress: Any) -> None:
            await trio.lowlevel.checkpoint()
            seen.append(progress)

        one = Asked(nursery, dispatcher, on_progress=on_progress)
        message = await peer.next()
        head = b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": %d, '
        await peer.raw(head % message["id"] + params + b"}}\n")
        await peer.reply(message, right=True)
        await one.done.wait()
        assert (one.result, seen) == ({"right": True}, told)
        assert not dispatcher.failed.is_set()


async def test_progress_after_the_answer_does_not_hold_it_up() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        seen: list[float] = []
        gates = [trio.Event(), trio.Event()]

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)
            if progress == 0:
                gates[0].set()
                await gates[1].wait()

        one = Asked(nursery, dispatcher, on_progress=on_progress)
        message = await peer.next()

        async def progress(*numbers: int) -> None:
            for number in numbers:
                params = {"progressToken": message["id"], "progress": number}
                await peer.send(method="notifications/progress", params=params)

        await progress(0)
        await gates[0].wait()
        await progress(*range(1, MAX_PROGRESS_BUSY + 4))
        await peer.reply(message, done=True)
        await progress(1000, 1001)
        await trio.testing.wait_all_tasks_blocked()
        gates[1].set()
        await one.done.wait()
        # Those the server sent while the callback was at work: the newest, and none after the answer.
        assert seen == [0.0, *range(4, MAX_PROGRESS_BUSY + 4)]
        assert one.result == {"done": True}


async def test_an_answered_call_that_is_cancelled_in_its_callback_is_not_cancelled_at_the_server() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            one.scope.cancel()
            await trio.sleep_forever()

        one = Asked(nursery, dispatcher, on_progress=on_progress)
        message = await peer.next()
        line = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\n'
        await peer.raw(line + b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % message["id"])
        await one.done.wait()
        Asked(nursery, dispatcher, "next")
        message = await peer.next()
        assert message["method"] == "next"
        await peer.reply(message)


async def test_the_parameters_of_a_caller_are_not_changed() -> None:
    params = {"_meta": {"a": 1}}
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:

        async def nothing(*_: Any) -> None:
            await trio.lowlevel.checkpoint()

        async def call() -> None:
            await dispatcher.send_raw_request("m", params, {"on_progress": nothing})

        nursery.start_soon(call)
        await peer.reply(await peer.next())
    assert params == {"_meta": {"a": 1}}


async def test_what_json_cannot_say_is_an_error_of_the_caller_and_nan_is_null() -> None:
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        with pytest.raises(ValueError, match="cannot be written as JSON"):
            await dispatcher.send_raw_request("m", {"it": object()})
        assert not dispatcher._pending

        async def call() -> None:
            await dispatcher.send_raw_request("m", {"it": float("nan")})

        nursery.start_soon(call)
        message = await peer.next()
        assert message["params"] == {"it": None}
        await peer.reply(message)


async def test_notifications_come_in_order_and_through_the_intercept_first() -> None:
    handlers = Handlers()
    async with open_peer() as peer, started(peer, handlers) as dispatcher:
        for method in ("a", "eat me", "crash", "b"):
            await peer.send(method=method, params={"m": method})
        while len(handlers.notified) < 2:
            await trio.testing.wait_all_tasks_blocked()
        assert handlers.notified == [("a", {"m": "a"}), ("b", {"m": "b"})]
        assert handlers.intercepted == ["a", "eat me", "crash", "b"]
        assert dispatcher.dropped == 0


async def test_a_storm_of_notifications_costs_no_tasks_and_bounded_memory() -> None:
    handlers = Handlers()
    handlers.gate = trio.Event()
    async with open_peer() as peer, started(peer, handlers) as dispatcher:
        before = trio.lowlevel.current_statistics().tasks_living
        for n in range(3000):
            await peer.send(method="n", params={"n": n})
        while len(handlers.intercepted) < 3000:
            await trio.testing.wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living == before
        handlers.gate.set()
        while not handlers.notified or handlers.notified[-1][1]["n"] < 2999:
            await trio.testing.wait_all_tasks_blocked()
        assert len(handlers.notified) <= MAX_NOTICES + 1
        assert dispatcher.dropped == 3000 - len(handlers.notified)


async def test_list_changed_takes_a_way_of_its_own_after_the_intercept() -> None:
    handlers = Handlers()
    count = 0

    def changed() -> None:
        nonlocal count
        count += 1

    async with open_peer() as peer, started(peer, handlers, on_list_changed=changed):
        for _ in range(1000):
            await peer.send(method="notifications/tools/list_changed")
        await peer.send(method="end")
        while not handlers.notified:
            await trio.testing.wait_all_tasks_blocked()
        assert count == 1000
        assert handlers.notified == [("end", None)]
        assert handlers.intercepted.count("notifications/tools/list_changed") == 1000


async def test_the_servers_requests_are_answered(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    async with open_peer() as peer, started(peer):
        for id_, method in enumerate(["ping", "fail", "crash", "unwritable"]):
            await peer.send(id=id_, method=method, params={"p": 1})
        answers = {}
        for _ in range(4):
            answer = await peer.next()
            answers[answer["id"]] = answer
        assert answers[0]["result"] == {"method": "ping", "params": {"p": 1}}
        assert answers[1]["error"] == {"code": -5, "message": "no"}
        assert answers[2]["error"] == {"code": 0, "message": "what"}
        assert answers[3]["error"]["code"] == INTERNAL_ERROR
        await peer.send(id="p", method="progress", params={"_meta": {"progressToken": "t"}})
        told = await peer.next()
        assert told["params"] == {"progressToken": "t", "progress": 1, "total": 2, "message": "half"}
        assert (await peer.next())["id"] == "p"


async def test_a_request_the_server_cancels_is_not_answered() -> None:
    handlers = Handlers()
    handlers.gate = trio.Event()
    async with open_peer() as peer, started(peer, handlers):
        await peer.send(id=1, method="ping")
        while not handlers.handling:
            await trio.testing.wait_all_tasks_blocked()
        await peer.send(method="notifications/cancelled", params={"requestId": "1"})
        while handlers.handling:
            await trio.testing.wait_all_tasks_blocked()
        handlers.gate = None
        await peer.send(id=2, method="ping")
        assert (await peer.next())["id"] == 2


async def test_requests_without_end_are_refused_at_the_limit() -> None:
    handlers = Handlers()
    handlers.gate = trio.Event()
    async with open_peer() as peer, started(peer, handlers) as dispatcher:
        for n in range(MAX_INBOUND + 3):
            await peer.send(id=n, method="ping")
        refused = [await peer.next() for _ in range(3)]
        assert all("too many" in message["error"]["message"] for message in refused)
        assert len(dispatcher._inbound) == MAX_INBOUND
        handlers.gate.set()
        for _ in range(MAX_INBOUND):
            assert "result" in await peer.next()
        assert not dispatcher._inbound


async def test_concurrent_calls_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    writes = 0
    real = os.write

    def counted(fd: int, data: bytes) -> int:
        nonlocal writes
        writes += 1
        return real(fd, data)

    monkeypatch.setattr(os, "write", counted)
    async with open_peer() as peer, started(peer) as dispatcher, trio.open_nursery() as nursery:
        asked = [Asked(nursery, dispatcher) for _ in range(64)]
        await trio.testing.wait_all_tasks_blocked()
        data = await peer._receive.receive_some(1_000_000)
        assert data.count(b"\n") == 64
        assert writes == 2  # the first, which was alone, and all others
        dispatcher.shut()
        for one in asked:
            await one.done.wait()


async def test_every_async_call_is_a_checkpoint() -> None:
    async with open_peer() as peer, started(peer) as dispatcher:
        with trio.testing.assert_checkpoints():
            await dispatcher.notify("n", None)
        dispatcher.shut()
        with trio.testing.assert_checkpoints(), pytest.raises(ConnectionClosed):
            await dispatcher.send_raw_request("m", None)
        with trio.testing.assert_checkpoints():
            await dispatcher.notify("n", None)


async def test_before_run_it_says_so() -> None:
    async with open_peer() as peer:
        dispatcher = PipeDispatcher(peer.client_receive, peer.client_send)
        with pytest.raises(RuntimeError, match="before run"):
            await dispatcher.send_raw_request("m", None)
