"""Playbill in an asyncio program, by way of trio's guest mode.

    pip install .               # in a clone of Playbill
    python guest_mode.py        # rolls dice while it looks a name up, and gives up a call

The bridge is `trio_guest.py` beside this file.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from pathlib import Path

import playbill.actors as playbill
from trio_guest import Guest, in_asyncio

CONFIG = os.environ.get("MCP_CONFIG") or Path(__file__).with_name("mcp.json")


async def look_up(host: str) -> str:
    """The first address of a host: a function written for asyncio."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None)
    return str(found[0][4][0])


@playbill.native_tool
async def address(host: str) -> str:
    """The network address of a host."""
    return await in_asyncio(look_up, host)  # a native tool runs in trio, this leads back


async def program() -> None:
    """What an asyncio agent does with a host."""
    async with Guest(playbill.open_host(CONFIG, native_tools=[address])) as guest:
        host = guest.value
        for name, reason in (await guest.run(host.ready, timeout=30)).missing.items():
            print(f"{name}: {reason}", file=sys.stderr)
        catalog = host.snapshot().catalog  # no bridge: it is not async
        print(", ".join(tool.wire_name for tool in catalog.tools))

        call = functools.partial(guest.run, host.call, catalog=catalog)
        async with asyncio.TaskGroup() as group:
            roll = group.create_task(call("mcp__dice__roll", {"dice": "3d6"}))
            where = group.create_task(call("address", {"host": "localhost"}))
        print(roll.result().content[0].text, "|", where.result().content[0].text)

        try:
            async with asyncio.timeout(0.2):
                await call("mcp__clock__wait", {"seconds": 600})
        except TimeoutError:
            print("waited long enough: the call is cancelled, its server was told, and the host goes on")


def main() -> int:
    code = 0
    try:
        asyncio.run(program())
    except* KeyboardInterrupt:
        code = 130
    except* playbill.PlaybillError as errors:
        print(f"guest_mode.py: {errors.exceptions[0]}", file=sys.stderr)
        code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
