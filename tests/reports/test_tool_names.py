"""Names that a provider refuses, or that two tools would share."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playbill.actors import Catalog, Host, NativeTool, open_host

from .conftest import PATIENCE, Project, said, small


def echoing(*names: str, server: str = "") -> dict[str, Any]:
    """A server whose tools answer with its name, and their own as it was called."""
    return small(f"""
        names = json.loads({json.dumps(names)!r})
        serve(lambda cursor: listed(*names), lambda id_, name: write(line(id=id_, result=text({server!r} + name))))
    """)


def strict(catalog: Catalog) -> int:
    """A provider's answer to a request with these tools: 400 for all of it when one name is not to its taste."""
    body = json.loads(json.dumps(catalog.for_provider("openai")))
    names = [tool["function"]["name"] for tool in body]
    legal = all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
    return 200 if legal and len(set(names)) == len(names) else 400


async def answers(host: Host) -> dict[str, str]:
    """What each tool of the catalog answers, by wire name."""
    return {
        tool.wire_name: said(await host.call(tool.wire_name, timeout=PATIENCE))
        for tool in host.snapshot().catalog.tools
        if tool.server is not None
    }


async def test_b018_names_that_no_provider_takes_are_exposed_under_legal_ones_and_called_by_their_own(
    project: Project,
) -> None:
    names = ["a.b", "a/b", "a b", "ünïcode", "1x", "x" * 200, "a_b", "admin.list", "files/read", ""]
    project.write(a=echoing(*names))
    exposed = []
    for _ in range(2):
        async with open_host(project.path) as host:
            assert await host.ready(timeout=PATIENCE)
            catalog = host.snapshot().catalog
            assert strict(catalog) == 200
            exposed.append({tool.bare: tool.wire_name for tool in catalog.tools})
            assert len(set(exposed[-1].values())) == len(names)
            # Each reaches the tool of its original name, and is found under it.
            assert sorted((await answers(host)).values()) == sorted(names)
            for name, wire in exposed[-1].items():
                assert said(await host.call(wire, timeout=PATIENCE)) == name
    assert exposed[0] == exposed[1]
    assert set(exposed[0]) == set(names)


async def test_b019_every_name_that_the_protocol_allows_passes_a_strict_provider(project: Project) -> None:
    names = ["get.user", "getUser", "DATA_EXPORT_v2", "admin.tools.list", "files/read/all", "a-b", "a.", "/", "x" * 128]
    project.write(a=echoing(*names), **{"com.example/server": echoing(*names)})
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        catalog = host.snapshot().catalog
        assert len(catalog.tools) == 2 * len(names)
        assert strict(catalog) == 200
        assert sorted((await answers(host)).values()) == sorted(2 * names)


async def test_b020_a_long_server_name_before_long_tool_names_is_cut_in_a_stable_and_unique_way(
    project: Project,
) -> None:
    long = "server-" + "s" * 56
    assert len(long) == 63
    tools = ["t" * 60 + "_one", "t" * 60 + "_two"]
    entries = {long: echoing(*tools), "other": echoing(*tools), "thirty-characters-long-servers": echoing("t" * 50)}
    seen: list[dict[tuple[str, str], str]] = []
    for order in (list(entries), list(reversed(entries))):
        project.write(**{name: entries[name] for name in order})
        async with open_host(project.path) as host:
            assert await host.ready(timeout=PATIENCE)
            catalog = host.snapshot().catalog
            assert all(len(tool.wire_name) <= 64 for tool in catalog.tools)
            assert strict(catalog) == 200
            seen.append({(tool.server or "", tool.bare): tool.wire_name for tool in catalog.tools})
            before = host.snapshot().catalog.digest
            await host.restart(long)
            assert await host.ready(timeout=PATIENCE)
            assert host.snapshot().catalog.digest == before
    assert seen[0] == seen[1]
    assert len(set(seen[0].values())) == 5


@pytest.mark.parametrize(
    "servers",
    [["one", "two"], ["a b", "a_b", "A-b", "a-b", "a.b"], ["Git", "git"]],
    ids=["other names", "alike when made legal", "alike but for case"],
)
async def test_b079_tools_of_one_name_are_all_there_once_and_each_call_reaches_its_own_server(
    project: Project, servers: list[str]
) -> None:
    project.write(**{name: echoing("search", server=f"{name}: ") for name in servers})
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        catalog = host.snapshot().catalog
        assert strict(catalog) == 200
        assert [tool.bare for tool in catalog.tools] == ["search"] * len(servers)
        for tool in catalog.tools:
            assert said(await host.call(tool.wire_name, timeout=PATIENCE)) == f"{tool.server}: search"


async def test_b082_a_server_that_is_called_like_a_native_tool_hides_nothing_and_is_not_hidden(
    project: Project,
) -> None:
    native = NativeTool("browser", "our own", {"type": "object", "properties": {}}, lambda: "native")
    project.write(
        browser=echoing("browser", "open", server="browser: "),
        a=echoing("b__c", server="a: "),
        a__b=echoing("c", server="a__b: "),
    )
    async with open_host(project.path, native_tools=[native]) as host:
        assert await host.ready(timeout=PATIENCE)
        catalog = host.snapshot().catalog
        assert strict(catalog) == 200
        assert said(await host.call("browser", timeout=PATIENCE)) == "native"
        assert catalog.tools[0].wire_name == "browser"
        assert sorted((await answers(host)).values()) == ["a: b__c", "a__b: c", "browser: browser", "browser: open"]
        assert said(await host.call("mcp__browser__browser", timeout=PATIENCE)) == "browser: browser"
        # Who asks for the one among the tools of the other is told which is which.
        assert "native" not in str(host.why("browser", "browser"))
        assert "native tool" in str(host.why("a", "browser"))
    # The one clash that could be is refused where it is made.
    with pytest.raises(ValueError, match="mcp__"):
        NativeTool("mcp__browser__open", "ours", {"type": "object"}, print)
