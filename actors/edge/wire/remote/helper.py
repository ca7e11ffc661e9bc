"""Headers that a command gives: ``headersHelper``, for logins that expire. It runs anew for each connection.

The command is one line for the shell. It prints a JSON object of strings, whose members become headers, in place of those that
the entry writes under the same names. It runs in the folder of the config file with the environment a server of that entry
would have, and ``MCP_SERVER_NAME`` and ``MCP_SERVER_URL``. It has `HELPER_SECONDS` and `MOST_OUTPUT` bytes; past either, and
when it has ended, all that it started is killed; also when our program is killed, as it has a reaper like a server's (see
`watcher`). What it prints on stdout is a secret, and is shown nowhere. When it fails, one line of its stderr is shown, masked
by how it looks; of stderr it may write as much as it likes, and the end of that counts.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import trio

from ....model.mask import mask_text
from ....model.telling import telling_line
from ...config.keys import Headers, headers_of
from ..process import OwnedProcess, Stuck
from ..spawn import Handover, SpawnFailed, spawn
from ..warden import open_warden
from ..wire import HttpRefused, one_line

__all__ = ["HELPER_SECONDS", "headers_from"]

HELPER_SECONDS = 10.0
MOST_OUTPUT = 64 * 1024
_MOST_WORDS = 2000


async def headers_from(
    command: str, *, name: str, url: str, cwd: str | None, env: Mapping[str, str], warden: Handover | None = None
) -> dict[str, str]:
    """Run a command and read the headers it prints.

    Args:
        command: for the shell.
        name, url: of the server.
        cwd: where it runs.
        env: its environment, but for the two variables of its own.
        warden: has its reaper forked, which ends what is left of it even when we are killed; None: one for this run alone.

    Returns:
        The headers, each fit to be sent.

    Raises:
        HttpRefused: it failed, took too long, or printed something else; with the telling line of its stderr, masked.
    """
    if warden is None and os.name != "nt":
        async with open_warden() as own:
            return await headers_from(command, name=name, url=url, cwd=cwd, env=env, warden=own)
    more = {"MCP_SERVER_NAME": name, "MCP_SERVER_URL": url}
    out, words, long = bytearray(), bytearray(), False
    try:
        async with _started(command, cwd, {**env, **more}, warden) as process:
            with trio.move_on_after(HELPER_SECONDS) as limit:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_keep_end, process.stderr, words, _MOST_WORDS)
                    long = await _collect(process.stdout, out, MOST_OUTPUT)
                    if long:
                        nursery.cancel_scope.cancel()
                    else:
                        await process.exited.wait()
                        nursery.cancel_scope.deadline = trio.current_time() + 0.2  # a child of it may hold stderr open
    except SpawnFailed as failed:
        raise HttpRefused(f"headersHelper cannot be run: {failed}", False, futile=failed.futile) from None
    if limit.cancelled_caught:
        raise HttpRefused(f"headersHelper gave no headers within {HELPER_SECONDS:g} s", False)
    if long:
        raise HttpRefused(f"headersHelper printed more than {MOST_OUTPUT} bytes", False)
    if process.returncode:
        said = telling_line(words.decode("utf-8", "replace"))
        last = f": {one_line(mask_text(said), 200)}" if said else ""
        found = process.returncode not in (126, 127)  # as a shell says: not executable, not found
        raise HttpRefused(f"headersHelper ended with {process.returncode}{last}", False, futile=not found)
    return _read(bytes(out))


@asynccontextmanager
async def _started(
    command: str, cwd: str | None, env: Mapping[str, str], warden: Handover | None
) -> AsyncIterator[OwnedProcess]:
    """Start a command as a server is started; leaving kills all that it started, within 2 s.

    Raises:
        SpawnFailed: on entering: it could not be started.
    """
    process: OwnedProcess
    if sys.platform == "win32":
        from .. import windows

        shell = env.get("COMSPEC", "cmd.exe")
        process = await windows.start(shell, ("/d", "/s", "/c", command), env=env, cwd=cwd)
    else:
        assert warden is not None
        process = await spawn("/bin/sh", ("-c", command), env=env, cwd=cwd, warden=warden)
    attending = trio.CancelScope(shield=True)

    async def watch() -> None:
        with attending:
            await process.watch()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        try:
            yield process
        finally:
            try:
                await process.stop(grace=False)
            except Stuck as stuck:
                logging.getLogger("playbill.edge").warning("%s", stuck)
            finally:
                attending.cancel()
                process.close_pipes()
    if not process.gone.is_set():
        trio.lowlevel.spawn_system_task(process.bury)  # it hangs in the kernel; whenever it ends, it is buried


async def _collect(stream: trio.abc.ReceiveStream, into: bytearray, most: int) -> bool:
    """Read a stream to its end, or past ``most`` bytes; whether it is longer."""
    async for part in stream:
        into += part
        if len(into) > most:
            return True
    return False


async def _keep_end(stream: trio.abc.ReceiveStream, into: bytearray, most: int) -> None:
    """Read a stream to its end, as who writes it waits otherwise, and keep the last ``most`` bytes."""
    async for part in stream:
        into += part
        del into[:-most]


def _read(out: bytes) -> dict[str, str]:
    try:
        said = json.loads(out)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or not all(isinstance(each, str) for each in said.values()):
        raise HttpRefused("headersHelper printed no JSON object of strings", False)
    try:
        made: Headers = headers_of(said)
    except ValueError as wrong:
        raise HttpRefused(f"headersHelper printed what cannot be headers: {wrong}", False) from None
    return dict(made)
