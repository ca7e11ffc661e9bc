"""Starting a server process: three pipes, a reaper that owns their far ends, and the request to it.

what the host makes          goes to
stdin, stdout, stderr pipes  our ends: `ServerProcess`; theirs: the reaper, and from it the server
control socket               our end: `Control`; theirs: the reaper, never the server
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import trio

from .control import Control
from .process import KILL_GRACE, ServerProcess

__all__ = ["Handover", "SpawnFailed", "spawn"]


_OF_THE_ENTRY = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EACCES,
        errno.EPERM,
        errno.ENOEXEC,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.EISDIR,
        errno.E2BIG,
    }
)
"""Errors that lie in what an entry names; others (no memory, too many processes, a file being written) pass."""


class Watching(Protocol):
    """A watcher that was asked for a reaper."""

    async def heard(self, word: Callable[[], Awaitable[str]]) -> str:
        """Await the first word of a reaper: what ``word`` returns, or an empty text when the watcher hangs."""
        ...

    def last_words(self) -> str:
        """What it complained of, or empty."""
        ...


class Handover(Protocol):
    """Who has reapers forked: the `Warden`."""

    async def hand_over(self, fds: Sequence[int]) -> Watching:
        """Have a reaper forked that owns stdin, stdout, stderr and the control socket of a server.

        Raises:
            ConnectionError: the watcher has ended, or hangs; the next attempt gets another.
            OSError: there is none, and none could be started.
        """
        ...

    def retire(self, watcher: Watching) -> None:
        """That watcher did not do what it should: the next server gets another."""
        ...


class SpawnFailed(Exception):
    """The process could not be started; the message is one line and names the key of the configuration that is wrong.

    Args:
        reason: that line.
        futile: the next attempt fails of the same, unless the entry or what it names is mended. False: the system is to blame.
    """

    def __init__(self, reason: str, futile: bool = True) -> None:
        self.futile = futile
        super().__init__(reason)


async def spawn(
    command: str, args: Sequence[str], *, env: Mapping[str, str], cwd: str | None, warden: Handover
) -> ServerProcess:
    """Start a server with three pipes, in its own session. When it returns, the process exists and the caller owns it.

    Cancelled, it first ends what it has begun, which takes 2 s at most.

    Args:
        command: a path, or a name looked up in the PATH of ``env``.
        args: without the command.
        env: the whole environment of the child.
        cwd: its working folder; None = ours.
        warden: has the reaper forked.

    Raises:
        SpawnFailed: the command is not found or not executable, the folder is missing, or the system refused.
    """
    request = _request(command, args, env, cwd)
    words = ""
    for _ in range(2):
        try:
            started = await _start(request, warden)
        except _Refused as refused:
            futile = refused.stage in ("exec", "chdir") and refused.number in _OF_THE_ENTRY
            raise SpawnFailed(_reason(refused.number, refused.stage, command, cwd), futile) from None
        except OSError as error:
            said = f"command: {command!r}: no process to watch it: {error.strerror or error}"
            raise SpawnFailed(said, futile=False) from error
        if isinstance(started, ServerProcess):
            return started
        words = started
    raise SpawnFailed(_reason(0, "watch", command, cwd) + (f": {words}" if words else ""), futile=False)


class _Refused(Exception):
    """The reaper could not start the server: at which stage, and the system's error number."""

    def __init__(self, stage: str, number: int) -> None:
        self.stage = stage
        self.number = number


