"""Views: many agents over one pool of servers, each with a catalog of its own; and what a preview says beforehand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from playbill.actors import (
    Budget,
    Config,
    Host,
    HostClosed,
    NativeTool,
    Snapshot,
    ToolNotOffered,
    ToolRef,
    UnknownServer,
    UnknownTool,
    View,
)
from playbill.actors.model.profile import PROFILES
from playbill.actors.model.status import ToolDef
from playbill.actors.testing import Script, ScriptedServers
from trio.testing import wait_all_tasks_blocked

from .conftest import Open

ODD = ToolDef(
    "odd", input_schema={"type": "object", "oneOf": [{"required": ["a"]}], "properties": {"a": {"$ref": "#/x"}}}
)


async def mine() -> str:
    await trio.lowlevel.checkpoint()
    return "mine"


OWN = NativeTool("own", "ours", {"type": "object"}, mine)


def names(seen: View | Host | Snapshot) -> list[str]:
    snapshot = seen if isinstance(seen, Snapshot) else seen.snapshot()
    return [tool.wire_name for tool in snapshot.catalog.tools]


def all_text(result: Any) -> str:
    return " ".join(str(block.text) for block in result.content)


async def test_each_view_has_a_catalog_of_its_own_and_no_process(opened: Open) -> None:
    servers = ScriptedServers(a=["x", "y"], b=["z"])
    async with opened(servers, native_tools=[OWN]) as host:
        await host.ready(timeout=5)
        spawned = servers.spawns.total()
        reader, writer = host.view(include=["a"]), host.view(exclude=["a/x", "own"])
        small = host.view(budget=2)
        assert names(reader) == ["own", "mcp__a__x", "mcp__a__y"]
        assert names(writer) == ["mcp__a__y", "mcp__b__z"]
        assert names(small) == ["own", "mcp__a__x"]
        assert names(host) == ["own", "mcp__a__x", "mcp__a__y", "mcp__b__z"]
        assert small.snapshot().model.budget_warning() is not None
        assert host.snapshot().model.budget_warning() is None
        assert str(reader.why("b", "z")).endswith("not in this view's include list")
        assert "excluded by this view" in str(writer.why("a", "x"))
        assert host.why("a", "x").verdict == "on_wire"
        assert servers.spawns.total() == spawned


async def test_a_view_is_of_one_moment_with_the_host_and_the_same_object_while_nothing_changes(opened: Open) -> None:
    servers = ScriptedServers(a=["x", "y"], b=["z"])
    async with opened(servers) as host:
        view = host.view(exclude=["b"])
        assert [server.phase for server in view.snapshot().model.servers] == ["starting", "starting"]
        await host.ready(timeout=5)
        one = view.snapshot()
        assert view.snapshot() is one
        assert one.model.server("a") == host.snapshot().model.server("a")
        shown = await host.tool_set_enabled("b", "z", False)
        two = view.snapshot()
        assert two.config_rev == shown.config_rev
        assert two.version == one.version + 1
        assert two.catalog is one.catalog
        await host.tool_set_enabled("a", "x", False)
        assert view.snapshot().catalog.digest != one.catalog.digest
        await host.tool_set_enabled("a", "x", True)
        assert view.snapshot().catalog.digest == one.catalog.digest


async def test_a_view_shows_nothing_that_the_host_has_not_published_yet(opened: Open) -> None:
    held, let_go = [False], trio.Event()

    class Late:
        async def hit(self, site: str, who: str) -> None:
            await trio.lowlevel.checkpoint()
            if site == "projector" and held[0]:
                await let_go.wait()

    servers = ScriptedServers(a=["x"])
    async with opened(servers, sites=Late()) as host:
        await host.ready(timeout=5)
        held[0] = True
        servers.live["a"].lose()
        await wait_all_tasks_blocked()
        assert host.snapshot().model.servers[0].phase == "ready"
        assert host.view(exclude=["b"]).snapshot().model == host.snapshot().model
        let_go.set()
        await wait_all_tasks_blocked()
        assert host.snapshot().model.servers[0].phase != "ready"


async def test_what_a_view_names_may_come_later(opened: Open) -> None:
    servers = ScriptedServers(a=["x"], later=["z", "w"])
    async with opened(servers, Config(servers.entries()[:1])) as host:
        view = host.view(exclude=["later/z"])
        await host.ready(timeout=5)
        await host.plugin_add("later", "scripted")
        await host.ready(timeout=5)
        assert names(view) == ["mcp__a__x", "mcp__later__w"]


async def test_a_crash_of_a_server_changes_no_views_catalog(opened: Open) -> None:
    servers = ScriptedServers(a=["x", "y"], b=["z"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        views = [host.view(), host.view(exclude=["a/y"]), host.view(include=["a"], budget=1), host.view(profile="mcp")]
        before = [view.snapshot().catalog for view in views]
        servers.live["a"].lose()
        await wait_all_tasks_blocked()
        assert [view.snapshot().catalog for view in views] == before
        assert [view.snapshot().model.servers[0].connected for view in views] == [False] * 4
        servers.scripts["a"].tools = servers.scripts["a"].tools[::-1]
        await trio.sleep(60)
        assert [view.snapshot().model.servers[0].connected for view in views] == [True] * 4
        assert all(view.snapshot().catalog is catalog for view, catalog in zip(views, before, strict=True))


async def test_calls_through_a_view_reach_what_it_offers_and_nothing_else(opened: Open) -> None:
    servers = ScriptedServers(a=["x", "y"], b=["z"])
    async with opened(servers, native_tools=[OWN, NativeTool("hid", "ours", {"type": "object"}, print)]) as host:
        await host.ready(timeout=5)
        view = host.view(exclude=["b", "a/y", "hid"])
        assert await view.call("mcp__a__x", {})
        assert all_text(await view.call("own")) == "mine"
        assert await view.call_tool("a", "x")
        for name in ("mcp__b__z", "mcp__a__y", "hid"):
            with pytest.raises(ToolNotOffered, match="excluded by this view"):
                await view.call(name)
            with pytest.raises(ToolNotOffered, match="excluded by this view"):  # whatever the catalog says
                await view.call(name, catalog=host.snapshot().catalog)
        for server, bare in (("b", "z"), ("a", "y")):
            with pytest.raises(ToolNotOffered, match="excluded by this view"):
                await view.call_tool(server, bare)
        with pytest.raises(UnknownTool, match="did you mean 'mcp__a__x'"):
            await view.call("mcp__a__xx")
        with pytest.raises(UnknownServer):
            await view.call_tool("nobody", "x")
        with pytest.raises(TypeError):
            await view.call("mcp__a__x", [])  # type: ignore[arg-type]
        calls = [line for line in servers.log if "call" in str(line)]
        assert len(calls) == 2


async def test_a_turn_holds_a_views_catalog_and_still_calls_through_it(opened: Open) -> None:
    servers = ScriptedServers(a=["x", "y"], b=["z"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        view = host.view(include=["a"])
        held = view.snapshot().catalog
        for through in (host, view):
            assert await through.call("mcp__a__x", catalog=held)
            words = "not in the catalog that the call" if through is host else "not in this view's include list"
            with pytest.raises(ToolNotOffered, match=words):
                await through.call("mcp__b__z", catalog=held)
        await host.tool_set_enabled("a", "x", False)
        for through in (host, view):
            with pytest.raises(ToolNotOffered, match="excluded by"):
                await through.call("mcp__a__x", catalog=held)
            assert await through.call("mcp__a__y", catalog=held)
        servers.scripts["a"].tools = ()
        servers.live["a"].announce()
        await trio.sleep(1)
        for through in (host, view):
            with pytest.raises(ToolNotOffered, match="advertise"):
                await through.call("mcp__a__y", catalog=held)


async def test_a_view_for_another_profile_offers_what_that_takes(opened: Open) -> None:
    servers = ScriptedServers(a=["x", ODD])
    async with opened(servers, profile="portable", native_tools=[OWN]) as host:
        await host.ready(timeout=5)
        view = host.view(profile="mcp")
        assert view.snapshot().catalog.profile is PROFILES["mcp"]
        assert view.snapshot().model.profile == "mcp"
        offered = set(names(view))
        quarantined = {
            tool.wire_name for tool in host.snapshot().model.servers[0].tools if tool.verdict == "quarantined"
        }
        assert "mcp__a__odd" in quarantined & offered
        assert await view.call("mcp__a__odd")
        held = view.snapshot().catalog
        assert await host.call("mcp__a__odd", catalog=held)  # what the held catalog's own profile takes
        with pytest.raises(ToolNotOffered):
            await host.call("mcp__a__odd")
        servers.scripts["a"].tools = (ToolDef("x"), ToolDef("odd", input_schema={"type": "array"}))
        servers.live["a"].announce()
        await trio.sleep(1)
        for through in (host, view):
            with pytest.raises(ToolNotOffered, match="object"):
                await through.call("mcp__a__odd", catalog=held)


async def test_a_view_waits_for_a_first_list_only_of_servers_it_shows(opened: Open) -> None:
    servers = ScriptedServers(slow=Script(("x", "y"), connect_delay=3), never=Script(("x",), connect_delay=math.inf))
    async with opened(servers) as host:
        view = host.view(exclude=["never", "slow/y"])
        began = trio.current_time()
        with pytest.raises(ToolNotOffered, match="excluded by this view"):
            await view.call("mcp__never__x")
        assert trio.current_time() == began
        assert await view.call("mcp__slow__x")
        assert trio.current_time() - began == 3
        with pytest.raises(ToolNotOffered, match="excluded by this view"):
            await view.call("mcp__slow__y")


async def test_a_tool_that_no_list_has_shown_yet_is_hidden_from_held_catalogs_too(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        held = host.snapshot().catalog
        view = host.view(exclude=["a/x"])
        servers.scripts["a"].connect_delay = 5
        await host.plugin_remove("a")
        await host.plugin_add("a", "scripted")
        assert host.snapshot().model.servers[0].list_state == "none"
        with pytest.raises(ToolNotOffered, match="excluded by this view"):
            await view.call("mcp__a__x", catalog=held)


async def test_changes_tells_each_view_of_its_own_changes(opened: Open) -> None:
    servers = ScriptedServers(a=["x", "y"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        view = host.view(exclude=["a/y"])
        seen: list[Snapshot] = []

        async def watch() -> None:
            async for snapshot in view.changes():
                seen.append(snapshot)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            await wait_all_tasks_blocked()
            for on in (False, True, False):
                await host.tool_set_enabled("a", "x", on)
                await wait_all_tasks_blocked()
            assert [names(snapshot) for snapshot in seen] == [["mcp__a__x"], [], ["mcp__a__x"], []]
            versions = [snapshot.version for snapshot in seen]
            assert versions == sorted(set(versions))
            nursery.cancel_scope.cancel()


async def test_a_view_is_readable_after_the_host_closed_and_its_iterators_end(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        view, unread = host.view(exclude=["b"]), host.view(include=[])
        last = view.snapshot()
    assert view.snapshot().catalog is last.catalog
    assert names(unread) == []
    assert [snapshot async for snapshot in view.changes()] == [view.snapshot()]
    assert view.why("a", "x").verdict == "on_wire"
    assert view.preview(budget=0).diff.removed == ("mcp__a__x",)
    with pytest.raises(HostClosed):
        await view.call("mcp__a__x")


async def test_a_restarted_projector_changes_no_view(opened: Open) -> None:
    servers = ScriptedServers(a=["x", "y"], b=["z"])
    crashes = [0]

    class Crashing:
        async def hit(self, site: str, who: str) -> None:
            await trio.lowlevel.checkpoint()
            if site == "projector" and crashes[0]:
                crashes[0] -= 1
                raise RuntimeError("a defect of ours")

    async with opened(servers, sites=Crashing()) as host:
        await host.ready(timeout=5)
        view = host.view(exclude=["a/y"])
        before = view.snapshot()
        crashes[0] = 1
        await host.tool_set_enabled("b", "z", False)
        await host.tool_set_enabled("b", "z", True)
        assert view.snapshot().catalog.digest == before.catalog.digest
        assert view.snapshot().version > before.version


async def test_a_preview_says_what_an_operation_would_show(opened: Open) -> None:
    servers = ScriptedServers(a=["x", "y"], b=["z"])
    async with opened(servers, budget=2) as host:
        await host.ready(timeout=5)
        before = host.snapshot()
        foreseen = host.preview(pin=[ToolRef("b", "z")])
        assert host.snapshot() is before
        assert foreseen.trimmed == (ToolRef("a", "y"),)
        after = await host.pin("b", "z", True)
        assert foreseen.snapshot.model == after.model
        assert foreseen.snapshot.catalog.digest == after.catalog.digest
        assert before.catalog.diff(after.catalog) == foreseen.diff
        assert host.preview(budget=3).trimmed == ()
        assert host.preview(budget=Budget(None)).trimmed == ()
        view = host.view(exclude=["a/x"])
        assert str(view.preview(disable=["a/y"])) == "1 would be withdrawn (mcp__a__y)"
        assert view.preview(budget=1).trimmed == (ToolRef("a", "y"),)
        with pytest.raises(UnknownTool, match="did you mean 'x'"):
            host.preview(enable=["a/X"])
        with pytest.raises(ValueError, match="did you mean 'openai'"):
            host.preview(profile="opnai")


async def test_a_preview_of_a_view_keeps_its_own_budget_and_profile(opened: Open) -> None:
    async with opened(ScriptedServers(a=["x", "y", "z"]), budget=3) as host:
        await host.ready(timeout=5)
        view = host.view(budget=1, profile="mcp")
        foreseen = view.preview(disable=["a/x"])
        assert names(foreseen.snapshot) == ["mcp__a__y"]
        assert foreseen.trimmed == (ToolRef("a", "z"),)
        assert foreseen.snapshot.catalog.profile is PROFILES["mcp"]


async def test_what_makes_no_view_is_refused_where_it_is_written(opened: Open) -> None:
    async with opened(ScriptedServers(a=["x"])) as host:
        for wrong in ({"exclude": "a"}, {"include": "a"}, {"include": [3]}):
            with pytest.raises(TypeError, match="name"):
                host.view(**wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="no profile 'mpc'"):
            host.view(profile="mpc")
        with pytest.raises(ValueError, match="0 or more"):
            host.view(budget=-1)
    spaced = NativeTool("my tool", "ours", {"type": "object"}, mine)
    async with opened(ScriptedServers(), profile="mcp", native_tools=[spaced]) as host:
        with pytest.raises(ValueError, match="my tool"):
            host.view(profile="openai")
        assert names(host.view(profile="openai", exclude=["my tool"])) == []


async def test_secrets_are_out_of_reach_of_snapshots_views_and_previews(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.plugin_add("a", "scripted", ["--token", "hunter2"], env={"KEY": "hunter2"}, replace=True)
        await host.ready(timeout=5)
        view = host.view(exclude=["b"])
        for value in (host.snapshot(), view.snapshot(), host.preview(disable=["a/x"]), view, host._board.seen):
            assert "hunter2" not in repr(value)


@pytest.mark.parametrize("budget", [1.5, "5", True])
async def test_what_is_no_budget_is_refused_where_it_is_written(opened: Open, budget: Any) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        for use in (host.view, host.preview, host.view().preview):
            with pytest.raises(TypeError, match="a budget is a"):
                use(budget=budget)
    for wrong in (budget, None):
        with pytest.raises(TypeError, match="a budget is a"):
            async with opened(servers, budget=wrong):
                pass


async def test_a_view_tells_which_of_its_items_name_nothing_with_the_nearest_name(opened: Open) -> None:
    servers = ScriptedServers(files=["read", "write"], later=Script(("x",), connect_delay=5))
    async with opened(servers, native_tools=[OWN]) as host:
        view = host.view(
            include=[
                "files/raed",
                "fils",
                "mcp__files__wriet",
                "files",
                "own",
                "later/anything",
                ToolRef("files", "no"),
                ToolRef("files", "read"),
            ],
            exclude=["files/write", "owm", "later", "mcp__files__read", "zzzzzzzz", "gone/read"],
        )
        await trio.sleep(1)  # files has listed its tools, later has not
        assert view.unmatched() == {
            "files/raed": "files/read",
            "fils": "files",
            ToolRef("files", "no"): "files",
            "owm": "own",
            "zzzzzzzz": None,
            "gone/read": "files/read",
        }
        assert list(view.unmatched()) == sorted(view.unmatched(), key=str)
        await host.ready(timeout=10)
        assert view.unmatched()["later/anything"] is None
        assert view.unmatched()["mcp__files__wriet"] == "mcp__files__write"
        assert host.view(include=["files"], exclude=["own"]).unmatched() == host.view().unmatched() == {}
        await host.plugin_add("fils", command="fils")
        assert "fils" not in view.unmatched()
