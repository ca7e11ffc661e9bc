"""One kind of fault with one peer: what it costs healthy servers' calls, and whether bad ones come back. See `isolation.py`.

    python under_fault.py PEER KIND FOLDER ROUNDS SECONDS

Runs in the peer's own environment; the last line on stdout is the cell, in JSON. Nothing here knows any peer: see `adapter.py`.
Where a peer starts no dead server again, one of the bad servers dies in each round, so that there is a death in each; what its
user's own restart does, if it has one, is tried after the last round.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import os
import re
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import anyio
from adapter import Adapter, Cannot
from workload import Ground, living

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from load import AT_ONCE, SHORT, Load, orders, over, run_load, short
from usage import Burners, cpu_below

SERVERS, BAD = 10, 3
SEQUENTIAL, CONCURRENT = 100, 200
CALL = 5.0
"""Seconds after which a call of a healthy server is an error."""

LESS = 0.04
"""How much of the load a peer gets that starts a server for each call, and so cannot carry it."""
PAUSE = 0.05
BY_ITSELF, ASKED, AFTER = 5.0, 5.0, 10.0
"""Seconds in which a server must be callable again: by itself, when restarted by its user, after a flood of it."""

FLOODS = ("stdout", "stderr", "storm")


class Scene:
    """One peer, its servers, and what happened.

    Args:
        ground: where servers say that they were started.
        peer: open.
    """

    def __init__(self, ground: Ground, peer: Adapter) -> None:
        self.ground = ground
        self.peer = peer
        self.bad = [f"s{number}" for number in range(BAD)]
        self.healthy = [f"s{number}" for number in range(SERVERS // 2, SERVERS)]
        self.scale = 1.0
        self.faults = self.round = 0
        self.hopeless = False
        self.since: dict[str, float] = {}
        self.back: list[float] = []
        self.asked: list[float] = []
        self.words: dict[str, int] = {}

    def note(self, words: str) -> None:
        """What happened, in words; how often. Which server it was, does not matter."""
        words = re.sub(r"\bs\d\b", "sN", words)
        self.words[words] = self.words.get(words, 0) + 1

    def turn_of(self, server: str) -> bool:
        """Whether it dies in this round."""
        return self.peer.heals or server == self.bad[self.round % BAD]

    async def do(self, server: str, how: str) -> None:
        """Have a server misbehave; that it does not answer is no error of the peer's."""
        with contextlib.suppress(Exception), anyio.fail_after(CALL):
            await self.peer.call(server, "misbehave", {"how": how})

    async def answers(self, server: str) -> bool:
        """Whether one call of a server succeeds."""
        try:
            with anyio.fail_after(1.0):
                await self.peer.call(server, "echo", {"text": "x"})
        except Exception as error:
            self.note(f"a call of the bad one: {short(error)}")
            return False
        return True

    async def until_back(self, server: str, seconds: float) -> bool:
        """Call a server until it answers, for so long."""
        begun = self.since.get(server, perf_counter())
        end = perf_counter() + seconds
        while not await self.answers(server):
            if perf_counter() > end:
                return False
            await anyio.sleep(PAUSE)
        self.back.append(perf_counter() - begun)
        self.since.pop(server, None)
        return True


Fault = Callable[[Scene, str], Awaitable[None]]


async def exits(scene: Scene, server: str) -> None:
    if not scene.turn_of(server):
        await anyio.sleep_forever()
    await scene.do(server, "exit")
    await struck(scene, server)


async def killed(scene: Scene, server: str) -> None:
    if not scene.turn_of(server):
        await anyio.sleep_forever()
    if scene.ground.kill(server):
        await struck(scene, server)
    else:
        scene.note("no process of it lives between calls: nothing to kill")
        await anyio.sleep_forever()


async def struck(scene: Scene, server: str) -> None:
    """It died: call it until it is back, once a block."""
    scene.faults += 1
    scene.since[server] = perf_counter()
    await scene.until_back(server, BY_ITSELF)
    await anyio.sleep_forever()


async def hangs(scene: Scene, server: str) -> None:
    # It was killed before the block, and hangs as soon as anybody starts it.
    scene.faults += 1
    await scene.until_back(server, 60.0)
    await anyio.sleep_forever()


async def floods(scene: Scene, server: str, how: str) -> None:
    scene.faults += 1
    await scene.do(server, how)
    await anyio.sleep(PAUSE)


async def storms(scene: Scene, server: str) -> None:
    scene.faults += 1
    await scene.do(server, "storm")
    await anyio.sleep(0.5)


async def refuses(scene: Scene, server: str) -> None:
    scene.faults += 1
    await scene.do(server, "stubborn")
    scene.since[server] = perf_counter()
    try:
        await scene.peer.restart(server)
    except Cannot as cannot:
        scene.note(f"a restart, which it refuses: {cannot}")
        scene.since.pop(server, None)
    except Exception as error:
        scene.note(f"a restart, which it refuses: {short(error)}")
    else:
        await scene.until_back(server, BY_ITSELF)
    await anyio.sleep_forever()