async def _start(request: bytes, warden: Handover) -> ServerProcess | str:
    """One attempt. Unless it succeeds, what is ours is closed, which is the order to kill what was begun.

    Returns:
        The process; or, when no reaper ever took the request and another attempt may be made, what the watcher complained of.

    Raises:
        _Refused: as the reaper said.
        OSError: there is no pipe, or no watcher.
    """
    mine: list[int] = []
    theirs: list[int] = []
    control: Control | None = None
    try:
        try:
            for reads in (False, True, True):
                read, write = os.pipe()
                mine.append(read if reads else write)
                theirs.append(write if reads else read)
            end, far_end = socket.socketpair()
            theirs.append(far_end.detach())
            control = Control(end)
            watcher = await warden.hand_over(theirs)
        except ConnectionError:
            return ""
        finally:
            for far in theirs:
                os.close(far)
        # Their ends are closed: or the end of what the reaper holds would never be seen.
        said, *rest = (await _ask(control, request, watcher)).split() or [""]
        if not said:
            warden.retire(watcher)
            return watcher.last_words()
        if said == "failed":
            raise _Refused(rest[0], int(rest[1]))
        stdin, stdout, stderr = map(trio.lowlevel.FdStream, mine)
        process = ServerProcess(int(rest[0]), stdin, stdout, stderr, control)
        mine, control = [], None
        return process
    finally:
        if control is not None:
            control.close()
        for each in mine:
            os.close(each)


async def _ask(control: Control, request: bytes, watcher: Watching) -> str:
    """Send the request; the answer, or an empty text when no reaper ever took it. Cancelled, nothing of it is left."""
    said: str | None = None
    try:
        rest = control.push(request)
        if not rest:
            said = await _answer(control, watcher)
            return said
        async with trio.open_nursery() as nursery:
            nursery.start_soon(control.send, rest)  # more than a socket holds
            said = await _answer(control, watcher)
            nursery.cancel_scope.cancel()
        return said
    finally:
        if said is None:
            control.end()
            with trio.move_on_after(KILL_GRACE, shield=True):
                while await control.line():
                    pass


async def _answer(control: Control, watcher: Watching) -> str:
    said = await watcher.heard(control.line)
    if said != "starting":
        return said
    return await control.line() or "failed watch 0"  # now it may be the server that ended its own reaper


def _request(command: str, args: Sequence[str], env: Mapping[str, str], cwd: str | None) -> bytes:
    """What the watcher's ``_request`` reads.

    Raises:
        SpawnFailed: a text in it holds a NUL, or a variable has no name.
    """
    try:
        fields = [os.fsencode(cwd if cwd is not None else Path.cwd())]
    except OSError:
        raise SpawnFailed("cwd: our own working folder does not exist any more") from None
    if os.sep in command:
        files = [os.fsencode(command)]
    else:
        files = [os.fsencode(Path(folder, command)) for folder in os.get_exec_path(env)]
    for group in (files, [os.fsencode(each) for each in (command, *args)]):
        fields += [b"%d" % len(group), *group]
    for key in env:
        if not key or "=" in key:
            raise SpawnFailed(f"env: a variable cannot be named {key!r}")
    variables = [f"{key}={value}" for key, value in env.items()]
    data = b"".join([each + b"\0" for each in fields] + [os.fsencode("".join([f"{each}\0" for each in variables]))])
    if data.count(b"\0") != len(fields) + len(variables):
        raise SpawnFailed(f"command, args, env or cwd: a NUL character (in {command!r})")
    return len(data).to_bytes(4, "big") + data


def _reason(number: int, stage: str, command: str, cwd: str | None) -> str:
    if stage == "watch":
        return f"command: {command!r}: the process that should have watched it has ended"
    if stage == "chdir" and cwd is not None:
        if number in (errno.EACCES, errno.EPERM):
            return f"cwd: {cwd!r} may not be entered"
        words = {errno.ENOENT: "does not exist", errno.ENOTDIR: "is not a folder"}
        return f"cwd: {cwd!r} {words.get(number) or f'cannot be entered: {os.strerror(number)}'}"
    if stage == "exec" and number == errno.ENOENT:
        if os.path.isfile(command):  # noqa: PTH113  Path.is_file raises for a name that is too long
            return f"command: {command!r} cannot run: the interpreter named in its first line does not exist"
        where = "does not exist" if os.sep in command else "is not found in PATH"
        return f"command: {command!r} {where}"
    if stage == "exec" and number == errno.EACCES:
        return f"command: {command!r} is not executable"
    if stage == "exec" and number == errno.ENOEXEC:
        return f"command: {command!r} is no program (a script needs a #! line)"
    if stage == "exec" and number == errno.E2BIG:
        return f"args, env: together they are longer than the system takes (command {command!r})"
    return f"command: {command!r} could not be started: {os.strerror(number)}"
