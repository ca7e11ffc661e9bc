"""`PipeDispatcher`: cancelled, late and reporting calls, notifications, the server's own requests, writing together."""

from __future__ import annotations

import logging
import os
from typing import Any

import pytest
import trio
import trio.testing
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, REQUEST_TIMEOUT
from playbill.actors.edge.wire.dispatcher import MAX_INBOUND, PipeDispatcher
from playbill.actors.edge.wire.hearing import MAX_NOTICES
from playbill.actors.edge.wire.rpc import MAX_PROGRESS_BUSY, ConnectionClosed

from .asking import Asked, Handlers, started
from .peer import open_peer


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
        for id_, method in enumerate(["ping", "fail", "crash", "unwritable", "odd"]):
            await peer.send(id=id_, method=method, params={"p": 1})
        answers = {}
        for _ in range(5):
            answer = await peer.next()
            answers[answer["id"]] = answer
        assert answers[0]["result"] == {"method": "ping", "params": {"p": 1}}
        assert answers[1]["error"] == {"code": -5, "message": "no"}
        assert answers[2]["error"] == {"code": 0, "message": "what"}
        assert answers[3]["error"]["code"] == answers[4]["error"]["code"] == INTERNAL_ERROR
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
        assert writes == 5  # the first, which was alone; thrice sixteen, by whoever queued the last of them; the rest
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