KINDS: dict[str, Fault] = {
    "exit": exits,
    "kill": killed,
    "hang": hangs,
    "stdout": lambda scene, server: floods(scene, server, "stdout"),
    "stderr": lambda scene, server: floods(scene, server, "stderr"),
    "storm": storms,
    "stubborn": refuses,
}


class Arm:
    """What was seen in all blocks of one arm."""

    def __init__(self) -> None:
        self.loads = {"sequential": Load(), f"{AT_ONCE} at once": Load()}
        self.wall = self.below = self.burned = 0.0

    def figures(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "loads": {name: load.figures() for name, load in self.loads.items()},
            "CPU below %": round(100 * self.below / max(self.wall, 1e-9), 1),
            "burned %": round(100 * self.burned / max(self.wall, 1e-9), 1),
        }


async def block(
    scene: Scene, arm: Arm, seconds: float, fault: Fault | None, burn: float, piece: float = 0.0, *, fresh: bool = False
) -> tuple[float, float]:
    """One block of an arm; returns the CPU seconds a second of all below the peer, and how many faults a second."""

    async def keep_on(server: str) -> None:
        assert fault is not None
        while True:
            await fault(scene, server)

    async def call(server: str) -> None:
        with anyio.fail_after(CALL):
            await scene.peer.call(server, "echo", {"text": "x"})

    if fault is hangs:
        await all_hung(scene)
    burners = Burners(burn, BAD, piece, fresh=fresh)
    try:
        async with anyio.create_task_group() as group:
            if fault is not None:
                for server in scene.bad:
                    group.start_soon(keep_on, server)
            await anyio.sleep(0.1)
            begun, (below, burned), before = perf_counter(), cpu_below(burners.pids), scene.faults
            for load, callers, rate in zip(arm.loads.values(), (1, AT_ONCE), (SEQUENTIAL, CONCURRENT), strict=True):
                await run_load(call, scene.healthy, load, callers, rate * scene.scale, seconds / 2)
            wall, now, faults = perf_counter() - begun, cpu_below(burners.pids), scene.faults - before
            group.cancel_scope.cancel()
    finally:
        burners.end()
    arm.wall += wall
    arm.below += now[0] - below
    arm.burned += now[1] - burned
    (scene.ground.folder / "hang").unlink(missing_ok=True)
    if fault is not None:
        deaths = fault in (exits, killed, refuses)
        # What is left of a flood must not get into the next block, however often it took too long before.
        patience = AFTER if not deaths and fault is not hangs else 0.0 if scene.hopeless else BY_ITSELF
        await recovered(scene, [*scene.since] if deaths else scene.bad, patience)
        scene.round += 1
    return (now[0] - below) / wall, faults / wall


async def all_hung(scene: Scene) -> None:
    """Kill the bad ones, and wait until those that are started again by themselves hang."""
    if not scene.peer.heals:
        if scene.round < BAD:
            scene.ground.kill(scene.bad[scene.round])
        scene.note("it starts no server again: a killed one is dead, and does not hang")
        return
    (scene.ground.folder / "hang").touch()
    before = len(scene.ground.spawned())
    killed = [scene.ground.kill(server) for server in scene.bad]
    if any(killed):
        async with anyio.create_task_group() as group:
            for server in scene.bad:
                group.start_soon(scene.answers, server)
            end = perf_counter() + BY_ITSELF
            # Nothing tells of a start but the file.
            while len(scene.ground.spawned()) < before + sum(killed) and perf_counter() < end:  # noqa: ASYNC110
                await anyio.sleep(PAUSE)


async def recovered(scene: Scene, struck: list[str], patience: float) -> None:
    """After a block of faults: is each of these callable again by itself, within so many seconds?"""

    async def look(server: str) -> None:
        if not await scene.until_back(server, patience):
            scene.hopeless = True

    async with anyio.create_task_group() as group:
        for server in struck:
            group.start_soon(look, server)


async def restarted(scene: Scene) -> None:
    """After all rounds: what its user's own restart does for one that did not come back."""
    server, begun = scene.bad[0], perf_counter()
    try:
        # In the task that opened them, and without a scope of anyio's around it: some peers' must be left in order.
        await limited(scene, lambda: scene.peer.restart(server))
    except Cannot as cannot:
        scene.note(f"its user's own restart: {cannot}")
    except Exception as error:
        scene.note(f"its user's own restart: {short(error)}")
    else:
        if await scene.answers(server):
            scene.asked.append(perf_counter() - begun)
        else:
            scene.note("its user's own restart: returned, and the server does not answer")


async def limited(scene: Scene, work: Callable[[], Awaitable[object]]) -> None:
    """Within `ASKED` seconds."""
    if scene.peer.backend == "asyncio":
        async with asyncio.timeout(ASKED):
            await work()
    else:
        with anyio.fail_after(ASKED):
            await work()


