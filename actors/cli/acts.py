"""The acts of the demo: each does one thing to real servers, through public names alone, and holds claims against what it saw.

Three servers that ship with Playbill play: clock, notes and dice. An act is an async function of a `Scene`; it claims, and
goes on after a false claim; what it raises ends the demo as a false claim (see `demo`).
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio
from attrs import define, field

from .. import servers
from ..model.phase import WORDS
from ..model.snapshot import Snapshot
from .processes import alive, poll
from .render import Table, summary
from .stage import Stage

if TYPE_CHECKING:
    from ..host import Host

__all__ = ["ACTS", "Act", "Scene", "first_config", "write_config"]

_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CALLERS = 4
_CALLS_BEFORE = 20
"""How many calls must have been answered before the kill, so that it strikes in the midst of calls."""


@define
class Scene:
    """What an act works with.

    Args:
        host: open, on ``config``.
        config: the temporary mcp.json.
        stage: where claims are made.
        wait: seconds that any one wait may take.
        pids: every server process seen so far.
    """

    host: Host
    config: Path
    stage: Stage
    wait: float
    pids: set[int] = field(factory=set)

    def processes(self) -> dict[str, tuple[int | None, int]]:
        """Server → (pid, how often restarted): what must not change when nothing is to be touched."""
        found = {server.name: (server.pid, server.restarts) for server in self.host.snapshot().model.servers}
        self.pids.update(pid for pid, _ in found.values() if pid is not None)
        return found

    async def until(self, holds: Callable[[Snapshot], bool]) -> bool:
        """Wait until a snapshot holds something; False when none did in time."""
        with trio.move_on_after(self.wait):
            async for snapshot in self.host.changes():
                if holds(snapshot):
                    self.processes()
                    return True
        return False

    async def gone(self, pid: int | None) -> bool:
        """Wait until a process is gone, its zombie too; False when it is still there in time."""
        return pid is not None and await poll(lambda: not alive(pid), self.wait)


Act = Callable[[Scene], Awaitable[None]]


def _entry(server: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(servers.path(server))]}


def write_config(path: Path, text: dict[str, Any]) -> None:
    """Write an mcp.json as a person's editor would: the whole file anew."""
    path.write_text(json.dumps({"mcpServers": text}, indent=2) + "\n", encoding="utf-8")


def first_config() -> dict[str, Any]:
    """The servers the demo begins with."""
    return {name: _entry(name) for name in servers.NAMES}


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]
    return found


async def catalog(scene: Scene) -> None:
    """Act 1: three servers start side by side; their tools become one list."""
    scene.stage.act("The catalog", "Three servers start side by side; their tools become one list for the model.")
    readiness = await scene.host.ready(timeout=scene.wait)
    scene.processes()
    snapshot = scene.host.snapshot()
    scene.stage.show(
        Table(
            ("WIRE NAME", "WHAT IT DOES"), tuple((t.wire_name, summary(t.description)) for t in snapshot.catalog.tools)
        )
    )
    missing = "; ".join(f"{name}: {reason}" for name, reason in readiness.missing.items())
    scene.stage.claim(
        "clock, notes and dice are ready", sorted(readiness.ready) == sorted(servers.NAMES), missing or _pids(scene)
    )
    names = [tool.wire_name for tool in snapshot.catalog.tools]
    advertised = sum(len(server.tools) for server in snapshot.model.servers)
    scene.stage.claim("every tool they have is in the catalog", 0 < advertised == len(names), f"{len(names)} tools")
    scene.stage.claim(
        "each under a name of its own that every provider takes",
        len(set(names)) == len(names) and all(map(_LEGAL.fullmatch, names)),
    )
    result = await scene.host.call("mcp__clock__now", {})
    scene.stage.claim("a call by that name is answered", not result.is_error, f"mcp__clock__now: {_text(result)}")


async def toggle(scene: Scene) -> None:
    """Act 2: one tool is switched off and on; no process notices."""
    scene.stage.act("A toggle", "dice/roll is switched off, and on again. No server may notice.")
    before, digest = scene.processes(), scene.host.snapshot().catalog.digest
    snapshot = await scene.host.tool_set_enabled("dice", "roll", False)
    tool = snapshot.model.tool("dice", "roll")
    scene.stage.claim("switched off, it leaves the catalog", snapshot.catalog.tool("mcp__dice__roll") is None)
    scene.stage.claim(
        "it stays listed, as excluded",
        tool is not None and tool.verdict == "excluded",
        f"verdict: {tool.verdict}" if tool else "it vanished",
    )
    excluded = _read(scene.config)["dice"].get("tools", {}).get("exclude")
    scene.stage.claim("mcp.json says so", excluded == ["roll"], f'"tools": {{"exclude": {json.dumps(excluded)}}}')
    # Each server answers once, so that one that is being replaced behind our back is found out.
    await _each_answers(scene)
    off = scene.processes()
    snapshot = await scene.host.tool_set_enabled("dice", "roll", True)
    scene.stage.claim(
        "switched on, the catalog is what it was, byte for byte",
        snapshot.catalog.digest == digest,
        f"digest {snapshot.catalog.digest[:12]}",
    )
    await _each_answers(scene)
    scene.stage.claim("the same processes run as before", before == off == scene.processes(), _changed(scene, before))


