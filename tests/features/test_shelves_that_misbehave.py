"""Servers whose resources and prompts are many, broken, endless or changing all the time: their tools work, and so do others.

In virtual time, as in `test_handlers_that_misbehave`, and before 2026-07-28.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from attrs import evolve
from playbill.actors import (
    CallTimeout,
    Config,
    Host,
    NotSupported,
    RequestRefused,
    ServerEntry,
    ServerState,
    ServerUnavailable,
    UnknownServer,
    open_host,
)
from playbill.actors.edge.wire.sdk import import_sdk

from .asker import Asking, said

CAPABLE = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}}
NOTES = {"uri": "stage://notes", "name": "notes"}


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


def answering(result: Any) -> Callable[[Any], Any]:
    return lambda params: result


@asynccontextmanager
async def hosted(capabilities: dict[str, Any] | None = None, **lists: Any) -> AsyncIterator[tuple[Host, Asking]]:
    """A host of a server ``a`` with such lists, and of a neighbour."""
    import_sdk()
    server = Asking()
    server.capabilities = dict(CAPABLE if capabilities is None else capabilities)
    empty = {"resources": [], "resourceTemplates": [], "prompts": []}
    server.lists = {
        "resources/list": lists.get("resources", answering(empty)),
        "resources/templates/list": lists.get("templates", answering(empty)),
        "prompts/list": lists.get("prompts", answering(empty)),
    }
    config = Config((ServerEntry("a", server=server), ServerEntry("neighbour", server=Asking())))
    async with open_host(config) as host:
        assert (await host.ready(timeout=30)).missing == {}
        yield host, server


async def shown(host: Host, holds: Callable[[ServerState], bool], seconds: float = 200) -> ServerState:
    with trio.fail_after(seconds):
        async for snapshot in host.changes():
            state = snapshot.model.server("a")
            if state is not None and holds(state):
                return state
    raise AssertionError("the host closed")


def listed(state: ServerState) -> bool:
    return state.resources_state == "current"


async def test_ten_thousand_resources_are_listed_and_read_and_cost_no_place_in_the_catalog(
    autojump_clock: trio.testing.MockClock,
) -> None:
    def page(params: Any) -> Any:
        start = int(params.get("cursor", 0))
        items = [{"uri": f"stage://{number}", "name": f"note {number}"} for number in range(start, start + 1000)]
        return {"resources": items} | ({"nextCursor": str(start + 1000)} if start < 9000 else {})

    async with hosted(resources=page) as (host, _):
        state = await shown(host, listed)
        assert len(state.resources) == 10_000
        assert state.resources_error is None
        assert len(host.snapshot().catalog.tools) == len(state.tools) + 8
        assert await said(host, "neighbour", "echo") == "echo"


async def test_all_that_is_said_of_an_item_is_in_the_model(autojump_clock: trio.testing.MockClock) -> None:
    about = {"title": "T", "description": "D", "icons": [{"src": "data:,"}], "_meta": {"example.com/k": 1}}
    kind = {"mimeType": "text/plain", "annotations": {"audience": ["user"], "priority": 0.5}}
    given = {
        "resources": {"uri": "stage://notes", "name": "n", "size": 5, **about, **kind},
        "resourceTemplates": {"uriTemplate": "stage://{x}", "name": "n", **about, **kind},
        "prompts": {"name": "n", "arguments": [{"name": "x", "required": True, **about}], **about},
    }
    pages = {key: answering({key: [item]}) for key, item in given.items()}
    async with hosted(resources=pages["resources"], templates=pages["resourceTemplates"], prompts=pages["prompts"]) as (
        host,
        _,
    ):
        state = await shown(host, lambda state: bool(state.resources and state.prompts))
    (resource,), (template,), (prompt,) = state.resources, state.templates, state.prompts
    for item in (resource, template, prompt):
        assert (item.name, item.title, item.description) == ("n", "T", "D")
        assert ([dict(icon) for icon in item.icons], item.meta) == (about["icons"], about["_meta"])
    for one in (resource, template):
        assert (one.mime_type, one.annotations) == (kind["mimeType"], kind["annotations"])
    assert resource.size == 5
    (argument,) = prompt.arguments
    assert (argument.name, argument.title, argument.description, argument.required) == ("x", "T", "D", True)


async def test_what_is_wrong_with_one_item_costs_that_item(autojump_clock: trio.testing.MockClock) -> None:
    odd = [NOTES, 3, {"name": "no uri"}, {"uri": "stage://b", "icons": "none", "size": -1, "_meta": [], "title": 3}]
    prompts = [{"name": "good", "arguments": [{"name": "x", "required": "yes"}]}, {"name": "bad", "arguments": [{}]}]
    async with hosted(resources=answering({"resources": odd}), prompts=answering({"prompts": prompts})) as (host, _):
        state = await shown(host, lambda state: bool(state.resources and state.prompts))
        assert [each.uri for each in state.resources] == ["stage://notes", "stage://b"]
        assert (state.resources_error or "").count("left out") == 2
        assert [each.name for each in state.prompts] == ["good"]
        assert "'bad'" in (state.prompts_error or "")


@pytest.mark.parametrize("again", ["same", "other"])
async def test_pages_that_never_end_are_left_and_that_is_said(
    autojump_clock: trio.testing.MockClock, again: str
) -> None:
    pages = 0

    def page(params: Any) -> Any:
        nonlocal pages
        pages += 1
        if again == "same":  # though it brings something new each time
            return {"resources": [{"uri": f"stage://{pages}"}], "nextCursor": "again"}
        return {"resources": [NOTES], "nextCursor": str(pages)}

    async with hosted(resources=page) as (host, _):
        state = await shown(host, lambda state: bool(state.resources))
        assert len(state.resources) == (2 if again == "same" else 1)
        assert "stopped there" in (state.resources_error or "")
        assert pages == 2


@pytest.mark.parametrize("failing", ["resources", "prompts"])
@pytest.mark.parametrize("how", ["an error", None, {"nonsense": 1}])
async def test_a_listing_that_fails_hurts_neither_tools_nor_the_other_list_and_is_tried_again(
    autojump_clock: trio.testing.MockClock, failing: str, how: Any
) -> None:
    broken = True
    good = {"resources": [NOTES], "prompts": [{"name": "audition"}]}

    def page(params: Any) -> Any:
        return how if broken else good

    lists = {name: answering(good) for name in good} | {failing: page}
    async with hosted(**lists) as (host, _):
        state = await shown(host, lambda state: getattr(state, f"{failing}_error") is not None)
        assert state.phase == "ready"
        assert state.list_error is None
        other = "prompts" if failing == "resources" else "resources"
        state = await shown(host, lambda state: len(getattr(state, other)) == 1)
        assert getattr(state, f"{other}_error") is None
        assert await said(host, "a", "echo") == "echo"
        broken = False
        state = await shown(host, lambda state: len(getattr(state, failing)) == 1)
        assert getattr(state, f"{failing}_error") is None
        assert getattr(state, f"{failing}_state") == "current"


async def test_a_later_listing_that_fails_keeps_the_last_good_list(autojump_clock: trio.testing.MockClock) -> None:
    broken = False

    def page(params: Any) -> Any:
        return "out of notes" if broken else {"resources": [NOTES]}

    async with hosted(resources=page) as (host, _):
        await shown(host, listed)
        broken = True
        await said(host, "a", "change", 1)
        state = await shown(host, lambda state: state.resources_error is not None)
        assert "out of notes" in (state.resources_error or "")
        assert (len(state.resources), state.resources_state) == (1, "stale")


async def test_a_server_without_tools_but_with_prompts_is_ready_and_not_asked_for_tools(
    autojump_clock: trio.testing.MockClock,
) -> None:
    prompts = answering({"prompts": [{"name": "audition"}]})
    async with hosted({"prompts": {}}, prompts=prompts) as (host, server):
        state = await shown(host, lambda state: bool(state.prompts))
        assert (state.phase, state.tools, state.list_state) == ("ready", (), "current")
        assert listed(state)
        assert set(server.asked) == {"server/discover", "initialize", "prompts/list"}
        with pytest.raises(NotSupported, match="no resources"):
            await host.read_resource("a", "stage://notes")
        with pytest.raises(NotSupported, match="no completions"):
            await host.complete("a", "x", prompt="audition")
        with pytest.raises(NotSupported):
            async with host.subscribe("a", "stage://notes"):
                pass


async def test_a_list_that_changes_all_the_time_is_fetched_now_and_then(autojump_clock: trio.testing.MockClock) -> None:
    async with hosted(resources=answering({"resources": [NOTES]})) as (host, server):
        await shown(host, listed)
        before = server.asked["resources/list"]
        for _ in range(100):
            await said(host, "a", "change", 50)
            await trio.sleep(0.1)
        assert server.asked["resources/list"] - before < 12
        assert await said(host, "neighbour", "echo") == "echo"


async def test_updates_are_conflated_for_a_slow_reader(autojump_clock: trio.testing.MockClock) -> None:
    async with hosted() as (host, _), host.subscribe("a", "stage://notes") as updates:
        seen = 0
        async with trio.open_nursery() as nursery:

            async def read() -> None:
                nonlocal seen
                async for _ in updates:
                    seen += 1
                    await trio.sleep(0.1)

            nursery.start_soon(read)
            for _ in range(20):
                await said(host, "a", "update", 1000)  # and so on, for two seconds
                await trio.sleep(0.1)
            nursery.cancel_scope.cancel()
        assert 10 <= seen <= 41
        assert await said(host, "neighbour", "echo") == "echo"


async def test_a_subscription_goes_on_after_a_restart_and_says_what_it_may_have_missed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with hosted() as (host, server):
        async with host.subscribe("a", "stage://notes") as updates:
            assert server.asked["resources/subscribe"] == 1
            await said(host, "a", "update", 1)
            first = await anext(updates)
            assert not first.missed
            await server.die()
            with trio.fail_after(60):
                second = await anext(updates)
            assert second.missed
            assert second.generation > first.generation
            assert server.asked["resources/subscribe"] == 2
            await said(host, "a", "update", 1)
            assert (await anext(updates)).generation == second.generation
        await trio.testing.wait_all_tasks_blocked()
        assert server.asked["resources/unsubscribe"] == 1


async def test_what_may_have_been_missed_is_listed_again_and_told(autojump_clock: trio.testing.MockClock) -> None:
    """As when the stream of what a server says by itself (streamable HTTP, up to 2025-11-25) broke off and is open again."""
    async with hosted(resources=answering({"resources": [NOTES]})) as (host, server):
        await shown(host, listed)
        async with host.subscribe("a", "stage://notes") as updates:
            before = server.asked["resources/list"], server.asked["prompts/list"]
            connection: Any = host._board.lines["a"].connection
            connection._wire.on_missed()
            update = await anext(updates)
            assert (update.uri, update.missed) == ("stage://notes", True)
            await trio.sleep(10)
            assert (server.asked["resources/list"], server.asked["prompts/list"]) == (before[0] + 1, before[1] + 1)


async def test_two_readers_of_one_resource_are_one_subscription(autojump_clock: trio.testing.MockClock) -> None:
    async with hosted() as (host, server), host.subscribe("a", "stage://notes") as one:
        async with host.subscribe("a", "stage://notes") as two:
            await said(host, "a", "update", 1)
            assert (await anext(one)).uri == (await anext(two)).uri == "stage://notes"
        await trio.testing.wait_all_tasks_blocked()
        assert server.asked["resources/subscribe"] == 1
        assert server.asked["resources/unsubscribe"] == 0


async def test_a_subscription_ends_with_its_server_or_the_host_and_says_why(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with hosted() as (host, server):
        with pytest.raises(UnknownServer, match="no server named"):
            async with host.subscribe("b", "stage://notes"):
                pass
        server.lists["resources/subscribe"] = answering("not you")
        with pytest.raises(RequestRefused, match="not you"):
            async with host.subscribe("a", "stage://notes"):
                pass
        del server.lists["resources/subscribe"]
        async with host.subscribe("a", "stage://notes") as updates:
            await host.server_set_enabled("a", False)
            with pytest.raises(ServerUnavailable):
                await anext(updates)
        await host.server_set_enabled("a", True)
        assert (await host.ready(timeout=30)).missing == {}
    async with hosted() as (host, server):
        subscription = host.subscribe("a", "stage://notes")
        updates = await subscription.__aenter__()
    with pytest.raises(StopAsyncIteration):
        await anext(updates)
    await subscription.__aexit__(None, None, None)


async def test_a_read_that_is_not_answered_ends_at_its_deadline(autojump_clock: trio.testing.MockClock) -> None:
    async with hosted() as (host, server):
        server.lists["resources/read"] = answering(None)
        with pytest.raises(CallTimeout, match=r"^resource 'a: stage://notes' did not answer within 5 s"):
            await host.read_resource("a", "stage://notes", timeout=5)
        with pytest.raises(CallTimeout, match="within 60 s"):
            await host.read_resource("a", "stage://notes")
        server.lists["resources/read"] = answering({"contents": "nonsense"})
        with pytest.raises(RequestRefused, match="invalid result"):
            await host.read_resource("a", "stage://notes")


async def test_a_read_and_a_prompt_carry_meta_and_hear_of_progress(autojump_clock: trio.testing.MockClock) -> None:
    heard: list[Any] = []
    given: list[Any] = []

    def taking(result: Any) -> Callable[[Any], Any]:
        def take(params: Any) -> Any:
            given.append(params["_meta"].get("example.com/act"))
            return result

        return take

    async def hear(*told: Any) -> None:
        await trio.lowlevel.checkpoint()
        heard.append(told)

    async with hosted(prompts=answering({"prompts": [{"name": "audition"}]})) as (host, server):
        await shown(host, lambda state: bool(state.prompts))
        server.lists["resources/read"] = taking({"contents": [{"uri": "stage://notes", "text": "x"}]})
        server.lists["prompts/get"] = taking({"messages": []})
        await host.read_resource("a", "stage://notes", meta={"example.com/act": 1}, progress=hear)
        await host.get_prompt("a", "audition", meta={"example.com/act": 2}, progress=hear)
        await trio.testing.wait_all_tasks_blocked()
        assert given == [1, 2]
        assert heard == [(1, 2, "half")] * 2


async def test_a_read_is_waited_for_as_long_as_the_entry_says(autojump_clock: trio.testing.MockClock) -> None:
    async with hosted() as (host, server):
        server.lists["resources/read"] = answering(None)
        (entry, neighbour) = host._board.config.config.servers
        await host.apply(Config((evolve(entry, timeout=7), neighbour)))
        with pytest.raises(CallTimeout, match="within 7 s"):
            await host.read_resource("a", "stage://notes")


async def test_an_update_of_a_part_is_told_and_that_of_a_neighbour_is_not(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with hosted() as (host, _), host.subscribe("a", "stage://notes") as updates:
        for uri in ("stage://notes2", "stage://note"):
            await said(host, "a", "update", uri)
            with trio.move_on_after(5):
                raise AssertionError(await anext(updates))
        await said(host, "a", "update", "stage://notes/1")
        assert (await anext(updates)).uri == "stage://notes/1"


async def test_what_a_server_says_of_itself_is_kept_over_its_death(autojump_clock: trio.testing.MockClock) -> None:
    async with hosted() as (host, server):
        state = await shown(host, lambda state: state.info is not None)
        await server.die()
        down = await shown(host, lambda state: not state.connected)
        assert down.info == state.info