def verdict(scene: Scene, kind: str) -> str:
    """In words: is a bad server callable again?"""
    back = f"{median(scene.back) * 1e3:.0f} ms" if scene.back else ""
    if kind == "kill" and not scene.faults:
        return "no process lives between calls"
    if kind == "stubborn" and any("no such operation" in words for words in scene.words):
        return "it has no restart of one server"
    if kind in FLOODS and scene.hopeless:
        return f"not within {AFTER:g} s after it ended"
    if kind == "hang" and not scene.peer.heals:
        return "dead, and does not hang: nobody starts it again"
    if scene.hopeless or not back:
        if scene.asked:
            return f"not by itself; when its user restarts it, {median(scene.asked) * 1e3:.0f} ms"
        return "not by itself" if scene.hopeless else "not known"
    if kind in FLOODS:
        return f"{back} after it ended"
    return f"restarted, {back}" if kind == "stubborn" else f"by itself, {back}"


async def measure(scene: Scene, cell: dict[str, Any], kind: str, rounds: int, seconds: float) -> None:
    """All blocks; the cell is filled as they are done."""
    fault, arms = KINDS[kind], {"calm": Arm(), "faulty": Arm(), "busy": Arm()}

    def tell() -> None:
        loads = arms["calm"].loads
        cell["arms"] = {name: arm.figures() for name, arm in arms.items()}
        cell["p99 over busy"] = {load: over(arms["faulty"].loads[load], arms["busy"].loads[load]) for load in loads}
        cell["errors"] = sum(load.errors for load in arms["faulty"].loads.values())
        cell["errors without faults"] = sum(load.errors for load in arms["calm"].loads.values())
        cell.update({"faults": scene.faults, "callable again": verdict(scene, kind), "words": scene.words})
        cell["back ms"] = [round(each * 1e3, 1) for each in scene.back]
        cell["asked ms"] = [round(each * 1e3, 1) for each in scene.asked]

    for server in [*scene.bad, *scene.healthy]:
        await scene.peer.call(server, "echo", {"text": "x"})
    begun, started = perf_counter(), len(scene.ground.spawned())
    for server in scene.healthy[:3]:
        await scene.peer.call(server, "echo", {"text": "x"})
    if len(scene.ground.spawned()) > started:
        scene.scale = LESS
        took = (perf_counter() - begun) / 3 * 1e3
        cell["load"] = f"{LESS:g} of the others': each call starts a server, and takes {took:.0f} ms"
    # What is imported is frozen, for every peer: a full collection stops a program for long, whoever makes the garbage.
    gc.collect()
    gc.freeze()
    (calm, _), burn, rate = await block(scene, Arm(), seconds / 2, None, 0.0), 0.0, 0.0
    try:
        for order in orders(rounds):
            for name in order:
                long = seconds * (SHORT if name == "calm" else 1.0)
                busy = max(0.0, burn) if name == "busy" else 0.0
                piece = burn / rate if rate else 0.0
                wrong = fault if name == "faulty" else None
                used, seen = await block(scene, arms[name], long, wrong, busy, piece, fresh=kind not in FLOODS)
                if name == "calm":
                    calm = used
                elif name == "faulty":
                    burn, rate = used - calm, seen
        tell()
        if scene.hopeless and kind not in FLOODS:
            await restarted(scene)
    finally:
        tell()


@contextlib.asynccontextmanager
async def bounded(ground: Ground) -> AsyncIterator[Adapter]:
    servers = {
        name: ground.command(name, *["faulty"] * (at < BAD)) for at, name in enumerate(f"s{n}" for n in range(SERVERS))
    }
    async with ground.peer.opened(servers) as peer:
        await peer.tools()
        yield peer


def main() -> None:
    """Measure one cell and print it."""
    name, kind, folder, rounds, seconds = sys.argv[1:]
    peer: type[Adapter] = importlib.import_module(f"peer_{name}").Peer
    ground = Ground(peer, Path(folder), False)
    cell: dict[str, Any] = {}

    def failed(error: BaseException | str) -> None:
        ground.say({**cell, "the group failed": error if isinstance(error, str) else short(error)})

    def give_up(words: str) -> None:
        failed(words)
        leave()

    def leave() -> None:
        for pid in living(ground.folder):
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        sys.stdout.flush()
        os._exit(0)

    async def run() -> None:
        try:
            async with bounded(ground) as adapter:
                await measure(Scene(ground, adapter), cell, kind, int(rounds), float(seconds))
                ground.say(cell)  # before it is left, which may hang
        except anyio.get_cancelled_exc_class():
            # What ended it comes out when all is left; if it never is, this is said.
            late = threading.Timer(5.0, give_up, ("the task that opened them was cancelled",))
            late.daemon = True
            late.start()
            raise

    try:
        anyio.run(run, backend=peer.backend)
    except BaseException as error:
        failed(error)
    leave()


if __name__ == "__main__":
    main()
