"""The verb that goes on: what it tells, when it ends, and with what."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import playbill.actors.cli.running as running_verb
import pytest
import trio
from playbill.actors.cli.running import Told, changes_of, is_again, run_host, words_of
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.projection import project
from playbill.actors.model.snapshot import Snapshot
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef

from ..forked import Forked
from .conftest import PROGRAM, shipped

WriteConfig = Callable[..., Path]
Playbill = Callable[..., "subprocess.CompletedProcess[str]"]


def ready(*bares: str) -> ServerStatus:
    return ServerStatus(
        lifecycle=Lifecycle(stage="running", generation=1),
        report=Report(generation=1, connected=True, ready=True),
        tools=tuple(ToolDef(bare) for bare in bares),
        tools_generation=1,
    )


def snap(*names: str, before: Snapshot | None = None, error: str | None = None, cap: int = 9, **known: Any) -> Snapshot:
    config = Config(tuple(ServerEntry(name, command="run") for name in names))
    return project(ConfigState(1, config, error), known, (), Budget(cap), before)


def said(told: Told, snapshot: Snapshot) -> tuple[Told, list[str]]:
    told, changes = changes_of(told, snapshot)
    json.dumps(changes)
    return told, [words_of(change) for change in changes]


def test_each_change_is_told_once() -> None:
    first = snap("a")
    told, lines = said(Told(), first)
    assert lines == ["server a: starting", "catalog: 0 tools"]
    second = snap("a", before=first, a=ready("x", "y"))
    told, lines = said(told, second)
    assert lines == ["server a: ready", "catalog: 2 tools (+ mcp__a__x, mcp__a__y)"]
    assert said(told, second)[1] == []
    third = snap("a", before=second, a=ready("y"), error="mcp.json:1:1: no")
    told, lines = said(told, third)
    assert lines == ["config: mcp.json:1:1: no", "catalog: 1 tool (- mcp__a__x)"]
    told, lines = said(told, snap(before=third))
    assert lines == ["server a: removed", "config: it can be read again", "catalog: 0 tools (- mcp__a__y)"]


def test_what_the_budget_dropped_is_told_with_its_warning() -> None:
    before = snap("a", a=ready("x", "y"))
    told, _ = said(Told(), before)
    _, lines = said(told, snap("a", before=before, a=ready("x", "y"), cap=1))
    assert lines == [
        "catalog: 1 tool (- mcp__a__y; trimmed a/y); 2 tools over the budget of 1 — 1 MCP tools were dropped from this "
        "session; disable some to make room"
    ]


def test_words_are_one_line_whatever_a_server_is_called() -> None:
    (line, _) = said(Told(), snap("a\n\x1b[31m"))[1]
    assert line.isprintable()


def _heard(*changes: tuple[str, str | None, str | None]) -> list[str | None]:
    """The phases that a person is told, of (server, phase, error)."""
    failing: dict[str, str | None] = {}
    told = []
    for name, phase, error in changes:
        if not is_again(failing, {"event": "server", "name": name, "phase": phase, "error": error}):
            told.append(phase)
    return told


def test_a_server_that_fails_the_same_way_again_is_told_once_and_when_it_is_parked() -> None:
    again = [("a", "starting", None), ("a", "backing_off", "not found")]
    assert _heard(*again * 4, ("a", "parked", "not found")) == ["starting", "backing_off", "parked"]
    assert _heard(*again, ("a", "starting", None), ("a", "backing_off", "killed")) == [
        "starting",
        "backing_off",
        "backing_off",
    ]
    assert _heard(*again, ("a", "starting", None), ("a", "ready", None), *again) == [
        "starting", "backing_off", "ready", "starting", "backing_off",
    ]  # fmt: skip
    assert _heard(*again, ("b", "starting", None), ("b", "backing_off", "not found")) == ["starting", "backing_off"] * 2
    assert _heard(*again, ("a", None, None), *again) == ["starting", "backing_off", None, "starting", "backing_off"]


def test_nothing_but_a_server_is_told_again() -> None:
    assert is_again({"a": None}, {"event": "catalog"}) is False
    assert is_again({"a": None}, {"event": "config", "error": None}) is False


@pytest.mark.parametrize(("more", "times"), [((), 1), (("--verbose",), 2), (("--json",), 2)])
def test_retries_are_told_to_who_asks_for_all(
    playbill: Playbill, write_config: WriteConfig, more: tuple[str, ...], times: int
) -> None:
    config = write_config(dead={"command": sys.executable, "args": ["-c", "raise SystemExit('not found')"]})
    # The command waits until the server has failed twice.
    done = playbill("run", "--no-watch", "--timeout", "60", *more, "--config", config, "--", "true")
    failures = [
        line
        for line in done.stderr.splitlines()
        if "not found" in line and ("server dead: " in line or '"event"' in line)
    ]
    assert done.returncode == 0
    assert len(failures) >= times
    if times == 1:
        assert failures == [
            "server dead: backing off: the server exited with code 1: not found (further tries are told with --verbose)"
        ]


def test_a_timeout_holds_the_command_back_until_the_servers_are_ready(
    playbill: Playbill, write_config: WriteConfig
) -> None:
    config = write_config(dice=shipped("dice"))
    done = playbill(
        "run", "--no-watch", "--timeout", "60", "--config", config, "--", sys.executable, "-c",
        "import sys; print('mine', file=sys.stderr, flush=True)",
    )  # fmt: skip
    lines = done.stderr.splitlines()
    assert lines.index("mine") > next(at for at, line in enumerate(lines) if line.startswith("server dice: ready"))


def test_with_a_command_it_ends_as_the_command_does(playbill: Playbill, write_config: WriteConfig) -> None:
    config = write_config()
    for code in (0, 7):
        done = playbill(
            "run", "--config", config, "--", sys.executable, "-c", f"print('mine'); raise SystemExit({code})"
        )
        assert (done.returncode, done.stdout) == (code, "mine\n")
        assert "catalog: 0 tools" in done.stderr
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    assert playbill("run", "--config", config, "--", sys.executable, "-c", kill).returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--", "no-such-program"), 2, "'no-such-program' cannot be run: "),
        (("--profile", "opnai", "--", "true"), 2, "did you mean 'openai'"),
        (("--scope", "user", "--", "true"), 2, "not both"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(
    inside: Playbill, write_config: WriteConfig, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = inside("run", "--no-watch", "--config", write_config(), *arguments)
    assert done.returncode == code
    assert words in done.stderr.splitlines()[-1]


def test_a_config_that_is_missing_ends_it(inside: Playbill) -> None:
    assert inside("run", "--config", "none.json", "--", "true").returncode == 3


@contextmanager
def running(cwd: Path, environment: dict[str, str], *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    process = Forked(
        [*PROGRAM, "run", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # One that never says what is waited for must not hold up the tests for ever.
    patience = threading.Timer(120, process.kill)
    patience.start()
    try:
        yield process
    finally:
        patience.cancel()
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def until(process: subprocess.Popen[str], wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first line that is wanted; its reading ends when the program does."""
    assert process.stdout is not None
    for line in process.stdout:
        change: dict[str, Any] = json.loads(line)
        assert change["schema"] == 1
        if wanted(change):
            return change
    raise AssertionError(process.communicate())


