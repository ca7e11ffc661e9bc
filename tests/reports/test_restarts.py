"""Servers that fail to start, start slowly, or start again and again."""

from __future__ import annotations

import json
import math
import os
import random
import signal
from pathlib import Path

import pytest
import trio
from playbill.actors import Config, ServerEntry, open_host
from playbill.actors.cli import app
from playbill.actors.edge.config.file import FileStore
from playbill.actors.testing import Script, ScriptedServers
from playbill.supervision import Backoff, Intensity

from .conftest import PATIENCE, Project, fake, opened, said, until, virtual_time, wrapped


@virtual_time
async def test_b114_a_server_that_never_answers_has_one_copy_a_growing_pause_and_a_last_attempt() -> None:
    servers = ScriptedServers(spins=Script(connect_delay=math.inf), good=["x"])
    entries = (ServerEntry("spins", command="spins", connect_timeout=2), ServerEntry("good", command="good"))
    async with opened(servers, Config(entries)) as host:
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(host.revive, "spins")
        await host.ready(timeout=200)
        state = host.snapshot().model.server("spins")
        assert state.phase == "parked"
        assert "no answer" in state.error
        # Ten asked for a start of what is starting: that is one start, and then five more of its own.
        assert servers.spawns == {"spins": 6, "good": 1}
        assert servers.most_at_once["spins"] == 1


@pytest.mark.parametrize("how", ["it is killed", "it is restarted"])
async def test_b116_the_whole_tree_of_a_wrapper_is_gone_before_its_successor_starts(
    project: Project, impatient: None, how: str
) -> None:
    server = fake(ignore_eof=True, ignore_term=True, grandchild="stubborn")
    project.write(a=wrapped('exec 3<&0; "$@" <&3 & wait', server))
    async with open_host(project.path, backoff=Backoff(base=0.01, max=0.1, reset_after=30.0)) as host:
        for _ in range(2):
            assert await host.ready(timeout=PATIENCE)
            old, pid = set(project.processes()), host.snapshot().model.server("a").pid
            assert len(old) == 3
            if how == "it is killed":
                os.kill(pid, signal.SIGKILL)
            else:
                await host.restart("a")
            await until(host, lambda snapshot, pid=pid: snapshot.model.server("a").pid not in (pid, None))
            assert old.isdisjoint(project.processes())


async def test_b116_what_a_wrapper_left_behind_when_it_exited_at_once_is_gone_at_the_latest_when_it_is_parked(
    project: Project,
) -> None:
    project.write(a=wrapped('exec 3<&0; "$@" <&3 &', fake(ignore_eof=True, ignore_term=True, grandchild="stubborn")))
    quick, limit = Backoff(base=0.01, max=0.1), Intensity(restarts=3, window=600.0, then="park", park_retry=3600.0)
    async with open_host(project.path, backoff=quick, intensity=limit) as host:
        await until(host, lambda snapshot: snapshot.model.server("a").phase == "parked")
        assert host.snapshot().model.server("a").restarts == 3
        assert project.processes() == []


@virtual_time
async def test_b121_servers_that_start_around_the_limit_all_become_ready_by_themselves() -> None:
    rng = random.Random(121)
    servers = ScriptedServers(**{f"s{n}": Script(("x",), connect_delay=rng.uniform(9, 80)) for n in range(20)})
    entries = servers.entries(connect_timeout=60)
    late = {name for name, script in servers.scripts.items() if script.connect_delay > 60}
    assert 0 < len(late) < 20
    async with opened(servers, Config(entries)) as host:
        first = await host.ready(timeout=59)
        assert set(first.missing) == late
        assert len(host.snapshot().catalog.tools) == 20 - len(late)
        for name in late:
            servers.scripts[name].connect_delay = rng.uniform(9, 56)
        for name in late:
            failed = await until(host, lambda snapshot, name=name: snapshot.model.server(name).error)
            assert "no answer within 60 s" in failed.model.server(name).error
        assert await host.ready(timeout=200)
        assert len(host.snapshot().catalog.tools) == 20
        assert all(servers.spawns[name] == 1 + (name in late) for name in servers.scripts)


@virtual_time
@pytest.mark.parametrize("how", ["by the program", "by the command line"])
async def test_b122_adding_a_slow_server_saves_it_at_once_and_tests_nothing(tmp_path: Path, how: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {}}')
    servers = ScriptedServers(slow=Script(("x",), connect_delay=10))
    async with opened(servers, store=FileStore(path)) as host:
        if how == "by the program":
            snapshot = await host.plugin_add("slow", "slow")
        else:
            assert app.run(["add", "slow", "--config", str(path), "--", "slow"]) == 0
            assert servers.spawns == {}
            snapshot = await host.reload()
        assert snapshot.model.server("slow").phase == "starting"
        assert json.loads(path.read_text())["mcpServers"]["slow"]["command"] == "slow"
        assert "slow" not in servers.live
        assert await host.ready(timeout=20)
        assert servers.spawns == {"slow": 1}


async def test_b008_what_cannot_start_fails_alone_and_with_its_reason(project: Project) -> None:
    project.write(
        one=fake(),
        dies=fake(exit_at_once=1, say="cannot open the database"),
        two=fake(),
        missing={"command": "no-such-command"},
        hangs=fake(hang=True),
        three=fake(),
    )
    async with open_host(project.path) as host:
        good = ["one", "two", "three"]
        assert await host.ready(require=good, timeout=PATIENCE)
        await until(host, lambda snapshot: snapshot.model.server("dies").error)
        missing = (await host.ready(timeout=0)).missing
        assert missing.keys() == {"dies", "missing", "hangs"}
        assert "cannot open the database" in missing["dies"]
        assert "no-such-command" in missing["missing"]
        for name in good:
            state = host.snapshot().model.server(name)
            assert (state.restarts, int(said(await host.call(f"mcp__{name}__pid", timeout=PATIENCE)))) == (0, state.pid)


@virtual_time
async def test_b009_servers_start_side_by_side_each_with_a_clock_of_its_own() -> None:
    rng = random.Random(9)
    delays = [rng.uniform(0, 8) for _ in range(12)] + [20.0, 25.0]
    servers = ScriptedServers(**{f"s{n}": Script((f"x{n}",), connect_delay=delay) for n, delay in enumerate(delays)})
    async with opened(servers, Config(servers.entries(connect_timeout=30))) as host:
        assert len(host.snapshot().model.servers) == 14
        assert servers.live == {}
        sizes, versions = [], []
        async for snapshot in host.changes():
            sizes.append(len(snapshot.catalog.tools))
            versions.append(snapshot.catalog.version)
            if len(snapshot.catalog.tools) == 14:
                break
        assert sizes == sorted(sizes)
        assert versions == sorted(versions)
        assert set(sizes) == set(range(15))
        assert set(servers.spawns.values()) == {1}
        assert {what for _, _, what in servers.log} == {"spawn", "connected"}
        assert [when for when, _, what in servers.log if what == "spawn"] == [servers.log[0][0]] * 14
