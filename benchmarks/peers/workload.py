"""The one workload: what each row of the comparison does with a peer. `run.py` starts this, in the peer's own environment.

    python workload.py PEER ROW[+ROW…] FOLDER [--quick]

Each line on stdout is a JSON object, for each row one, cell → value: a number (of the unit in the cell's name), or a text. It
is printed before the peer is left, which may hang. Nothing here knows any peer: see `adapter.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import anyio
from adapter import Adapter, Cannot, Servers

SERVER = str(Path(__file__).with_name("server.py"))
PATIENCE = 20.0
"""Seconds after which something is said not to come."""

ALONE = 5.0
"""Seconds in which a dead server must be callable again, if it is to be by itself."""

Cells = dict[str, Any]


class Ground:
    """Where the servers say what they do.

    Args:
        peer: the adapter's class.
        folder: an empty one.
        quick: few calls.

    Attributes:
        cells: of a row that has many, those that are known already; said also when the rest cannot be measured.
    """

    def __init__(self, peer: type[Adapter], folder: Path, quick: bool) -> None:
        self.peer = peer
        self.folder = folder
        self.quick = quick
        self.printed = False
        self.cells: Cells = {}

    def command(self, name: str, *mode: str) -> list[str]:
        """How a server is started."""
        return [sys.executable, "-I", "-S", SERVER, name, str(self.folder), *mode]

    def servers(self, count: int) -> Servers:
        """So many, s0, s1, …"""
        return {f"s{number}": self.command(f"s{number}") for number in range(count)}

    def spawned(self) -> list[tuple[str, int]]:
        """Each start of a server: its name and process id."""
        file = self.folder / "spawns"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(line.split()[0], int(line.split()[1])) for line in lines]

    def kill(self, name: str) -> bool:
        """Kill the server that was started last under a name, if it lives."""
        pid = dict(self.spawned())[name]
        if pid not in living(self.folder):
            return False
        os.kill(pid, signal.SIGKILL)
        return True

    def say(self, cells: Cells) -> None:
        """Print the result; only the first counts."""
        if not self.printed:
            self.printed = True
            print(json.dumps(cells), flush=True)


def living(folder: Path) -> list[int]:
    """The processes of servers that have this folder in their command line; no zombies."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if os.fsencode(SERVER) in command and os.fsencode(str(folder)) in command:
            found.append(int(process.name))
    return found


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds."""
    begun = perf_counter()
    await work()
    return (perf_counter() - begun) * 1e3


def _on_asyncio() -> bool:
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


async def ended(work: Callable[[], Awaitable[object]]) -> str:
    """How something ended, in a few words, within `PATIENCE`.

    On asyncio the limit is its own, which is no scope of anyio's: what a peer entered before must not be left inside one.
    """
    begun = perf_counter()
    try:
        if _on_asyncio():
            async with asyncio.timeout(PATIENCE):
                await work()
        else:
            with anyio.fail_after(PATIENCE):
                await work()
    except Cannot as cannot:
        return f"no: {cannot}"
    except Exception as error:
        # Neither a time-out of the peer's own, nor what a peer makes of being cancelled, is told apart by its type.
        if perf_counter() - begun >= PATIENCE:
            return f"not within {PATIENCE:g} s"
        return f"{short(error)} after {(perf_counter() - begun) * 1e3:.0f} ms"
    return f"{(perf_counter() - begun) * 1e3:.1f} ms"


def short(error: BaseException) -> str:
    """An error in one line, that of its first leaf."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:120]


def echo(peer: Adapter, name: str = "s0") -> Callable[[], Awaitable[object]]:
    """One call of a server."""
    return functools.partial(peer.call, name, "echo", {"text": "hello"})


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def warm_up(ground: Ground) -> None:
    """What is imported or compiled the first time is no part of what follows."""
    async with ground.peer.opened({"warm": ground.command("warm")}) as peer:
        await peer.call("warm", "echo", {"text": "hello"})


