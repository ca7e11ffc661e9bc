"""What a host tells of its servers' lives: the stream of events, the journal of each, and what the snapshot says meanwhile."""

from __future__ import annotations

import pytest
import trio
from playbill.actors import HostClosed, UnknownServer
from playbill.actors.testing import Script, ScriptedServers
from playbill.supervision import Event, Gap

from .conftest import Open


async def test_a_death_is_told_in_order_with_its_reason_to_those_who_listen_and_in_the_journal(opened: Open) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    heard: list[Event | Gap] = []

    async def listen() -> None:
        async for event in host.events():
            heard.append(event)

    async with trio.open_nursery() as nursery, opened(servers) as host:
        await host.ready(timeout=5)
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        servers.live["a"].lose("the server was killed by SIGKILL")
        await trio.sleep(60)
        kinds = [event.kind for event in host.journal("a")]
        assert kinds == ["spawned", "started", "healthy", "down", "backing_off", "spawned", "started", "healthy"]
        assert [event.kind for event in host.journal("b")] == ["spawned", "started", "healthy"]
        journal = host.journal("a")
        assert "killed by SIGKILL" in journal[3].detail
        assert [event.at for event in journal] == sorted(event.at for event in journal)
    # The iterator ends with the host, or the nursery would not have ended.
    assert tuple(heard[:5]) == journal[3:]


async def test_the_journal_of_a_flapping_server_is_bounded_and_its_neighbours_is_not_touched(opened: Open) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        events = host.events()
        for _ in range(200):
            servers.live["a"].lose("it flaps")
            await trio.sleep(1)
            await host.revive("a")
            await host.ready(require=["a"], timeout=200)
        assert len(host.journal("a")) == 256
        assert [event.kind for event in host.journal("b")] == ["spawned", "started", "healthy"]
        assert host.journal("a")[-1].kind == "healthy"
        assert await anext(events)


async def test_a_slow_listener_is_told_how_much_it_missed_and_holds_up_nobody(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        events = host.events()
        for _ in range(1000):
            servers.live["a"].lose("it flaps")
            await trio.sleep(1)
            await host.revive("a")
            await host.ready(require=["a"], timeout=200)
        first = await anext(events)
        assert isinstance(first, Gap)
        assert first.missed > 0
        second = await anext(events)
        assert isinstance(second, Event)


async def test_a_parked_server_shows_its_window_its_next_attempt_its_reason_and_its_last_words(opened: Open) -> None:
    words = "reading the licence\nit ended in May\n"
    servers = ScriptedServers(a=Script(("x",), refuse="no licence", says=words))
    async with opened(servers) as host:
        attempts = set()
        async for snapshot in host.changes():
            state = snapshot.model.server("a")
            if state.phase == "backing_off":
                assert state.next_retry_at > trio.current_time()
                assert (state.error, state.stderr_tail) == ("no licence", words)
                attempts.add(state.attempt)
            if state.phase == "parked":
                break
        limit = max(of for _, of in attempts)
        assert attempts == {(n, limit) for n in range(1, limit + 1)}
        assert (state.error, state.stderr_tail) == ("no licence", words)
        assert state.restarts == limit
        assert host.journal("a")[-1].kind == "parked"
        assert "no licence" in host.journal("a")[-1].detail
        servers.scripts["a"].refuse = None
        await host.revive("a")
        assert await host.ready(timeout=5)
        state = host.snapshot().model.server("a")
        assert (state.restarts, state.attempt, state.error) == (0, None, None)


async def test_the_journal_names_the_nearest_server_and_ends_with_it(opened: Open) -> None:
    async with opened(ScriptedServers(github=["x"])) as host:
        await host.ready(timeout=5)
        with pytest.raises(UnknownServer, match="github"):
            host.journal("githbu")
        await host.plugin_remove("github")
        with pytest.raises(UnknownServer):
            host.journal("github")
    with pytest.raises(HostClosed):
        await host.revive("github")
