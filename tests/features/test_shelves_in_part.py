"""Servers that are silent about some of what they offer, or offer more than there is room for; and odd words of the program's.

In virtual time, as in `test_shelves_that_misbehave`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from playbill.actors import RequestRefused
from playbill.actors.edge.wire.shelves import MAX_CHARS, MAX_ITEM_CHARS

from .asker import said
from .test_shelves_that_misbehave import CAPABLE, NOTES, answering, hosted, shown


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


TEMPLATE = {"uriTemplate": "stage://{x}", "name": "t"}


async def test_templates_that_cannot_be_listed_are_asked_for_again(autojump_clock: trio.testing.MockClock) -> None:
    answers: list[Any] = ["busy", "busy", {"resourceTemplates": [TEMPLATE]}]

    def page(params: Any) -> Any:
        return answers.pop(0)

    async with hosted(resources=answering({"resources": [NOTES]}), templates=page) as (host, _):
        state = await shown(host, lambda state: bool(state.resources))
        assert "busy" in (state.resources_error or "")
        state = await shown(host, lambda state: bool(state.templates))
        assert (state.resources_error, state.resources_state) == (None, "current")


async def test_templates_that_are_never_listed_cost_no_resources(autojump_clock: trio.testing.MockClock) -> None:
    async with hosted(resources=answering({"resources": [NOTES]}), templates=answering(None)) as (host, _):
        state = await shown(host, lambda state: state.resources_error is not None)
        assert len(state.resources) == 1
        assert "resources/templates/list: no answer" in (state.resources_error or "")


async def test_a_server_that_knows_templates_only_has_them_listed_and_is_not_asked_on_and_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with hosted(templates=answering({"resourceTemplates": [TEMPLATE]})) as (host, server):
        del server.lists["resources/list"]
        await host.restart("a")
        state = await shown(host, lambda state: state.resources_error is not None)
        assert (len(state.templates), state.phase) == (1, "ready")
        asked = server.asked["resources/list"]
        await trio.sleep(1000)
        assert server.asked["resources/list"] == asked


async def test_lists_of_huge_items_are_cut(autojump_clock: trio.testing.MockClock) -> None:
    icons = [{"src": "x" * 1_000_000}]
    pages = 0

    def page(params: Any) -> Any:
        nonlocal pages
        pages += 1
        items = [{"uri": f"stage://{pages}/{number}", "icons": icons} for number in range(10)]
        return {"resources": items, "nextCursor": str(pages)}

    prompts = [{"name": "huge", "description": "x" * (MAX_ITEM_CHARS + 1)}, {"name": "small"}]
    async with hosted(resources=page, prompts=answering({"prompts": prompts})) as (host, _):
        state = await shown(host, lambda state: bool(state.resources and state.prompts))
        assert len(state.resources) == MAX_CHARS // 1_000_000 - 1  # which have more about them than their icons
        assert "characters; those beyond are left out" in (state.resources_error or "")
        assert [prompt.name for prompt in state.prompts] == ["small"]
        assert "left out" in (state.prompts_error or "")


def silent_about(uri: str) -> Callable[[Any], Any]:
    return lambda params: None if params["uri"] == uri else {}


async def test_one_subscription_that_is_never_answered_keeps_no_other_waiting_and_ends_none(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with hosted() as (host, server), host.subscribe("a", "stage://notes") as updates:
        server.lists["resources/subscribe"] = silent_about("stage://silent")
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                with pytest.raises(RequestRefused, match="no answer within 30 s"):
                    async with host.subscribe("a", "stage://silent", timeout=1000):
                        pass

            nursery.start_soon(wait)
            await trio.sleep(1)
            began = trio.current_time()
            async with host.subscribe("a", "stage://other"):
                assert trio.current_time() == began
        for _ in range(2):
            await said(host, "a", "update", 1)
            assert (await anext(updates)).uri == "stage://notes"
        # Who asks again is not told what another was told, nor is it asked for whoever else comes.
        asked = server.asked["resources/subscribe"]
        server.lists["resources/subscribe"] = answering({})
        async with host.subscribe("a", "stage://silent"), host.subscribe("a", "stage://notes"):
            assert server.asked["resources/subscribe"] == asked + 1


async def test_an_unsubscription_that_is_never_answered_ends_no_subscription(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with hosted() as (host, server), host.subscribe("a", "stage://notes") as updates:
        server.lists["resources/unsubscribe"] = answering(None)
        async with host.subscribe("a", "stage://other"):
            pass
        await trio.sleep(100)
        async with host.subscribe("a", "stage://third"):
            await trio.sleep(1)
        for _ in range(2):
            await said(host, "a", "update", 1)
            assert (await anext(updates)).uri == "stage://notes"


async def test_a_subscription_that_comes_back_while_it_is_given_up_is_made_after_that(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with hosted() as (host, server):
        server.lists["resources/unsubscribe"] = answering(None)
        async with host.subscribe("a", "stage://notes"):
            pass
        await trio.testing.wait_all_tasks_blocked()
        assert (server.asked["resources/subscribe"], server.asked["resources/unsubscribe"]) == (1, 1)
        async with trio.open_nursery() as nursery:

            async def come_back() -> None:
                async with host.subscribe("a", "stage://notes"):
                    assert server.asked["resources/subscribe"] == 2

            nursery.start_soon(come_back)
            await trio.testing.wait_all_tasks_blocked()
            assert server.asked["resources/subscribe"] == 1  # or the server might do the one after the other


async def test_what_a_program_gives_that_is_no_meta_or_argument_is_refused_where_it_is_written(
    autojump_clock: trio.testing.MockClock,
) -> None:
    given: list[Any] = []

    def take(params: Any) -> Any:
        given.append(params["_meta"])
        return {"contents": []}

    many = {"values": [str(number) for number in range(10_000)], "total": 10_000}
    async with hosted(CAPABLE | {"completions": {}}) as (host, server):
        server.lists |= {"resources/read": take, "completion/complete": answering({"completion": many})}
        for meta in (5, {1: 2}):
            with pytest.raises(TypeError, match="meta is a mapping"):
                await host.call_tool("a", "echo", meta=meta)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="meta is a mapping"):
                await host.read_resource("a", "stage://notes", meta=meta)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="are strings, and 'x' is 1"):
            await host.complete("a", "y", template="stage://{x}/{y}", context={"x": 1})  # type: ignore[dict-item]
        # The token of progress is ours: it could be that of another call.
        await host.call_tool("a", "echo", meta={"progressToken": 7, "example.com/k": 1}, timeout=5)
        assert server.meta == {"example.com/k": 1}
        await host.read_resource("a", "stage://notes", meta={"progressToken": "mine"})
        assert given[0]["progressToken"] != "mine"
        found = await host.complete("a", "x", template="stage://{x}")
        assert (len(found.values), found.total, found.has_more) == (100, 10_000, True)