def test_it_watches_the_config_and_ends_with_ctrl_c(
    write_config: WriteConfig, tmp_path: Path, environment: dict[str, str]
) -> None:
    config = write_config(dice=shipped("dice"))
    with running(tmp_path, environment, "--config", config, "--json") as process:
        change = until(process, lambda change: change["event"] == "catalog" and change["tools"] > 0)
        assert "mcp__dice__flip" in change["added"]
        write_config(dice=shipped("dice", tools={"exclude": ["flip"]}))
        change = until(process, lambda change: change["event"] == "catalog")
        assert (change["added"], change["removed"]) == ([], ["mcp__dice__flip"])
        write_config("{")
        assert "mcp.json:1:" in until(process, lambda change: change["event"] == "config")["error"]
        write_config()
        assert until(process, lambda change: change["event"] == "server")["phase"] is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert "Traceback" not in out + err


# Without a process: what the verb asks of a host, and what it says to whom.


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the host was opened with; it has one server that dies again and again, and then a tool less."""
    asked: dict[str, Any] = {}
    first = snap("a", "b", a=ready("x", "y"))

    @asynccontextmanager
    async def opened(source: Any, **options: Any) -> AsyncIterator[Any]:
        await trio.lowlevel.checkpoint()
        asked.update(source=source, **options)
        yield SimpleNamespace(snapshot=lambda: first, changes=changes)

    async def changes() -> AsyncIterator[Snapshot]:
        yield first
        await trio.lowlevel.checkpoint()
        yield snap("a", "b", before=first, a=ready("y"), error="mcp.json:1:1: no")

    monkeypatch.setattr(running_verb, "opened", opened)
    return asked


def test_each_option_of_run_reaches_the_host(
    asked: dict[str, Any],
    write_config: WriteConfig,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = write_config()
    for options, there in (
        ({}, {"watch": True}),
        ({"watch": False}, {"watch": False}),
        ({"watch": True, "budget": 0}, {"watch": True, "budget": 0}),
    ):
        asked.clear()
        assert run_host(str(config), ["true"], **options) == 0
        assert asked == {"source": config, "scope": None, **there}
    asked.clear()
    run_host(None, ["true"], scope="user", profile="openai")
    assert (asked["source"], asked["scope"], asked["profile"].name) == (None, "user", "openai")
    monkeypatch.setattr(running_verb, "can_watch", lambda: False)
    capsys.readouterr()
    for options in ({"watch": False}, {"quiet": True}):
        run_host(str(config), ["true"], **options)
        assert "the config is not watched" not in capsys.readouterr().err
    run_host(str(config), ["true"])
    assert "the config is not watched" in capsys.readouterr().err
    assert asked["watch"] is False


@pytest.mark.parametrize(
    ("quiet", "kinds"),
    [(True, ["catalog", "catalog"]), (False, ["server a", "server b", "catalog", "config", "catalog"])],
)
def test_quiet_tells_the_changes_of_the_catalog_alone(
    asked: dict[str, Any], write_config: WriteConfig, capsys: pytest.CaptureFixture[str], quiet: bool, kinds: list[str]
) -> None:
    assert run_host(str(write_config()), [sys.executable, "-c", ""], watch=False, quiet=quiet) == 0
    out, err = capsys.readouterr()
    assert out == ""  # that is the command's own
    assert [line.partition(": ")[0] for line in err.splitlines()] == kinds


def test_of_a_server_that_gets_ready_its_next_failure_is_told_though_it_is_the_same() -> None:
    failing: dict[str, str | None] = {}
    told = [
        is_again(failing, {"event": "server", "name": "a", "phase": phase, "error": error})
        for phase, error in [("backing_off", "no"), ("ready", None), ("starting", None), ("backing_off", "no")]
    ]
    assert told == [False, False, False, False]
    assert failing == {"a": "no"}
