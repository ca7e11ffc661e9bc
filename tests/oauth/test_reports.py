"""Reports of other hosts about logins, each as a test: see tests/reports/README.md."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import trio
from playbill.actors import Config, ServerEntry, open_host
from playbill.actors.edge.auth import keeper as keeping

from .conftest import PATIENCE, Authority, OnStage, Person, kept


async def test_b101_a_reconnect_asks_for_the_token_anew_and_sends_a_dead_one_no_more_than_it_must(
    authority: Authority, on_stage: OnStage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "POLL_SECONDS", 0.05)
    async with on_stage() as stage:
        await stage.until("needs_auth")
        await stage.login()
        await stage.settled()
        dead = kept(folder)["access_token"]
        authority.set(do=["revoke_all"])
        before = len(authority.stats()["sent"])
        await stage.host.restart("web")
        await stage.until("needs_auth")
        # What was on its way, and one request that finds out: none of them is sent a second time.
        sent = Counter(method for token, method in authority.stats()["sent"][before:] if token == dead)
        assert sent["server/discover"] == 1
        assert set(sent.values()) == {1}
        count = len(authority.stats()["bearers"])
        assert not await stage.host.ready(timeout=0.3)
        assert len(authority.stats()["bearers"]) == count
        # Somebody logs in elsewhere: the next connection has that token, and never the dead one.
        async with on_stage() as other:
            await other.until("needs_auth")
            count = len(authority.stats()["bearers"])
            await other.login()
            await stage.until("ready")
            after = authority.stats()["bearers"][count:]
            assert dead not in after


async def test_b102_servers_of_one_origin_that_reconnect_at_once_open_no_login_page_and_renew_once(
    authority: Authority, folder: Path
) -> None:
    names = ("one", "two", "three")
    person = Person()
    servers = tuple(ServerEntry(name, url=authority.url) for name in names)
    async with open_host(Config(servers), login_folder=folder) as host:
        with trio.fail_after(PATIENCE):
            await host.login("one", open_url=person)
            # One login is that of all three: the others notice it.
            assert await host.ready(timeout=PATIENCE)
        for _ in range(2):
            authority.set(do=["revoke_access"])
            before = authority.seen("refresh")
            async with trio.open_nursery() as nursery:
                for name in names:
                    nursery.start_soon(host.restart, name)
            assert await host.ready(timeout=PATIENCE)
            assert authority.seen("refresh") == before + 1
        assert len(person.urls) == authority.seen("authorize") == 1
