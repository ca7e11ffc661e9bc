"""Tool lists that change, and lists of many pages."""

from __future__ import annotations

import pytest
from playbill.actors import Host, open_host

from .conftest import PATIENCE, Project, said, small, until


def names(host: Host) -> list[str]:
    return [tool.bare for tool in host.snapshot().model.server("a").tools]


async def test_b028_of_all_notices_only_the_one_for_tools_has_the_list_fetched_and_once(project: Project) -> None:
    server = small("""
        import time
        asked = []

        def tools(cursor):
            asked.append(cursor)
            return listed("others", "notify", "asked", *["late"] * (len(asked) > 1))

        def call(id_, name):
            if name == "others":
                for method in ("prompts/list_changed", "resources/list_changed", "unheard/of", "progress", "cancelled"):
                    write(line(method="notifications/" + method))
                time.sleep(0.3)  # enough to be asked for the list, were one of these taken for the right one
            elif name == "notify":
                write(line(method="notifications/tools/list_changed"))
            write(line(id=id_, result=text(str(len(asked)))))

        serve(tools, call)
    """)
    project.write(a=server)
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        await host.call("mcp__a__others", timeout=PATIENCE)
        assert said(await host.call("mcp__a__asked", timeout=PATIENCE)) == "1"
        await host.call("mcp__a__notify", timeout=PATIENCE)
        await until(host, lambda snapshot: snapshot.catalog.tool("mcp__a__late"))
        assert said(await host.call("mcp__a__asked", timeout=PATIENCE)) == "2"
        assert host.snapshot().model.server("a").restarts == 0


async def test_b030_the_tools_of_a_lazy_server_take_the_place_of_its_first_one(project: Project) -> None:
    server = small("""
        real = [f"tool{n}" for n in range(20)]
        now = ["status"]

        def call(id_, name):
            if name == "status":
                now[:] = real
                write(line(method="notifications/tools/list_changed"))
            write(line(id=id_, result=text(name)))

        serve(lambda cursor: listed(*now), call)
    """)
    project.write(a=server)
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        assert names(host) == ["status"]
        assert said(await host.call("mcp__a__status", timeout=PATIENCE)) == "status"
        snapshot = await until(host, lambda snapshot: snapshot.catalog.tool("mcp__a__tool19"))
        assert {tool.bare for tool in snapshot.catalog.tools} == {f"tool{n}" for n in range(20)}
        assert snapshot.model.tool("a", "status") is None
        assert said(await host.call("mcp__a__tool7", timeout=PATIENCE)) == "tool7"


async def test_b031_after_a_burst_of_notices_the_catalog_is_the_latest_list(project: Project) -> None:
    server = small("""
        now = ["burst", "asked", "first"]
        asked = []

        def call(id_, name):
            if name == "burst":
                for n in range(50):
                    now[2] = f"version{n}"
                    write(line(method="notifications/tools/list_changed"))
            write(line(id=id_, result=text(str(len(asked)))))

        serve(lambda cursor: asked.append(cursor) or listed(*now), call)
    """)
    project.write(a=server)
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        await host.call("mcp__a__burst", timeout=PATIENCE)
        await until(host, lambda snapshot: snapshot.catalog.tool("mcp__a__version49"))
        assert names(host) == ["burst", "asked", "version49"]
        assert len(host.snapshot().catalog.tools) == 3
        assert int(said(await host.call("mcp__a__asked", timeout=PATIENCE))) < 10


@pytest.mark.parametrize(
    ("next_cursor", "requests", "problem"),
    [
        ('"again"', 2, "leads back to an earlier one"),
        ('"B" if cursor == "A" else "A"', 3, "leads back to an earlier one"),
        ("str(len(asked))", 2, "has only tools of earlier pages"),
        ('""', 1, None),
    ],
    ids=["the same", "two in turn", "always another", "empty"],
)
async def test_b022_a_cursor_that_leads_nowhere_ends_with_each_tool_once_and_a_warning(
    project: Project, next_cursor: str, requests: int, problem: str | None
) -> None:
    server = small(f"""
        asked = []

        def tools(cursor):
            asked.append(cursor)
            more = ["one more"] if {next_cursor!r}.startswith('"B"') and len(asked) < 3 else []
            return {{**listed("asked", "x", *(f"{{each}} {{len(asked)}}" for each in more)), "nextCursor": {next_cursor}}}

        serve(tools, lambda id_, name: write(line(id=id_, result=text(str(len(asked))))))
    """)
    project.write(a=server)
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        listed = names(host)
        assert listed[:2] == ["asked", "x"]
        assert len(listed) == len(set(listed))
        error = host.snapshot().model.server("a").list_error
        assert error is None if problem is None else problem in (error or "")
        assert said(await host.call("mcp__a__asked", timeout=PATIENCE)) == str(requests)


async def test_b023_the_tools_of_all_pages_are_known_and_can_be_called(project: Project) -> None:
    server = small("""
        import base64
        every = [f"tool{n:03}" for n in range(101)]

        def tools(cursor):
            start = int(base64.b64decode(cursor)) if cursor else 0
            page = listed(*every[start : start + 50])
            if start + 50 < len(every):
                page["nextCursor"] = base64.b64encode(str(start + 50).encode()).decode()
            return page

        serve(tools, lambda id_, name: write(line(id=id_, result=text(name))))
    """)
    project.write(a=server)
    async with open_host(project.path, budget=200) as host:
        assert await host.ready(timeout=PATIENCE)
        every = [f"tool{n:03}" for n in range(101)]
        assert names(host) == every
        assert [tool.bare for tool in host.snapshot().catalog.tools] == every
        assert said(await host.call("mcp__a__tool100", timeout=PATIENCE)) == "tool100"
