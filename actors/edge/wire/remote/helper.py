"""Headers that a command gives: ``headersHelper``, for logins that expire. It runs anew for each connection.

The command is one line for the shell. It prints a JSON object of strings, whose members become headers, in place of those that
the entry writes under the same names. It runs in the folder of the config file with the environment a server of that entry
would have, and ``MCP_SERVER_NAME`` and ``MCP_SERVER_URL``. It has `HELPER_SECONDS` and `MOST_OUTPUT` bytes; past either, and
when it has ended, all of its process group is killed. What it prints is a secret: it is in no message.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping

import trio

from ....model.telling import telling_line
from ...config.keys import Headers, headers_of
from ..wire import HttpRefused, one_line

__all__ = ["HELPER_SECONDS", "headers_from"]

HELPER_SECONDS = 10.0
MOST_OUTPUT = 64 * 1024
_MOST_WORDS = 2000


async def headers_from(command: str, *, name: str, url: str, cwd: str | None, env: Mapping[str, str]) -> dict[str, str]:
    """Run a command and read the headers it prints.

    Args:
        command: for the shell.
        name, url: of the server.
        cwd: where it runs.
        env: its environment, but for the two variables of its own.

    Returns:
        The headers, each fit to be sent.

    Raises:
        HttpRefused: it failed, took too long, or printed something else; with the telling line of its stderr.
    """
    more = {"MCP_SERVER_NAME": name, "MCP_SERVER_URL": url}
    try:
        process = await trio.lowlevel.open_process(
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**env, **more},
            start_new_session=os.name != "nt",
        )
    except OSError as error:
        raise HttpRefused(f"headersHelper cannot be run: {(error.strerror or str(error)).lower()}", False) from None
    out, words, long = bytearray(), bytearray(), False
    try:
        with trio.move_on_after(HELPER_SECONDS) as limit:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_collect, process.stderr, words, _MOST_WORDS)
                long = await _collect(process.stdout, out, MOST_OUTPUT)
                if long:
                    nursery.cancel_scope.cancel()
                else:
                    await _ended(process)
                    nursery.cancel_scope.deadline = trio.current_time() + 0.2  # a child of it may hold stderr open
    finally:
        await _end(process)
    if limit.cancelled_caught:
        raise HttpRefused(f"headersHelper gave no headers within {HELPER_SECONDS:g} s", False)
    if long:
        raise HttpRefused(f"headersHelper printed more than {MOST_OUTPUT} bytes", False)
    if process.returncode:
        said = telling_line(words.decode("utf-8", "replace"))
        last = f": {one_line(said, 200)}" if said else ""
        found = process.returncode not in (126, 127)  # as a shell says: not executable, not found
        raise HttpRefused(f"headersHelper ended with {process.returncode}{last}", False, futile=not found)
    return _read(bytes(out))


async def _ended(process: trio.Process) -> None:
    """Wait for its end and, where that can be, leave its number taken: nobody else's group may be killed for it."""
    if not hasattr(os, "waitid"):
        await process.wait()
        return

    def wait() -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    await trio.to_thread.run_sync(wait, abandon_on_cancel=True)


async def _collect(stream: trio.abc.ReceiveStream | None, into: bytearray, most: int) -> bool:
    """Read a stream to its end, or past ``most`` bytes; whether it is longer."""
    assert stream is not None
    async for part in stream:
        into += part
        if len(into) > most:
            return True
    return False


async def _end(process: trio.Process) -> None:
    """Kill it and its group, also what it left there, and wait for it."""
    with trio.CancelScope(shield=True):
        if os.name != "nt":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        if process.poll() is None:
            process.kill()
        await process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                await stream.aclose()


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
