"""`PipeDispatcher` against a scripted peer over real pipes: ids, answers, garbage, the end. No clocks."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import trio
import trio.testing
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR
from playbill.actors.edge.wire.rpc import ConnectionClosed

from .asking import Asked, started
from .peer import open_peer


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
