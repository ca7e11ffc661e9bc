"""A host that is only a cell and a diary, for the view: what it publishes is up to the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import trio
from attrs import evolve
from playbill.actors.model.catalog import Catalog
from playbill.actors.model.errors import UnknownServer
from playbill.actors.model.snapshot import PluginModel, ServerState, Snapshot, ToolState
from playbill.supervision import Cell


def tool(bare: str, **more: Any) -> ToolState:
    """A tool on the wire."""
    more.setdefault("description", f"Does {bare}")
    return ToolState(**{"bare": bare, "enabled": True, "wire_name": f"mcp__s__{bare}", "verdict": "on_wire", **more})


def server(name: str, *tools: ToolState, **more: Any) -> ServerState:
    """A server that is ready."""
    return ServerState(
        **{"name": name, "phase": "ready", "connected": True, "list_state": "current", "tools": tools, **more}
    )


def snapshot(*servers: ServerState, version: int = 1, **more: Any) -> Snapshot:
    """A snapshot of servers."""
    return Snapshot(version, version, PluginModel(servers=servers, budget=100, **more), Catalog(version, (), (), "0"))


class ScriptedHost:
    """Publishes what it is told to, and answers every operation with the snapshot now.

    Args:
        first: the first snapshot.
    """

    def __init__(self, first: Snapshot) -> None:
        self.cell = Cell(first)
        self.asked: list[tuple[Any, ...]] = []
        self.refuse: Exception | None = None
        self.gate: trio.Event | None = None
        self.broken: Exception | None = None

    def publish(self, *servers: ServerState, **more: Any) -> None:
        """Publish a snapshot of servers, newer than the last."""
        self.cell.set(snapshot(*servers, version=self.cell.value.version + 1, **more))

    def snapshot(self) -> Snapshot:
        """As a `Host`."""
        return self.cell.value

    def changes(self) -> AsyncIterator[Snapshot]:
        """As a `Host`; raises what is in ``broken`` after the first one."""
        return self.cell.changes() if self.broken is None else self._broken()

    async def _broken(self) -> AsyncIterator[Snapshot]:
        yield self.cell.value
        assert self.broken is not None
        raise self.broken

    def stderr_tail(self, name: str) -> str:
        """As a `Host`."""
        if self.cell.value.model.server(name) is None:
            raise UnknownServer(name)
        return f"{name} said this\nand that"

    async def _do(self, *what: Any) -> Snapshot:
        self.asked.append(what)
        await trio.lowlevel.checkpoint()
        if self.gate is not None:
            await self.gate.wait()
        if self.refuse is not None:
            raise self.refuse
        return self.cell.value

    async def tool_set_enabled(self, server: str, bare: str, on: bool) -> Snapshot:
        """As a `Host`; it is published at once."""
        state = self.cell.value.model.server(server)
        done = await self._do("tool", server, bare, on)
        if state is None or self.refuse is not None:
            return done
        tools = tuple(
            evolve(each, enabled=on, verdict="on_wire" if on else "excluded") if each.bare == bare else each
            for each in state.tools
        )
        others = [evolve(each, tools=tools) if each.name == server else each for each in self.cell.value.model.servers]
        self.publish(*others)
        return self.cell.value

    async def server_set_enabled(self, name: str, on: bool) -> Snapshot:
        """As a `Host`."""
        return await self._do("server", name, on)

    async def pin(self, server: str, bare: str, on: bool) -> Snapshot:
        """As a `Host`."""
        return await self._do("pin", server, bare, on)

    async def plugin_add(
        self,
        name: str,
        command: str | None = None,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        url: str | None = None,
    ) -> Snapshot:
        """As a `Host`."""
        return await self._do("add", name, command, tuple(args), env, url)

    async def plugin_remove(self, name: str) -> Snapshot:
        """As a `Host`."""
        return await self._do("remove", name)

    async def reload(self) -> Snapshot:
        """As a `Host`."""
        return await self._do("reload")

    async def restart(self, name: str) -> Snapshot:
        """As a `Host`."""
        return await self._do("restart", name)

    async def revive(self, name: str) -> Snapshot:
        """As a `Host`."""
        return await self._do("revive", name)
