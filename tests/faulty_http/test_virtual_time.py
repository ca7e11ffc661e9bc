"""A whole host over HTTP in virtual time: what the rules say in seconds is so, exactly; and faults at random hurt nobody else.

The network is in memory (`played`): the client, its pool and the protocol are the real ones, so is the faulty server.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import httpcore2  # noqa: F401 — here, so that no thread imports it in virtual time
import httpx2  # noqa: F401
import pytest
import trio
from playbill.actors import CallTimeout, Config, Host, ServerDied, ServerEntry, ServerUnavailable, open_host
from playbill.actors.edge.wire.remote import opening
from playbill.actors.edge.wire.sdk import import_sdk
from playbill.actors.model.snapshot import ServerState
from playbill.supervision import Backoff, Intensity

from ..reports.conftest import said, virtual_time
from .played import Network
from .server import Web, deed

import_sdk()

BACKOFF = Backoff(base=1.0, max=30.0, jitter=0.0, reset_after=30.0)
INTENSITY = Intensity(restarts=5, window=60.0, then="park", park_retry=300.0)


@asynccontextmanager
async def hosted(**webs: Web) -> AsyncIterator[tuple[Host, Network]]:
    async with trio.open_nursery() as nursery:
        network = Network(nursery, **webs)
        config = Config(tuple(ServerEntry(name, url=f"http://{name}/mcp") for name in webs))
        async with open_host(
            config, connect=network.connect(), rng=random.Random(7), backoff=BACKOFF, intensity=INTENSITY
        ) as host:
            yield host, network
        for web in webs.values():
            await web.until(lambda web: web.open == 0)
        nursery.cancel_scope.cancel()


def state(host: Host, name: str = "web") -> ServerState:
    found = host.snapshot().model.server(name)
    assert found is not None
    return found


async def until(host: Host, condition: Any) -> ServerState:
    async for _ in host.changes():
        if condition(state(host)):
            return state(host)
    raise AssertionError("the host closed")


@virtual_time
@pytest.mark.parametrize("told", [7, 600])
async def test_a_server_is_tried_again_at_the_second_it_named(told: int) -> None:
    web = Web()
    web.deeds["*"] = [deed(status=503, headers={"Retry-After": str(told)})]
    async with hosted(web=web) as (host, _):
        refused = await until(host, lambda state: state.phase == "backing_off")
        assert refused.next_retry_at == pytest.approx(trio.current_time() + told)
        assert await host.ready(timeout=told + 1)
        assert trio.current_time() == pytest.approx(told, abs=0.5)


@virtual_time
@pytest.mark.parametrize("kind", ["legacy", "modern"])
async def test_an_idle_server_without_a_stream_is_pinged_every_thirty_seconds(kind: str) -> None:
    web = Web(kind)
    web.sessionless = True
    body = '{"jsonrpc": "2.0", "id": "listen-1", "error": {"code": -32601, "message": "Method not found"}}'
    web.deeds["subscriptions/listen"] = deed(status=404, body=body)
    ping = "ping" if kind == "legacy" else "server/discover"
    async with hosted(web=web) as (host, network):
        assert await host.ready(timeout=10)
        before = web.seen[ping]
        await trio.sleep(300)
        assert 9 <= web.seen[ping] - before <= 10
        network.go_down("web")
        gone = trio.current_time()
        lost = await until(host, lambda state: state.phase == "backing_off")
        assert trio.current_time() - gone <= 32
        assert str(lost.error).startswith("the request to web failed: ")


@virtual_time
@pytest.mark.parametrize("kind", ["legacy", "modern", "sse"])
async def test_the_end_of_an_idle_server_with_a_stream_is_noticed_at_once(kind: str) -> None:
    web = Web(kind)
    async with hosted(web=web) as (host, network):
        assert await host.ready(timeout=10)
        await web.until(lambda web: web.streams)
        gone = trio.current_time()
        network.go_down("web")
        await until(host, lambda state: state.phase == "backing_off")
        assert trio.current_time() - gone <= 1


@virtual_time
async def test_a_stream_of_changes_that_ended_and_is_open_again_means_that_anything_may_have_changed() -> None:
    web = Web()
    web.capabilities |= {"resources": {"subscribe": True, "listChanged": True}, "prompts": {"listChanged": True}}
    notes = {"uri": "stage://notes", "name": "notes"}
    web.answers = {
        "resources/list": {"resources": [notes]},
        "resources/templates/list": {"resourceTemplates": []},
        "prompts/list": {"prompts": [{"name": "audition"}]},
        "resources/subscribe": {},
        "resources/unsubscribe": {},
    }
    async with hosted(web=web) as (host, _), host.subscribe("web", "stage://notes") as updates:
        with trio.fail_after(300):
            await _stream_ends(host, web, updates)


async def _stream_ends(host: Host, web: Web, updates: Any) -> None:
    await until(host, lambda state: state.resources and state.prompts)
    await web.until(lambda web: web.streams)
    old, lists = web.streams[0], ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
    before = {method: web.seen[method] for method in lists}
    web.answers["prompts/list"] = {"prompts": [{"name": "audition"}, {"name": "encore"}]}
    await old.message(method="notifications/resources/updated", params={"uri": "stage://notes"})
    assert not (await anext(updates)).missed
    old.ended.set()
    update = await anext(updates)
    assert (update.uri, update.missed) == ("stage://notes", True)
    await until(host, lambda state: len(state.prompts) == 2)
    await web.until(lambda web: all(web.seen[method] == before[method] + 1 for method in lists))
    assert web.seen["GET"] == 2
    assert (state(host).phase, state(host).restarts) == ("ready", 0)


@virtual_time
async def test_a_server_that_a_tool_blocks_may_take_as_long_as_its_callers_allow() -> None:
    web = Web()
    web.sessionless = True
    async with hosted(web=web) as (host, _):
        assert await host.ready(timeout=10)
        web.deeds["*"] = deed("hang")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(host.call_tool, "web", "echo", timeout=600))
            with trio.move_on_after(2):  # this one only changes its mind
                await host.call_tool("web", "echo", timeout=600)
            await trio.sleep(500)
            assert web.seen["ping"] == 0
            assert (state(host).phase, state(host).restarts) == ("ready", 0)
            nursery.cancel_scope.cancel()


@virtual_time
async def test_one_that_answers_pings_is_there_though_a_call_got_no_answer() -> None:
    web = Web()
    web.sessionless = True
    async with hosted(web=web) as (host, _):
        assert await host.ready(timeout=10)
        web.deeds["tools/call"] = deed("hang")
        for _ in range(3):
            with pytest.raises(CallTimeout):
                await host.call_tool("web", "echo", timeout=50)
        assert web.seen["ping"] > 1
        assert (state(host).phase, state(host).restarts) == ("ready", 0)


@virtual_time
@pytest.mark.parametrize(("timeout", "within"), [(20, 60.5), (60, 121), (600, 661)])
async def test_a_hung_server_is_given_up_however_busy_its_callers_keep_it(timeout: int, within: float) -> None:
    web = Web()
    web.sessionless = True

    async def keep_calling(host: Host, first: float) -> None:
        await trio.sleep(first)
        while True:
            with suppress(CallTimeout, ServerDied, ServerUnavailable):
                await host.call_tool("web", "echo", timeout=timeout)
            await trio.sleep(0.1)

    async with hosted(web=web) as (host, _), trio.open_nursery() as nursery:
        assert await host.ready(timeout=10)
        web.deeds["*"] = deed("hang")
        hung = trio.current_time()
        for first in (0, timeout / 2):
            nursery.start_soon(keep_calling, host, first)
        with trio.fail_after(700):
            lost = await until(host, lambda state: state.phase == "backing_off")
        assert lost.error == "it has not answered a ping within 30 s"
        assert trio.current_time() - hung <= within
        nursery.cancel_scope.cancel()


@virtual_time
async def test_a_server_that_is_heard_while_a_ping_hangs_is_there() -> None:
    web = Web()
    web.sessionless = True
    web.deeds["ping"] = [deed("hang")]
    async with hosted(web=web) as (host, _):
        assert await host.ready(timeout=10)
        await trio.sleep(31)
        assert web.waiting == 1  # the ping
        await trio.sleep(14)
        assert said(await host.call_tool("web", "echo", timeout=1)) == "{}"
        await trio.sleep(100)
        assert (state(host).phase, state(host).restarts) == ("ready", 0)
        assert web.seen["ping"] > 1


@virtual_time
async def test_a_session_whose_end_is_not_answered_is_left_after_two_seconds() -> None:
    web = Web()
    web.deeds["DELETE"] = deed("hang")
    async with hosted(web=web) as (host, _):
        assert await host.ready(timeout=10)
        began = trio.current_time()
    assert web.seen["DELETE"] == 1
    assert trio.current_time() - began == pytest.approx(opening.DELETE_SECONDS, abs=0.1)


@virtual_time
async def test_no_session_is_opened_anew_more_often_than_every_five_seconds_without_being_a_crash() -> None:
    web = Web()
    async with hosted(web=web) as (host, _):
        assert await host.ready(timeout=10)
        for _ in range(3):
            await trio.sleep(10)
            web.forget()
            with pytest.raises(ServerDied):
                await host.call_tool("web", "echo", timeout=10)
            assert said(await host.call_tool("web", "echo", timeout=10)) == "{}"
        assert state(host).restarts == 0
        web.forget()
        with pytest.raises(ServerDied):
            await host.call_tool("web", "echo", timeout=10)
        assert await host.ready(timeout=10)
        assert state(host).restarts == 1


DEEDS = (
    *("reset", "close", "cut", "truncate", "hang", "break_off", "end", "stall", "html"),
    *(401, 403, 404, 400, 429, 500, 503),
)
MOMENTS = (
    *(
        "*",
        "GET",
        "initialize",
        "notifications/initialized",
        "notifications/cancelled",
        "tools/list",
        "tools/call",
        "ping",
    ),
    *("server/discover", "subscriptions/listen", "DELETE"),
)


@virtual_time
@pytest.mark.parametrize("kind", ["legacy", "modern", "sse"])
@pytest.mark.parametrize("seed", range(3))
async def test_faults_at_random_end_every_call_by_its_deadline_and_hurt_no_neighbour(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind}{seed}")
    web, good = Web(kind), Web(rng.choice(["legacy", "modern"]))
    web.annotations["echo"] = {"readOnlyHint": True}
    ended = {"bad": 0, "good": 0}

    async def call_bad(host: Host, rng: random.Random) -> None:
        for n in range(40):
            timeout, began = rng.choice([0.5, 5.0, 40.0]), trio.current_time()
            try:
                result = await host.call_tool("web", "echo", {"n": n}, timeout=timeout, retry=rng.choice([0, 0, 2]))
                assert result.is_error or said(result) == f'{{"n": {n}}}'
            except (CallTimeout, ServerDied, ServerUnavailable):
                pass
            assert trio.current_time() <= began + timeout + 1e-6
            ended["bad"] += 1
            await trio.sleep(rng.uniform(0, 10))

    async def call_good(host: Host) -> None:
        for n in range(200):
            assert said(await host.call_tool("good", "echo", {"n": n}, timeout=1.0)) == f'{{"n": {n}}}'
            ended["good"] += 1
            await trio.sleep(1)

    async def do_wrong(network: Network) -> None:
        for _ in range(40):
            await trio.sleep(rng.uniform(0, 10))
            chance = rng.random()
            if chance < 0.15:
                network.go_down("web")
            elif chance < 0.25:
                web.forget()
            elif chance < 0.35 and web.streams:
                web.streams[0].ended.set()
            else:
                what = rng.choice(DEEDS)
                wrong = deed(what) if isinstance(what, str) else deed(status=what, headers={"Retry-After": "3"})
                web.deeds[rng.choice(MOMENTS)] = [wrong] * rng.randint(1, 4)
            network.up["web"] = rng.random() < 0.8

    async with hosted(web=web, good=good) as (host, network):
        assert await host.ready(timeout=60)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(do_wrong, network)
            nursery.start_soon(call_good, host)
            for n in range(3):
                nursery.start_soon(call_bad, host, random.Random(f"{seed}{n}"))
        assert ended == {"bad": 120, "good": 200}
        assert (state(host, "good").restarts, state(host, "good").error) == (0, None)
        # Once all is well again, so is the server: by itself, or by hand if it wants a login or is parked.
        web.deeds.clear()
        network.up["web"] = True
        if not await host.ready(timeout=120):
            assert state(host).phase in ("needs_auth", "parked")
            await host.restart("web")
            assert await host.ready(timeout=60)
        assert said(await host.call_tool("web", "echo", {"a": 1}, timeout=60)) == '{"a": 1}'
        assert len(web.sessions) == (1 if kind == "legacy" else 0)
