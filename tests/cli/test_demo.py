"""The demo holds its claims against what it sees: a real run is all true, and each kind of lie is found out."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playbill.actors import Host, ServerDied, open_host
from playbill.actors.cli import acts, demo
from playbill.actors.cli.stage import PlainStage, RichStage, Stage
from rich.console import Console

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
Opener = Callable[[Path], AbstractAsyncContextManager[Any]]

WAIT = 60.0


def test_the_demo_shows_all_it_claims_and_exits_0(playbill: Playbill, tmp_path: Path) -> None:
    done = playbill("demo", TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^(\d)\. (.*)$", done.stdout, re.MULTILINE) == [
        ("1", "The catalog"),
        ("2", "A toggle"),
        ("3", "A kill -9"),
        ("4", "A reload"),
        ("5", "The curtain"),
    ]
    assert "mcp__clock__now" in done.stdout
    assert "FALSE" not in done.stdout
    assert "\x1b" not in done.stdout
    assert re.search(r"^\d+ claims, all true, in \d+\.\d s$", done.stdout, re.MULTILINE)
    assert list(tmp_path.iterdir()) == []


def test_the_demo_as_json_is_json_alone(inside: Playbill) -> None:
    done = inside("demo", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    value = json.loads(done.stdout)
    assert (value["schema"], value["ok"]) == (1, True)
    assert {claim["act"] for claim in value["claims"]} == {1, 2, 3, 4, 5}
    assert all(claim["held"] for claim in value["claims"])


class Liar:
    """A host that does what it is asked, and then something it should not."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def __getattr__(self, name: str) -> Any:
        return getattr(self.host, name)


class RespawnsOnToggle(Liar):
    async def tool_set_enabled(self, server: str, bare: str, on: bool) -> Any:
        snapshot = await self.host.tool_set_enabled(server, bare, on)
        await self.host.restart(server)
        await self.host.ready(timeout=WAIT)
        return snapshot


class ForgetsToWrite(Liar):
    async def tool_set_enabled(self, server: str, bare: str, on: bool) -> Any:
        before = self.host.snapshot()
        return before if not on else await self.host.tool_set_enabled(server, bare, on)


class LosesCalls(Liar):
    async def call(self, name: str, arguments: Any = None) -> Any:
        notes = self.host.snapshot().model.server("notes")
        if name == "mcp__clock__wait" and notes is not None and notes.phase != "ready":
            raise ServerDied("clock", "one down, all down")
        return await self.host.call(name, arguments)


class RestartsAllOnReload(Liar):
    async def reload(self) -> Any:
        snapshot = await self.host.reload()
        await self.host.restart("clock")
        await self.host.ready(timeout=WAIT)
        return snapshot


class FailsInTheMiddle(Liar):
    async def reload(self) -> Any:
        raise ServerDied("clock", "in the middle")


def lying(kind: type[Liar]) -> Opener:
    @asynccontextmanager
    async def opener(config: Path) -> AsyncIterator[Any]:
        async with open_host(config) as host:
            yield kind(host)

    return opener


@pytest.mark.parametrize(
    ("kind", "act", "false"),
    [
        (RespawnsOnToggle, acts.toggle, {"the same processes run as before"}),
        (
            ForgetsToWrite,
            acts.toggle,
            {"switched off, it leaves the catalog", "it stays listed, as excluded", "mcp.json says so"},
        ),
        (LosesCalls, acts.kill, {"no call of clock failed"}),
        (RestartsAllOnReload, acts.reload, {"clock was not touched"}),
        (FailsInTheMiddle, acts.reload, {"act 2 plays to its end"}),
    ],
)
async def test_a_lie_is_named(kind: type[Liar], act: acts.Act, false: set[str]) -> None:
    stage = Stage()
    await demo.play(stage, WAIT, lying(kind), (acts.catalog, act))
    assert {claim.claim for claim in stage.false} == false


def _sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])


async def test_a_process_left_behind_is_named() -> None:
    left: list[subprocess.Popen[bytes]] = []

    @asynccontextmanager
    async def opener(config: Path) -> AsyncIterator[Any]:
        async with open_host(config) as host:
            yield host
        left.append(_sleeper())

    stage = Stage()
    try:
        await demo.play(stage, 0.5, opener, ())
        (claim,) = stage.false
        assert claim.claim == "nothing is left running"
        assert str(left[0].pid) in claim.detail
    finally:
        for process in left:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()


async def test_a_host_that_cannot_open_is_a_false_claim() -> None:
    @asynccontextmanager
    async def opener(config: Path) -> AsyncIterator[Any]:
        raise OSError("no room")
        yield

    stage = Stage()
    await demo.play(stage, WAIT, opener)
    assert [claim.claim for claim in stage.false] == ["the host opens and closes in order"]
    assert "no room" in stage.false[0].detail


def test_a_lying_demo_exits_1_and_names_the_claim(tmp_path: Path, environment: dict[str, str]) -> None:
    """The whole way: a host whose toggle respawns, under the verb itself."""
    code = f"""
import sys
from contextlib import asynccontextmanager
from playbill.actors import open_host
from playbill.actors.cli.demo import demo

class Liar:
    def __init__(self, host):
        self.host = host

    def __getattr__(self, name):
        return getattr(self.host, name)

    async def tool_set_enabled(self, server, bare, on):
        snapshot = await self.host.tool_set_enabled(server, bare, on)
        await self.host.restart(server)
        await self.host.ready(timeout={WAIT})
        return snapshot

@asynccontextmanager
async def opener(config):
    async with open_host(config) as host:
        yield Liar(host)

sys.exit(demo(opener=opener))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "FALSE the same processes run as before" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("playbill: false claim in act 2: the same processes run as before (")


def test_a_stage_in_a_pipe_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    stage = PlainStage()
    stage.act("Title", "Words.")
    stage.claim("true", True, "seen\nso")
    stage.claim("false", False)
    stage.end(1.25)
    assert capsys.readouterr().out.splitlines() == [
        "",
        "1. Title",
        "   Words.",
        "   ok    true (seen so)",
        "   FALSE false",
        "",
        "1 of 2 claims false, after 1.2 s",
    ]


def test_a_stage_on_a_terminal_wraps_and_takes_nothing_for_markup() -> None:
    out = io.StringIO()
    stage = RichStage(
        console=Console(file=out, width=40, force_terminal=True, color_system="standard", highlight=False)
    )
    stage.act("Title", "[red]Words.")
    stage.claim("a claim that is longer than the line is wide", True, "[bold]seen")
    stage.claim("false", False, "\x1b[2J")
    text = out.getvalue()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert "[red]Words." in plain
    assert "[bold]seen" in plain
    assert "\x1b[2J" not in text
    assert max(map(len, plain.splitlines())) <= 40
    assert "\x1b[1;31m" in text


def test_the_demo_writes_its_config_where_it_is_told_and_over_nothing(playbill: Playbill, tmp_path: Path) -> None:
    there = tmp_path / "mcp.json"
    there.write_text("mine")
    done = playbill("demo", "--config", there)
    assert done.returncode == 2
    assert str(there) in done.stderr
    assert there.read_text() == "mine"
    done = playbill("demo", "--json", "--config", tmp_path / "new.json")
    assert done.returncode == 0
    assert set(json.loads((tmp_path / "new.json").read_text())["mcpServers"]) == {"clock", "notes", "scratch"}
