"""The host's end of a control socket: a request of any size reaches the reaper whole."""

from __future__ import annotations

import socket

import trio
from playbill.actors.edge.wire.control import Control


async def test_a_request_larger_than_the_socket_holds_is_sent_in_parts_and_whole() -> None:
    ours, theirs = socket.socketpair()
    control, request = Control(ours), bytes(range(256)) * 8192
    rest = control.push(request)
    assert 0 < len(rest) < len(request), "it is to be more than the socket holds"
    theirs.setblocking(False)
    with trio.fail_after(30), theirs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(control.send, rest)
            got = b""
            while len(got) < len(request):
                await trio.lowlevel.wait_readable(theirs)
                got += theirs.recv(65536)
    control.close()
    assert got == request


async def test_nothing_is_left_to_send_to_a_reaper_that_has_ended() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    control = Control(ours)
    assert control.push(b"x" * 1000) == b""
    control.close()
