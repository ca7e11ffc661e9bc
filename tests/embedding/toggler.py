"""A process with a real host that hides many tools of one server, one after the other. `test_two_hosts.py` starts two.

Run as ``toggler.py FILE PREFIX COUNT WATCH``. It says ``ready``; told to go, it hides ``PREFIX0``, ``PREFIX1``, …, each seen in
a snapshot; says ``toggled``; told to go on, it reloads and says, as JSON, which tools are hidden and how many toggles had
been refused and were done again.
"""

from __future__ import annotations

import json
import sys

import trio
from playbill.actors import ConfigError, OperationTimeout, WriteFailed, open_host


async def told_to() -> None:
    """Wait for a line."""
    assert await trio.to_thread.run_sync(sys.stdin.readline)


async def main(path: str, prefix: str, count: int, watch: bool) -> None:
    """Run the process."""
    refused = 0
    async with open_host(path, watch=watch, budget=10_000) as host:
        assert await host.ready(timeout=60)
        print("ready", flush=True)
        await told_to()
        for number in range(count):
            while True:
                try:
                    snapshot = await host.tool_set_enabled("s", f"{prefix}{number}", False)
                    break
                except (ConfigError, WriteFailed):
                    refused += 1  # half a file of the editor's, or the other host has the lock
                except OperationTimeout:
                    refused += 1  # whether or not it is applied yet: to hide a tool again changes nothing
            tool = snapshot.model.tool("s", f"{prefix}{number}")
            assert tool is not None
            assert not tool.enabled
        print("toggled", flush=True)
        await told_to()
        server = (await host.reload()).model.server("s")
        assert server is not None
        assert server.restarts == 0
        hidden = [tool.bare for tool in server.tools if not tool.enabled]
        print(json.dumps({"hidden": sorted(hidden), "refused": refused}), flush=True)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "watch")
