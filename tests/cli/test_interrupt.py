"""Signals end a verb in order: the exit code says which, no traceback, and no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
import trio.testing
from playbill.actors.cli import interrupt

from ..forked import Forked

WriteConfig = Callable[..., Path]

SERVER = """
import os, sys, threading
from pathlib import Path
from playbill.actors.servers._stdio import Tool, serve

def hang(cancelled):
    marker = Path(sys.argv[1])
    marker.with_suffix(".new").write_text(str(os.getpid()))
    marker.with_suffix(".new").replace(marker)
    threading.Event().wait()

serve("hung", "Hung", "", [Tool("hang", "", "", {}, (), hang, slow=True)])
"""


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> int:
    """The pid that a server wrote; polls, as another process writes it, until the program itself ends."""
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return int(path.read_text())


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("signum", "times", "code"),
    [(signal.SIGINT, 1, 130), (signal.SIGINT, 3, 130), (signal.SIGTERM, 1, 143)],
)
def test_a_signal_during_a_call_ends_it_in_order(
    write_config: WriteConfig, tmp_path: Path, environment: dict[str, str], signum: int, times: int, code: int
) -> None:
    server, marker = tmp_path / "hung.py", tmp_path / "pid"
    server.write_text(SERVER)
    config = write_config(hung={"command": sys.executable, "args": [str(server), str(marker)]})
    process = Forked(
        [sys.executable, "-m", "playbill.actors.cli", "call", "hung/hang", "--config", str(config)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    pid = wait_for(marker, process)
    for _ in range(times):
        process.send_signal(signum)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (code, b"", b"")
    assert not is_alive(pid)


def test_a_second_signal_does_not_cut_short_the_stop() -> None:
    done: list[str] = []

    async def verb() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                os.kill(os.getpid(), signal.SIGINT)
                await trio.testing.wait_all_tasks_blocked()
                done.append("stopped in order")

    assert interrupt.run(verb) == 130
    assert done == ["stopped in order"]


def test_what_a_verb_raises_leaves_as_it_is() -> None:
    async def verb() -> int:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupt.run(verb)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGQUIT, 131), (signal.SIGHUP, 129)])
def test_a_verb_that_fails_while_it_is_cancelled_was_ended_by_the_signal(signum: int, code: int) -> None:
    async def fail() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ZeroDivisionError

    async def verb() -> int:
        # One task ends as it was told, one breaks over it: both are in the group.
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            os.kill(os.getpid(), signum)
            await trio.sleep_forever()
        return 0

    assert interrupt.run(verb) == code


def test_a_group_that_a_verb_raises_is_its_own_failure() -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    async def verb() -> int:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
        return 0

    with pytest.raises(ExceptionGroup) as caught:
        interrupt.run(verb)
    assert caught.group_contains(ZeroDivisionError)
