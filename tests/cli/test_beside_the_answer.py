"""What is said beside the answer, in virtual time and without a process: progress, events, log lines, tables for a terminal."""

from __future__ import annotations

import io
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
import trio.testing
from playbill.actors import Event, Host
from playbill.actors.cli import hosting
from playbill.actors.cli.errors import CliError, Exit, explain, failure
from playbill.actors.cli.render import Table, columns_used, rich_list, rich_table, summary
from playbill.actors.cli.voice import Voice, speak, voice
from playbill.actors.cli.waiting import settle, working
from playbill.actors.model.errors import ConfigError, UnknownServer
from rich.console import Console

from .test_waiting import Scripted, Terminal, server


@pytest.fixture(autouse=True)
def a_voice_of_our_own() -> Iterator[None]:
    """What one test makes of the voice is not heard in the next."""
    before = voice()
    speak(Voice())
    yield
    speak(before)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A stderr that a person reads."""
    terminal = Terminal()
    monkeypatch.setattr("playbill.actors.cli.voice.sys", SimpleNamespace(stderr=terminal))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return terminal


# Progress.


async def test_progress_that_says_the_same_is_drawn_once(
    autojump_clock: trio.testing.MockClock, told: Terminal
) -> None:
    await settle(cast(Host, Scripted(server("starting", "slow"))), 60)
    assert told.getvalue() == "\rwaiting for slow\x1b[K\r\x1b[K"


async def test_progress_counts_those_that_may_get_ready_and_no_other(
    autojump_clock: trio.testing.MockClock, told: Terminal
) -> None:
    servers = [server("ready", "a"), server("starting", "b"), server("starting", "c"), server("parked", "d")]
    await settle(cast(Host, Scripted(*servers)), 1)
    assert "waiting for b, c (1 of 3 ready)" in told.getvalue()
    await settle(cast(Host, Scripted(*servers)), 1, ["b"])
    assert told.getvalue().endswith("\rwaiting for b\x1b[K\r\x1b[K")


async def test_half_a_second_is_counted_from_when_there_is_something_to_say(
    autojump_clock: trio.testing.MockClock, told: Terminal
) -> None:
    doing = ""
    async with working(lambda: doing):
        await trio.sleep(10)
        doing = "the first"
        await trio.sleep(0.4)
        doing = ""
        await trio.sleep(0.4)
        doing = "the second"
        await trio.sleep(0.4)
        assert told.getvalue() == ""
        await trio.sleep(0.6)
        assert told.getvalue() == "\rthe second\x1b[K"
    assert told.getvalue() == "\rthe second\x1b[K\r\x1b[K"


async def test_progress_is_wiped_before_anything_else_is_said(
    autojump_clock: trio.testing.MockClock, told: Terminal
) -> None:
    async with working(lambda: "working"):
        await trio.sleep(1)
        voice().say("a line")
        await trio.sleep(1)
    assert told.getvalue() == "\rworking\x1b[K\r\x1b[Ka line\n\rworking\x1b[K\r\x1b[K"


async def test_what_is_done_when_a_verb_is_cancelled_is_told_while_it_takes_its_time(
    autojump_clock: trio.testing.MockClock, told: Terminal
) -> None:
    doing = ""
    with trio.move_on_after(1):
        async with working(lambda: doing):
            try:
                await trio.sleep_forever()
            finally:
                doing = "tidying up"
                with trio.CancelScope(shield=True):
                    await trio.sleep(3)
    assert told.getvalue() == "\rtidying up\x1b[K\r\x1b[K"


async def test_a_host_that_takes_long_to_stop_is_not_silent(
    autojump_clock: trio.testing.MockClock, told: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def slow(*_: Any, **__: Any) -> AsyncIterator[Any]:
        yield Scripted(server("ready"))
        await trio.sleep(5)

    monkeypatch.setattr(hosting, "open_host", slow)
    async with hosting.opened(None):
        await trio.sleep(5)
        assert told.getvalue() == ""
    assert told.getvalue() == "\rstopping the servers\x1b[K\r\x1b[K"


# Events, with --verbose.


class Eventful(Scripted):
    """A host with a journal for each server, and events that come later."""

    def __init__(self, journals: Mapping[str, Sequence[Event]], later: Sequence[Event]) -> None:
        super().__init__(*(server("ready", name) for name in journals))
        self._journals = journals
        self._later = later

    def journal(self, name: str) -> Sequence[Event]:
        return self._journals[name]

    async def events(self) -> AsyncIterator[Event]:
        for each in self._later:
            yield each


def event(seq: int, name: str, kind: Any = "started", detail: str = "") -> Event:
    return Event(seq=seq, at=0.0, name=name, generation=1, kind=kind, detail=detail)


async def test_events_are_told_once_each_in_the_order_they_happened(capsys: pytest.CaptureFixture[str]) -> None:
    speak(Voice(verbose=True))
    a, b = [event(1, "a", "spawned"), event(4, "a")], [event(2, "b", "spawned"), event(3, "b", "down", "killed")]
    host = Eventful({"a": a, "b": b}, [*b, a[1], event(5, "b")])
    await hosting._tell(cast(Host, host), host.events())
    assert [line.partition(" s  ")[2] for line in capsys.readouterr().err.splitlines()] == [
        "server 'a': spawned",
        "server 'b': spawned",
        "server 'b': down: killed",
        "server 'a': started",
        "server 'b': started",
    ]


def test_a_log_line_that_cannot_be_made_is_told_as_it_was_given(capsys: pytest.CaptureFixture[str]) -> None:
    record = logging.LogRecord("playbill.edge", logging.WARNING, __file__, 1, "%d of them", ("many",), None)
    hosting._Handler(Voice()).emit(record)
    assert capsys.readouterr().err == "playbill: warning: %d of them\n"


def test_how_much_is_logged_is_as_it_was_when_the_host_is_closed() -> None:
    logger = logging.getLogger("playbill")
    before = logger.level
    with hosting._logged(Voice(verbose=True)):
        assert logger.level == logging.INFO
    assert logger.level == before


# Tables on a terminal.


def drawn(what: Any, width: int = 30) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(what)
    return [line.rstrip() for line in cast(io.StringIO, console.file).getvalue().splitlines()]


WILD = Table(("NAME", "PHASE", "WHY"), (("a\x1b[2J", "ready", "[red]no\x1b[2J"), ("b\n", "", "")), 0)


def test_no_table_for_a_terminal_lets_a_server_drive_it() -> None:
    for shown in (drawn(rich_list(WILD)), drawn(rich_table(WILD), 80)):
        assert all(line.isprintable() for line in shown)
        assert any("[red]no" in line for line in shown)


def test_a_narrow_terminal_gets_a_paragraph_for_each_row_without_what_is_empty() -> None:
    assert drawn(rich_list(WILD)) == ["a [2J", "  phase ready", "  why   [red]no [2J", "b"]


def test_a_column_that_nothing_stands_in_is_left_out_and_the_first_ones_stay() -> None:
    rows = [("a", "", "", "x"), ("b", "", "", "")]
    assert columns_used(("N", "P", "Q", "R"), rows, keep=2) == Table(("N", "P", "R"), (("a", "", "x"), ("b", "", "")))


@pytest.mark.parametrize(
    ("text", "said"), [(None, ""), ("", ""), (" \n ", ""), ("\n\n  First.\nSecond.", "First."), ("a\tb", "a b")]
)
def test_a_description_is_shown_by_its_first_line(text: str | None, said: str) -> None:
    assert summary(text) == said


# Failures.


def test_of_a_group_what_a_verb_says_of_it_counts_before_what_a_host_does() -> None:
    group = ExceptionGroup("", [ConfigError("wrong"), CliError(Exit.SERVER, "it is not ready"), ValueError("noise")])
    assert explain(group) == (Exit.SERVER, "it is not ready")


def test_the_failure_of_a_group_tells_the_parts_of_what_counts_in_it() -> None:
    error = ConfigError("wrong", file="mcp.json", line=3, column=4, path="a.b")
    failed = failure(3, "mcp.json:3:4:\nwrong", ExceptionGroup("", [ValueError("noise"), error]))["failed"]
    assert (failed["file"], failed["line"], failed["column"], failed["path"]) == ("mcp.json", 3, 4, "a.b")
    assert (failed["error"], failed["kind"], failed["message"]) == ("ConfigError", "config", "mcp.json:3:4: wrong")
    near = failure(2, "no", UnknownServer("clok", "clock"))["failed"]
    assert (near["near"], near["file"]) == ("clock", None)


def test_the_traceback_of_a_defect_is_there_for_who_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLAYBILL_DEBUG", "1")
    code, line = explain(ZeroDivisionError("by zero"))
    assert (code, line) == (1, "unexpected ZeroDivisionError: by zero")
    assert "ZeroDivisionError: by zero" in capsys.readouterr().err
    monkeypatch.delenv("PLAYBILL_DEBUG")
    assert explain(ZeroDivisionError("by zero"))[1].endswith("(PLAYBILL_DEBUG=1 shows where; please report it)")
    assert capsys.readouterr().err == ""