async def kill(scene: Scene) -> None:
    """Act 3: one server is killed while another is being called."""
    scene.stage.act(
        "A kill -9", "notes is killed while clock is being called. clock may not notice; notes must come back."
    )
    snapshot = scene.host.snapshot()
    notes = snapshot.model.server("notes")
    pid = None if notes is None else notes.pid
    if pid is None:
        scene.stage.claim("notes runs, so that it can be killed", False)
        return
    calls: Counter[str] = Counter()
    digests = {snapshot.catalog.digest}
    story: list[str] = []

    async def watch() -> None:
        async for snapshot in scene.host.changes():
            digests.add(snapshot.catalog.digest)
            server = snapshot.model.server("notes")
            word = "gone" if server is None else WORDS[server.phase]
            if story[-1:] != [word]:
                story.append(word)

    async def call() -> None:
        while True:
            try:
                result = await scene.host.call("mcp__clock__wait", {"seconds": 0.01})
                calls["failed" if result.is_error else "answered"] += 1
            except Exception as error:
                calls[f"failed: {error}"] += 1
            await trio.sleep(0.005)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        for _ in range(_CALLERS):
            nursery.start_soon(call)
        await poll(lambda: calls["answered"] >= _CALLS_BEFORE, scene.wait)
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows: os.kill ends it at once, too
        at_death = calls["answered"]
        back = await scene.until(lambda seen: _is_new(seen, "notes", pid))
        await poll(lambda: calls["answered"] > at_death, scene.wait)
        nursery.cancel_scope.cancel()

    after = scene.host.snapshot().model.server("notes")
    scene.stage.say(f"notes: {' → '.join(story)}")
    failures = {reason: count for reason, count in calls.items() if reason != "answered"}
    scene.stage.claim(
        "no call of clock failed",
        not failures and calls["answered"] > at_death,
        f"{calls['answered']} answered, {calls['answered'] - at_death} of them after the kill"
        + "".join(f"; {count} × {reason}" for reason, count in failures.items()),
    )
    now = "not back" if after is None else f"pid {pid} → {after.pid}"
    scene.stage.claim("notes came back by itself, as a new process", back, now)
    restarts = None if after is None else after.restarts
    scene.stage.claim("its restart is counted", restarts == 1, f"restarts: {restarts}")
    scene.stage.claim("the catalog did not change meanwhile", len(digests) == 1, "notes' tools stayed listed")
    result = await scene.host.call("mcp__notes__titles", {})
    scene.stage.claim("it answers again", not result.is_error, f"mcp__notes__titles: {_text(result)}")


async def reload(scene: Scene) -> None:
    """Act 4: the file is edited by hand; only what changed is started and stopped."""
    scene.stage.act("A reload", "mcp.json is edited: scratch is new, dice is removed, the others stay as they are.")
    before = scene.processes()
    entries = _read(scene.config)
    del entries["dice"]
    write_config(scene.config, {**entries, "scratch": _entry("notes")})
    snapshot = await scene.host.reload()
    model = snapshot.model
    scene.stage.claim("dice's row is gone at once", model.server("dice") is None and _tools(snapshot, "dice") == 0)
    ready = await scene.until(lambda seen: _is_new(seen, "scratch", None))
    now = scene.processes()
    scene.stage.claim(
        "scratch is started, and its tools are in the catalog",
        ready and _tools(scene.host.snapshot(), "scratch") > 0,
        f"pid {now.get('scratch', (None, 0))[0]}, {_tools(scene.host.snapshot(), 'scratch')} tools",
    )
    dice = before.get("dice", (None, 0))[0]
    scene.stage.claim("dice's process ended", await scene.gone(dice), f"pid {dice}")
    for name in ("clock", "notes"):
        pid = before.get(name, (None, 0))[0]
        same = pid is not None and scene.processes().get(name) == before[name] and alive(pid)
        scene.stage.claim(f"{name} was not touched", same, f"pid {pid} → {now.get(name, (None, 0))[0]}")


ACTS: tuple[Act, ...] = (catalog, toggle, kill, reload)


async def _each_answers(scene: Scene) -> None:
    for name in ("mcp__clock__now", "mcp__notes__titles", "mcp__dice__flip"):
        result = await scene.host.call(name, {})
        if result.is_error:
            raise RuntimeError(f"{name}: {_text(result)}")


def _is_new(snapshot: Snapshot, name: str, old: int | None) -> bool:
    server = snapshot.model.server(name)
    return server is not None and server.phase == "ready" and server.pid not in (None, old)


def _tools(snapshot: Snapshot, server: str) -> int:
    return sum(tool.server == server for tool in snapshot.catalog.tools)


def _text(result: Any) -> str:
    return " ".join(getattr(block, "text", "") for block in result.content)


def _pids(scene: Scene) -> str:
    return ", ".join(f"{name} {pid}" for name, (pid, _) in scene.processes().items())


def _changed(scene: Scene, before: dict[str, tuple[int | None, int]]) -> str:
    now = scene.processes()
    moved = [f"{name}: pid {pid} → {now.get(name, (None, 0))[0]}" for name, (pid, _) in before.items()]
    return "; ".join(moved) if now != before else _pids(scene)
