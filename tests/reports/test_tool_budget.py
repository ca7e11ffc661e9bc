"""More tools than a request may have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playbill.actors import NativeTool, open_host
from playbill.actors.edge.config.file import FileStore
from playbill.actors.testing import ScriptedServers

from .conftest import PATIENCE, Project, opened, said, small, virtual_time

SIZES = {"huge": 300, "big": 161, "large": 136, "wide": 91} | {f"s{n}": 1 + n % 4 for n in range(10)}


def sized(count: int) -> dict[str, Any]:
    """A server of so many tools."""
    return small(f"""
        names = [f"t{{n:03}}" for n in range({count})]
        serve(lambda cursor: listed(*names), lambda id_, name: write(line(id=id_, result=text(name))))
    """)


async def test_b066_a_huge_server_pushes_out_no_native_tool_and_not_those_that_rank_before_it(
    project: Project,
) -> None:
    natives = [NativeTool(f"own{n}", "ours", {"type": "object", "properties": {}}, lambda: "own") for n in range(5)]
    entries = {name: sized(count) for name, count in SIZES.items()}
    # What the huge ones leave to the others is a matter of rank, and of pins: the first in the file as it comes.
    for name in ("huge", "big", "large", "wide"):
        entries[name]["priority"] = -1
    entries["wide"]["tools"] = {"pin": ["t090"]}
    project.write(**entries)
    async with open_host(project.path, native_tools=natives, budget=100) as host:
        assert await host.ready(timeout=PATIENCE)
        snapshot = host.snapshot()
        sent = [(tool.server, tool.bare) for tool in snapshot.catalog.tools]
        assert len(sent) == 100
        assert sent[:5] == [(None, f"own{n}") for n in range(5)]
        assert said(await host.call("own4", timeout=PATIENCE)) == "own"
        for name, count in SIZES.items():
            if name.startswith("s"):
                assert sum(server == name for server, _ in sent) == count
        assert ("wide", "t090") in sent
        wanted = 5 + sum(SIZES.values())
        warning = snapshot.model.budget_warning()
        assert warning is not None
        assert f"{wanted} tools over the budget of 100 — {wanted - 100} MCP tools were dropped" in warning
        assert snapshot.model.budget_details() == "mostly from huge (300), big (161), large (136)"
        # Nothing vanished: each of the others says its rank, and what would bring it back.
        assert len(snapshot.catalog.trimmed) == wanted - 100
        told = host.why("large", "t135")
        assert (told.verdict, told.budget, told.wanted) == ("over_budget", 100, wanted)
        assert said(await host.call_tool("large", "t135", timeout=PATIENCE)) == "t135"


@virtual_time
async def test_b069_which_tools_are_hidden_follows_the_order_of_the_file_and_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    tools = [f"t{n:02}" for n in range(20)]

    def write(*names: str) -> None:
        path.write_text(json.dumps({"mcpServers": {name: {"command": name} for name in names}}))

    write("a", "b", "c")
    servers = ScriptedServers(a=list(reversed(tools)), b=tools, c=tools)
    async with opened(servers, store=FileStore(path), budget=40) as host:
        await host.ready(timeout=5)
        for order in (("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a")):
            write(*order)
            await host.reload()
            snapshot = host.snapshot()
            last = order[-1]
            # The last server in the file is hidden whole, and nothing else differs; the order in which they are sent,
            # and in which a server lists them, has no part in it.
            assert {tool.server for tool in snapshot.catalog.tools} == set(order) - {last}
            assert [tool.wire_name for tool in snapshot.catalog.tools] == sorted(
                f"mcp__{name}__{tool}" for name in order[:-1] for tool in tools
            )
            assert {(ref.server, ref.bare) for ref in snapshot.catalog.trimmed} == {(last, tool) for tool in tools}
            hidden = {
                (server.name, tool.bare)
                for server in snapshot.model.servers
                for tool in server.tools
                if tool.verdict == "over_budget"
            }
            assert hidden == {(last, tool) for tool in tools}
            assert snapshot.model.trimmed_count() == 20
            warning = snapshot.model.budget_warning()
            assert warning is not None
            assert "60 tools over the budget of 40 — 20 MCP tools were dropped" in warning
            for at, tool in enumerate(tools):
                told = str(host.why(last, tool))
                assert f"it is number {41 + at} of 60 tools and the budget is 40: disable {1 + at} tool" in told
        assert servers.spawns == {"a": 1, "b": 1, "c": 1}
