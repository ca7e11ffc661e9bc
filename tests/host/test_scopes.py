"""A host over the project's file and the user's: real files, scripted servers, virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import frozen
from playbill.actors import ConfigError, UnknownServer
from playbill.actors.edge.config.scopes import ScopedStore
from playbill.actors.edge.config.trust import TrustStore
from playbill.actors.testing import ScriptedServers

from .conftest import Open
from .test_looks import look


@frozen
class Files:
    project: Path
    user: Path
    trust: TrustStore
    store: ScopedStore

    def write(self, path: Path, *names: str, **more: Any) -> None:
        entries = {name: {"command": name} for name in names} | more
        path.write_text(json.dumps({"mcpServers": entries}, indent=2))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    (tmp_path / "work").mkdir()
    trust = TrustStore(tmp_path / "trust.json")
    user = tmp_path / "user.json"
    return Files(
        tmp_path / "work" / ".mcp.json",
        user,
        trust,
        ScopedStore(tmp_path / "work", user=user, trust=TrustStore(trust.path), fsync=False),
    )


@pytest.fixture
def servers() -> ScriptedServers:
    return ScriptedServers(**{name: ["x", "y"] for name in ("near", "both", "far", "late")})


async def test_a_projects_server_is_never_started_before_it_is_trusted(
    opened: Open, files: Files, servers: ScriptedServers
) -> None:
    files.write(files.project, "near")
    files.write(files.user, "far")
    async with opened(servers, files.store) as host:
        readiness = await host.ready(timeout=5)
        assert dict(readiness.missing) == {"near": "untrusted"}
        await host.reload()
        await host.server_set_enabled("near", True)
        await trio.sleep(600)
        assert servers.spawns == {"far": 1}
        snapshot = await host.trust("near")
        assert snapshot.model.server("near").phase == "starting"
        assert await host.ready(timeout=5)
        with pytest.raises(UnknownServer):
            await host.trust("nobody")
        files.write(files.project, near={"command": "near", "args": ["--evil"]})
        snapshot = await host.reload()
        assert snapshot.model.server("near").phase == "untrusted"
        await trio.sleep(600)
        assert servers.spawns == {"far": 1, "near": 1}
        assert servers.alive == {"far": 1}


async def test_a_text_that_nobody_was_shown_is_not_approved(
    opened: Open, files: Files, servers: ScriptedServers
) -> None:
    files.write(files.project, "near")
    async with opened(servers, files.store) as host:
        files.write(files.project, near={"command": "near", "args": ["--evil"]}, late={"command": "late"})
        with pytest.raises(ConfigError, match="'near' was not approved: it has changed since it was shown; look again"):
            await host.trust("near")
        near = host.snapshot().model.server("near")
        assert (near.phase, near.args) == ("untrusted", ("--evil",)), "what is there now is shown"
        await trio.sleep(600)
        assert servers.spawns == {}
        await host.trust("near")
        assert await host.ready(require=["near"], timeout=5)
        files.write(files.project, "near", "late", far={"command": "far"})
        with pytest.raises(ConfigError, match="look again"):
            await host.trust("far")
        assert host.snapshot().model.server("far").phase == "untrusted"


async def test_what_another_process_approves_is_started_by_a_look(
    opened: Open, files: Files, servers: ScriptedServers
) -> None:
    files.write(files.project, "near")
    async with opened(servers, files.store) as host:
        entry = files.store.load().get("near")
        assert entry is not None
        assert host.snapshot().model.server("near").phase == "untrusted"
        files.trust.approve(entry, files.project)
        await look(host)
        assert await host.ready(timeout=5)
        before = host.snapshot()
        assert await look(host) is before


async def test_each_server_says_its_file_edits_go_there_and_what_was_hidden_comes_out(
    opened: Open, files: Files, servers: ScriptedServers
) -> None:
    files.write(files.project, both={"url": "https://both.example/"})
    files.write(files.user, "both", "far")
    async with opened(servers, files.store) as host:
        sources = {server.name: server.source for server in host.snapshot().model.servers}
        assert sources == {"both": str(files.project), "far": str(files.user)}
        project = files.project.read_text()
        await host.tool_set_enabled("far", "x", False)
        assert files.project.read_text() == project
        assert "exclude" in files.user.read_text()
        assert await host.ready(timeout=5)
        snapshot = await host.plugin_remove("both")
        assert snapshot.model.server("both").source == str(files.user)
        assert snapshot.model.server("both").command == "both"
        assert await host.ready(timeout=5)
        assert servers.spawns == {"both": 2, "far": 1}
        await host.plugin_remove("both")
        assert host.snapshot().model.server("both") is None
        before = host.snapshot()
        assert await look(host) is before, "our own writes are known"


async def test_a_broken_file_is_told_and_hides_nothing(opened: Open, files: Files, servers: ScriptedServers) -> None:
    files.write(files.project, "near")
    files.write(files.user, "far")
    files.store.approve("near", files.store.load().get("near"))
    async with opened(servers, files.store) as host:
        assert await host.ready(timeout=5)
        good = files.project.read_text()
        files.project.write_text("{")
        files.write(files.user, "far", "late")
        with pytest.raises(ConfigError, match=r"\.mcp\.json"):
            await host.reload()
        model = host.snapshot().model
        assert [server.name for server in model.servers] == ["near", "far", "late"]
        assert str(files.project) in (model.config_error or "")
        assert await host.ready(timeout=5)
        told = host.snapshot()
        assert await look(host) is told, "it is told once"
        with pytest.raises(ConfigError):
            await host.tool_set_enabled("near", "x", False)
        snapshot = await host.tool_set_enabled("far", "x", False)
        assert snapshot.model.config_error is not None
        assert files.project.read_text() == "{"
        files.project.write_text(good)
        assert (await look(host)).model.config_error is None
        assert servers.spawns == {"near": 1, "far": 1, "late": 1}


async def test_a_host_opens_on_what_can_be_read(opened: Open, files: Files, servers: ScriptedServers) -> None:
    files.project.write_text("{")
    files.write(files.user, "far")
    async with opened(servers, files.store) as host:
        assert str(files.project) in (host.snapshot().model.config_error or "")
        assert await host.ready(timeout=5)
    files.user.unlink()
    with pytest.raises(ConfigError):
        async with opened(servers, files.store):
            raise AssertionError("it opened")


async def test_a_project_file_that_is_made_later_comes_in_force(
    opened: Open, files: Files, servers: ScriptedServers
) -> None:
    files.write(files.user, "both", "far")
    async with opened(servers, files.store) as host:
        assert await host.ready(timeout=5)
        files.write(files.project, both={"command": "both", "args": ["other"]})
        snapshot = await host.reload()
        assert snapshot.model.server("both").phase == "untrusted"
        await host.plugin_add("late", "late")
        assert "late" in files.project.read_text()
        files.project.unlink()
        await host.reload()
        assert await host.ready(timeout=5)
        assert [server.name for server in host.snapshot().model.servers] == ["both", "far"]
        assert servers.alive == {"both": 1, "far": 1}


@pytest.mark.parametrize("times", [1, 3])
async def test_a_remove_that_was_written_takes_out_no_second_entry_after_a_crash(
    opened: Open, files: Files, servers: ScriptedServers, times: int
) -> None:
    files.write(files.project, both={"url": "https://both.example/"})
    files.write(files.user, "both")
    edit, left = files.store.edit, [times]

    def crashing(edits: Any, previous: Any = None) -> Any:
        done = edit(edits, previous)
        if left[0]:
            left[0] -= 1
            raise RuntimeError("a defect of ours: nothing that the code expects")
        return done

    async with opened(servers, files.store) as host:
        files.store.edit = crashing  # type: ignore[method-assign]
        snapshot = await host.plugin_remove("both")
        assert left == [times - 1]
        assert snapshot.model.server("both").source == str(files.user)
        assert "both" in files.user.read_text()


async def test_a_burst_of_edits_of_both_files_is_all_done(opened: Open, files: Files, servers: ScriptedServers) -> None:
    names = [f"t{n}" for n in range(20)]
    wide = ScriptedServers(far=names, both=names)
    files.write(files.project, both={"url": "https://both.example/"})
    files.write(files.user, "far")
    async with opened(wide, files.store) as host:
        await host.ready(timeout=5)
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(host.tool_set_enabled, "far", name, False)
                nursery.start_soon(host.tool_set_enabled, "both", name, False)
        for path, name in ((files.project, "both"), (files.user, "far")):
            assert sorted(json.loads(path.read_text())["mcpServers"][name]["tools"]["exclude"]) == sorted(names)
        assert wide.spawns == {"far": 1, "both": 1}
