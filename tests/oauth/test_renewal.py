"""Tokens that end: one renewal for all that need it, whoever is cancelled, in whichever process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import ServerUnavailable
from playbill.actors.edge.auth import keeper as keeping

from ..forked import Forked
from .conftest import PATIENCE, Authority, OnStage, Stage, kept, only_file


async def side_by_side(stage: Stage, count: int) -> list[int]:
    """Call a server so often at once; the answers, in order."""
    answers: dict[int, int] = {}

    async def call(n: int) -> None:
        answers[n] = await stage.call(n=n)

    async with trio.open_nursery() as nursery:
        for n in range(count):
            nursery.start_soon(call, n)
    return [answers[n] for n in sorted(answers)]


def edit(folder: Path, **how: Any) -> None:
    """Change what is kept, as if time had passed."""
    path = only_file(folder)
    path.write_text(json.dumps({**json.loads(path.read_text()), **how}))


@pytest.mark.parametrize("how", ["refused", "ended"])
async def test_fifty_calls_at_once_are_worth_one_refresh_and_all_are_answered(
    authority: Authority, on_stage: OnStage, folder: Path, how: str
) -> None:
    async with on_stage() as stage:
        await stage.until("needs_auth")
        if how == "ended":
            authority.set(lifetime=3)
        await stage.login()
        await stage.until("ready")
        while how == "ended" and kept(folder)["expires_at"] > time.time():
            await trio.sleep(0.05)
        before = authority.seen("refresh")
        authority.set(lifetime=3600)
        if how == "refused":
            authority.set(do=["revoke_access"])
        assert await side_by_side(stage, 50) == list(range(50))
        stats = authority.stats()["seen"]
        assert stats["refresh"] - before == 1
        assert stats["echo"] == 50
        assert stats.get("reused", 0) == 0
        assert stage.state().restarts == 0
        assert stage.phases.count("needs_auth") == 1


async def test_calls_go_out_side_by_side(authority: Authority, on_stage: OnStage) -> None:
    async with on_stage() as stage:
        await stage.until("needs_auth")
        await stage.login()
        await stage.until("ready")
        begun = trio.current_time()
        await stage.call("slow", seconds=1.0)
        one = trio.current_time() - begun
        begun = trio.current_time()
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(lambda: stage.call("slow", seconds=1.0))
        eight = trio.current_time() - begun
        assert authority.stats()["most"] == 8
        print(f"eight calls of 1 s took {eight / one:.2f} times what one took ({eight:.2f} s, {one:.2f} s)")


async def test_a_caller_that_gives_up_does_not_lose_the_renewal(
    authority: Authority, on_stage: OnStage, folder: Path
) -> None:
    async with on_stage() as stage:
        await stage.until("needs_auth")
        await stage.login()
        await stage.until("ready")
        authority.set(do=["revoke_access"], token_delay=0.5)
        before = kept(folder)["access_token"]
        with trio.move_on_after(0.2):
            await stage.call(n=1)
        with trio.fail_after(PATIENCE):
            while kept(folder)["access_token"] == before:
                await trio.sleep(0.01)
        assert await stage.call(n=2) == 2
        assert authority.seen("refresh") == 1


async def test_a_host_that_closes_while_a_login_is_renewed_keeps_what_comes_of_it(
    authority: Authority, on_stage: OnStage, folder: Path
) -> None:
    async with on_stage() as stage:
        await stage.until("needs_auth")
        await stage.login()
        await stage.until("ready")
        authority.set(do=["revoke_access"], token_delay=0.5)
        with trio.move_on_after(0.2):
            await stage.call(n=1)
    assert authority.seen("refresh") == 1
    async with on_stage() as again:
        await again.until("ready")
        assert await again.call(n=3) == 3
    assert authority.seen("refresh") == 1
    assert authority.seen("reused") == 0


async def test_two_hosts_share_a_login_and_use_up_no_refresh_token_twice(
    authority: Authority, on_stage: OnStage
) -> None:
    async with on_stage() as one:
        await one.until("needs_auth")
        await one.login()
        await one.until("ready")
        async with on_stage() as other:
            await other.until("ready")
            for round_ in range(3):
                authority.set(do=["revoke_access"])
                async with trio.open_nursery() as nursery:
                    for stage in (one, other):
                        for n in range(5):
                            nursery.start_soon(lambda stage=stage, n=n: stage.call(n=n))
                assert authority.seen("refresh") == round_ + 1
            assert authority.seen("reused") == 0
            assert (one.phases.count("needs_auth"), other.phases.count("needs_auth")) == (1, 0)


async def test_programs_that_need_a_login_renewed_at_once_renew_it_once(
    authority: Authority, on_stage: OnStage, tmp_path: Path
) -> None:
    async with on_stage(tmp_path / "state" / "playbill" / "logins") as stage:
        await stage.login()
        await stage.until("ready")
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"web": {"url": authority.url}}}))
    authority.set(do=["revoke_access"], token_delay=0.3)
    command = [sys.executable, "-m", "playbill.actors.cli", "call", "web/echo", '{"n": 1}', "--config", str(config)]
    environ = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    programs = [Forked(command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for _ in range(3)]
    with trio.fail_after(PATIENCE):
        codes = [await trio.to_thread.run_sync(each.wait, abandon_on_cancel=True) for each in programs]
    assert codes == [0, 0, 0]
    seen = authority.stats()["seen"]
    assert (seen["refresh"], seen["echo"], seen.get("reused", 0)) == (1, 3, 0)


async def test_a_login_that_was_revoked_leads_to_needs_auth_once_and_another_one_out_of_it(
    authority: Authority, on_stage: OnStage, folder: Path
) -> None:
    async with on_stage() as stage:
        await stage.until("needs_auth")
        await stage.login()
        await stage.until("ready")
        authority.set(do=["revoke_all"])
        outcomes: list[Exception] = []

        async def call() -> None:
            try:
                await stage.call(n=1)
            except Exception as error:
                outcomes.append(error)

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(call)
        state = await stage.until("needs_auth")
        assert [type(each) for each in outcomes] == [ServerUnavailable] * 10
        assert state.error == "HTTP 401 Unauthorized: it wants a login: the login has ended, or was revoked"
        assert authority.seen("token") == 2  # the first login, and one refresh that was refused
        assert kept(folder)["refresh_token"] is None
        bearers = len(authority.stats()["bearers"])
        assert not await stage.host.ready(timeout=0.3)
        assert len(authority.stats()["bearers"]) == bearers
        await stage.login()
        await stage.until("ready")
        assert await stage.call(n=2) == 2
        assert authority.seen("register") == 1
        assert stage.state().restarts == 0
        assert stage.phases.count("needs_auth") == 2


async def test_a_login_by_another_host_is_noticed(
    authority: Authority, on_stage: OnStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "POLL_SECONDS", 0.05)
    async with on_stage() as waiting, on_stage() as other:
        await waiting.until("needs_auth")
        await other.until("needs_auth")
        await other.login()
        await waiting.until("ready")
        assert await waiting.call(n=1) == 1
        assert waiting.state().restarts == 0


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_an_authorisation_server_that_is_down_costs_the_call_and_not_the_login(
    authority: Authority, on_stage: OnStage, folder: Path, status: int
) -> None:
    async with on_stage() as stage:
        await stage.until("needs_auth")
        await stage.login()
        await stage.until("ready")
        authority.set(do=["revoke_access"], token_status=status)
        before = kept(folder)
        with pytest.raises(
            AssertionError, match=f"the login is not to be had now: .* gives no token now: HTTP {status}"
        ):
            await stage.call(n=1)
        assert stage.state().phase == "ready"
        assert kept(folder) == before
        authority.set(token_status=None)
        assert await stage.call(n=2) == 2
        assert stage.phases.count("needs_auth") == 1


async def test_a_token_that_is_about_to_end_is_renewed_before_it_does(
    authority: Authority, on_stage: OnStage, folder: Path
) -> None:
    async with on_stage() as stage:
        await stage.until("needs_auth")
        await stage.login()
        await stage.until("ready")
    record = kept(folder)
    edit(folder, expires_at=record["issued_at"] + 1.0, issued_at=record["issued_at"] - 3600)
    refused = authority.seen("refused")
    async with on_stage() as stage:
        await stage.until("ready")
        assert await stage.call(n=1) == 1
    assert authority.seen("refresh") == 1
    assert authority.seen("refused") == refused
