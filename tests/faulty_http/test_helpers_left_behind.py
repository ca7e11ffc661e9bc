"""What a ``headersHelper`` starts does not outlive the host, however that ends. Real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import trio
from playbill.actors import ConfigError, open_host

from ..processes import marked

PATIENCE = 30.0

HOST = textwrap.dedent("""
    import sys, trio
    from playbill.actors import open_host

    async def main():
        async with open_host(sys.argv[1]):
            await trio.sleep_forever()

    trio.run(main)
""")

LOGIN = "(trap '' TERM HUP; exec sleep 600) & trap '' TERM HUP; echo up >up; sleep 600"
"""It ignores what asks it to end, and so does what it starts."""


def write(folder: Path) -> Path:
    file = folder / "mcp.json"
    mark = {"HELPER_MARK": folder.name}
    entry = {"url": "http://127.0.0.1:9/mcp", "headersHelper": LOGIN, "env": mark}
    file.write_text(json.dumps({"mcpServers": {"web": entry}}))
    return file


async def until(condition: object) -> None:
    assert callable(condition)
    with trio.fail_after(PATIENCE):
        while not condition():
            await trio.sleep(0.02)


async def test_a_helper_and_what_it_started_die_with_a_host_that_is_killed(tmp_path: Path) -> None:
    mark = f"HELPER_MARK={tmp_path.name}"
    host = subprocess.Popen([sys.executable, "-c", HOST, str(write(tmp_path))])
    try:
        await until((tmp_path / "up").exists)
        await until(lambda: len(marked(mark)) >= 2)
        os.kill(host.pid, signal.SIGKILL)
        await until(lambda: not marked(mark))
    finally:
        host.kill()
        host.wait()


async def test_a_helper_and_what_it_started_die_with_the_host_that_closes(tmp_path: Path) -> None:
    mark = f"HELPER_MARK={tmp_path.name}"
    async with open_host(write(tmp_path)):
        await until((tmp_path / "up").exists)
        await until(lambda: len(marked(mark)) >= 2)
    assert not marked(mark)


async def test_a_program_adds_a_server_with_a_helper_and_a_type(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text("{}")
    async with open_host(file) as host:
        await host.plugin_add("web", url="http://127.0.0.1:9/mcp", headers_helper="./login", type="sse")
        for wrong in ({"command": "x", "headers_helper": "y"}, {"url": "http://x", "type": "stdio"}):
            try:
                await host.plugin_add("other", **wrong)
            except ConfigError:
                continue
            raise AssertionError(wrong)
    entry = json.loads(file.read_text())["mcpServers"]["web"]
    assert entry == {"type": "sse", "url": "http://127.0.0.1:9/mcp", "headersHelper": "./login"}
