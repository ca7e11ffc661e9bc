"""Resources and prompts through a view: those of the servers that it names, and of no others; in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from playbill.actors import Config, Host, NotSupported, ServerEntry, UnknownServer, View, open_host
from playbill.actors.edge.wire.sdk import import_sdk

from .asker import Asking

SHELVES = {"resources": {"subscribe": True}, "prompts": {}, "completions": {}, "tools": {}}


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


def shelved(name: str) -> Asking:
    server = Asking()
    server.capabilities = SHELVES
    completion = {"values": [name]}
    message = {"role": "user", "content": {"type": "text", "text": name}}
    pages: dict[str, Any] = {
        "resources/list": {"resources": [{"uri": f"{name}://notes", "name": "notes"}]},
        "resources/templates/list": {"resourceTemplates": [{"uriTemplate": f"{name}://{{act}}", "name": "act"}]},
        "prompts/list": {"prompts": [{"name": f"{name}-part"}]},
        "resources/read": {"contents": [{"uri": f"{name}://notes", "text": name}]},
        "prompts/get": {"messages": [message]},
        "completion/complete": {"completion": completion},
    }
    server.lists = {method: (lambda params, page=page: page) for method, page in pages.items()}
    return server


@asynccontextmanager
async def hosted() -> AsyncIterator[tuple[Host, dict[str, Asking]]]:
    import_sdk()
    servers = {name: shelved(name) for name in ("a", "b")}
    async with open_host(Config(tuple(ServerEntry(name, server=server) for name, server in servers.items()))) as host:
        assert (await host.ready(timeout=30)).missing == {}
        with trio.fail_after(30):
            async for snapshot in host.changes():
                if all(each.resources and each.templates and each.prompts for each in snapshot.model.servers):
                    break
        yield host, servers


def shelves(seen: Host | View) -> list[str]:
    """The names of the servers that have resources, templates and prompts in the model; each has all or nothing."""
    found = []
    for server in seen.snapshot().model.servers:
        has = {bool(server.resources), bool(server.templates), bool(server.prompts)}
        assert len(has) == 1
        if has == {True}:
            found.append(server.name)
    return found


async def all_of(seen: Host | View, server: str) -> None:
    """Have each request made."""
    read = await seen.read_resource(server, f"{server}://notes")
    assert read.contents[0].text == server
    assert (await seen.get_prompt(server, f"{server}-part")).messages[0].content.text == server
    assert (await seen.complete(server, "x", prompt=f"{server}-part")).values == [server]
    async with seen.subscribe(server, f"{server}://notes"):
        pass


@pytest.mark.parametrize(
    ("lens", "reason"),
    [
        ({"exclude": ["b"]}, "excluded by this view"),
        ({"include": ["a"]}, "not in this view's include list"),
        ({"include": ["a", "b/echo", "mcp__b__log"]}, "not in this view's include list"),
    ],
)
async def test_a_view_has_the_shelves_of_the_servers_that_it_shows(
    autojump_clock: trio.testing.MockClock, lens: dict[str, list[str]], reason: str
) -> None:
    async with hosted() as (host, servers):
        view = host.view(**lens)
        assert shelves(view) == ["a"]
        assert shelves(host) == ["a", "b"]
        await all_of(view, "a")
        before = servers["b"].asked.copy()
        requests: list[Any] = [
            lambda: view.read_resource("b", "b://notes"),
            lambda: view.get_prompt("b", "b-part"),
            lambda: view.complete("b", "x", prompt="b-part"),
            lambda: view.subscribe("b", "b://notes").__aenter__(),
        ]
        for request in requests:
            with pytest.raises(NotSupported, match=reason) as refused:
                await request()
            assert refused.value.server == "b"
        assert servers["b"].asked == before
        await all_of(host, "b")


async def test_a_view_of_tools_one_by_one_leaves_the_shelves(autojump_clock: trio.testing.MockClock) -> None:
    async with hosted() as (host, _):
        view = host.view(exclude=["b/echo"])
        assert shelves(view) == ["a", "b"]
        await all_of(view, "b")
        with pytest.raises(UnknownServer):
            await view.read_resource("c", "c://notes")


async def test_a_view_shows_what_a_server_lists_later(autojump_clock: trio.testing.MockClock) -> None:
    async with hosted() as (host, servers):
        view = host.view(include=["a"])
        shown = view.snapshot()
        more = {"resources": [{"uri": f"a://{number}", "name": "x"} for number in range(3)]}
        servers["a"].lists["resources/list"] = lambda params: more
        await host.call_tool("a", "change", {"arg": 1})
        with trio.fail_after(30):
            async for snapshot in view.changes():
                if len(snapshot.model.servers[0].resources) == 3:
                    break
        assert snapshot is not shown
        assert snapshot.catalog is shown.catalog


async def test_a_view_gives_the_meta_of_a_call(autojump_clock: trio.testing.MockClock) -> None:
    async with hosted() as (host, servers):
        await host.view().call_tool("a", "echo", meta={"example.com/act": 3})
        assert (servers["a"].meta or {}).get("example.com/act") == 3