async def connect(ground: Ground, count: int) -> Cells:
    await warm_up(ground)
    started, begun = len(ground.spawned()), perf_counter()
    async with ground.peer.opened(ground.servers(count)) as peer:
        tools = await peer.tools()
        took = (perf_counter() - begun) * 1e3
        cells = {f"connect + list {count}, ms": took, f"processes started for {count}": len(ground.spawned()) - started}
        if len(set(tools)) != 3 * count:
            cells[f"connect + list {count}, ms"] = f"{len(set(tools))} tools, not {3 * count}"
        ground.say(cells)
    return cells


async def calls(ground: Ground) -> Cells:
    number, workers = (20 if ground.quick else 500), 16
    async with ground.peer.opened(ground.servers(1)) as peer:
        assert await peer.call("s0", "echo", {"text": "hello"}) == "hello"
        if await timed(echo(peer)) > 20:  # one that starts a server for each call need not do that 500 times
            number = min(number, 20)
        one = median([await timed(echo(peer)) for _ in range(number)])

        async def worker() -> None:
            for _ in range(max(1, number // workers)):
                await echo(peer)()

        async def together() -> None:
            async with anyio.create_task_group() as group:
                for _ in range(workers):
                    group.start_soon(worker)

        took = await timed(together)
        rate = max(1, number // workers) * workers / took * 1e3
        ground.say(cells := {"call round trip, µs": one * 1e3, "calls a second, 16 at once": rate})
    return cells


async def hanging(ground: Ground) -> Cells:
    """Four good servers, one that hangs and one that is not there."""
    servers = {**ground.servers(4), "hung": ground.command("hung", "hang"), "missing": ["/no/such/command"]}
    key = "4 good beside one that hangs and one that is missing"
    await warm_up(ground)
    begun = perf_counter()

    async def four() -> None:
        async with ground.peer.opened(servers) as peer:
            for name in ground.servers(4):
                await echo(peer, name)()
            ground.say({key: f"{(perf_counter() - begun) * 1e3:.0f} ms until all 4 answered"})

    ground.say(cells := {key: f"the 4 cannot be used: {await ended(four)}"})
    return cells


async def crash(ground: Ground) -> Cells:
    """kill -9 of s0, while s1 is called."""
    async with ground.peer.opened(ground.servers(2)) as peer:
        await peer.tools()
        await echo(peer)()
        errors, times, over = 0, [], anyio.Event()

        async def neighbour() -> None:
            nonlocal errors
            while not over.is_set():
                try:
                    with anyio.fail_after(PATIENCE):
                        times.append(await timed(echo(peer, "s1")))
                except Exception:
                    errors += 1
                await anyio.sleep(0.005)

        cells = ground.cells
        async with anyio.create_task_group() as group:
            group.start_soon(neighbour)
            await anyio.sleep(0.5)
            if not ground.kill("s0"):
                cells["a call to the crashed one"] = "no process lives between calls"
            else:
                await anyio.sleep(0.05)
                cells["a call to the crashed one"] = await ended(echo(peer))
            await anyio.sleep(0.5)
            over.set()
        cells["neighbour of a crash, errors"] = errors
        cells["neighbour of a crash, longest call, ms"] = max(times, default=0)
        ground.say(cells)
    return cells


async def recovery(ground: Ground) -> Cells:
    async with ground.peer.opened(ground.servers(2)) as peer:
        await peer.tools()
        await echo(peer)()
        if not ground.kill("s0"):
            ground.say(
                cells := {"restart by itself": "no process lives between calls", "restart when asked": "as before"}
            )
            return cells
        begun = perf_counter()

        async def until_back() -> None:
            back = False
            while not back:
                with contextlib.suppress(Exception), anyio.fail_after(PATIENCE):
                    await echo(peer)()
                    back = True
                await anyio.sleep(0.01)

        with anyio.move_on_after(ALONE):
            await until_back()
            back = f"{(perf_counter() - begun) * 1e3:.0f} ms"
            ground.say(cells := {"restart by itself": back, "restart when asked": "not needed"})
            return cells
        cells = ground.cells
        cells["restart by itself"] = f"not within {ALONE:g} s"

        async def asked() -> None:
            await peer.restart("s0")
            await until_back()

        cells["restart when asked"] = await ended(asked)
        ground.say(cells)
    return cells


async def change(ground: Ground) -> Cells:
    """In a running group of 10."""
    cells = ground.cells
    async with ground.peer.opened(ground.servers(10)) as peer:
        await peer.tools()

        async def one(what: str, act: Callable[[], Awaitable[object]]) -> None:
            before = len(ground.spawned())
            cells[what] = await ended(act)
            if not cells[what].startswith("no:"):
                cells[what] += f", {len(ground.spawned()) - before} started"

        async def add() -> None:
            await peer.add("late", ground.command("late"))
            await echo(peer, "late")()

        await one("add a server to 10", add)
        await one("disable a tool", functools.partial(peer.disable, "s1", "add"))
        await one("drop a server", functools.partial(peer.drop, "s3"))
        if not cells["drop a server"].startswith("no:"):
            await anyio.sleep(1)
            if dict(ground.spawned())["s3"] in living(ground.folder):
                cells["drop a server"] += ", its process lives on"
        ground.say(cells)
    return cells


async def list_changed(ground: Ground) -> Cells:
    async with ground.peer.opened(ground.servers(2)) as peer:
        before = len(await peer.tools())
        await peer.call("s0", "grow", {})
        begun, started = perf_counter(), len(ground.spawned())
        seen = "not seen within 3 s"
        with anyio.move_on_after(3):
            while len(await peer.tools()) != before + 1:  # noqa: ASYNC110  (a peer may have no event for it)
                await anyio.sleep(0.01)
            seen = f"seen after {(perf_counter() - begun) * 1e3:.0f} ms"
        if peer.asks_anew:
            seen += ", as each look asks the servers anew"
        if len(ground.spawned()) > started:
            seen += f", {len(ground.spawned()) - started} processes started"
        ground.say(cells := {"list_changed": seen})
    return cells


async def collision(ground: Ground) -> Cells:
    """Two servers have the same three tools."""
    async with ground.peer.opened(ground.servers(2)) as peer:
        try:
            names = await peer.together()
            distinct = len(set(names))
            words = f"{distinct} names for 6 tools" + ("" if len(names) == distinct else f", {len(names)} in the list")
        except Exception as error:
            words = short(error)
        ground.say(cells := {"the same names in two servers": words})
    return cells


async def close(ground: Ground) -> Cells:
    """Three servers, one of which ignores what asks it to end and has a child in a session of its own."""
    async with _three(ground) as peer:
        await peer.tools()
        begun = perf_counter()
    took = perf_counter() - begun
    await anyio.sleep(1)
    ground.say(cells := {"close, ms": took * 1e3, "processes left after close": len(living(ground.folder))})
    return cells


async def killed(ground: Ground) -> Cells:
    """The same, and then `run.py` kills this process."""
    async with _three(ground) as peer:
        await peer.tools()
        print("ready", flush=True)
        await anyio.sleep(600)
    return {}


@asynccontextmanager
async def _three(ground: Ground) -> AsyncIterator[Adapter]:
    async with ground.peer.opened({**ground.servers(2), "bad": ground.command("bad", "stubborn")}) as peer:
        yield peer


ROWS: dict[str, Callable[[Ground], Awaitable[Cells]]] = {
    "connect 1": functools.partial(connect, count=1),
    "connect 10": functools.partial(connect, count=10),
    "connect 40": functools.partial(connect, count=40),
    "calls": calls,
    "hanging": hanging,
    "crash": crash,
    "recovery": recovery,
    "change": change,
    "list_changed": list_changed,
    "collision": collision,
    "close": close,
    "killed": killed,
}


def main() -> None:
    """Run one row with one peer."""
    name, row, folder, *quick = sys.argv[1:]
    peer: type[Adapter] = importlib.import_module(f"peer_{name}").Peer
    ground = Ground(peer, Path(folder), bool(quick))

    async def run() -> None:
        for each in row.split("+"):
            ground.printed, ground.cells = False, {}
            try:
                await ROWS[each](ground)
            except Exception as error:
                ground.say({**ground.cells, "could not": f"it ended with {short(error)}"})

    anyio.run(run, backend=peer.backend)


if __name__ == "__main__":
    main()
