"""The floor for `startup.py`: what a program would do by hand on trio, and no more.

Spawn, `initialize`, `notifications/initialized`, `tools/list`; raw pipes, no SDK, no supervision, nothing is checked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from subprocess import PIPE
from typing import Any

import trio

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "floor", "version": "1"},
}


class BareServer:
    """One server by hand.

    Args:
        process: spawned with pipes for stdin and stdout.
    """

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.tools: list[Any] = []

    async def _ask(self, number: int, method: str, params: dict[str, Any]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await self.process.stdin.send_all(json.dumps(request).encode() + b"\n")
        got = b""
        while not got.endswith(b"\n"):
            got += await self.process.stdout.receive_some()
        return json.loads(got)["result"]

    async def make_ready(self) -> None:
        """Shake hands and list the tools."""
        assert self.process.stdin is not None
        await self._ask(1, "initialize", HELLO)
        await self.process.stdin.send_all(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        self.tools = (await self._ask(2, "tools/list", {}))["tools"]


async def start_all(command: Sequence[str], count: int) -> list[BareServer]:
    """Start that many side by side; returns when all have listed their tools."""
    servers: list[BareServer] = []

    async def one() -> None:
        # In a session of its own, as Playbill's are: the kernel may share out CPU time by session, and on a machine that is
        # busy with other things that alone made all the difference.
        process = await trio.lowlevel.open_process(list(command), stdin=PIPE, stdout=PIPE, start_new_session=True)
        server = BareServer(process)
        servers.append(server)
        await server.make_ready()

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(one)
    return servers


async def stop_all(servers: Sequence[BareServer]) -> None:
    """End them all and reap them."""
    for server in servers:
        server.process.kill()
    for server in servers:
        await server.process.wait()
        assert server.process.stdin is not None
        assert server.process.stdout is not None
        await server.process.stdin.aclose()
        await server.process.stdout.aclose()
