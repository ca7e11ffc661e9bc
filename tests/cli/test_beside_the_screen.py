"""What `playbill pick` says beside its screen: nothing while that is there, all of it afterwards; and that servers stop."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import playbill.actors.picker.terminal
import playbill.actors.picker.view
import pytest
import trio
import trio.testing
from playbill.actors import Event
from playbill.actors.cli import hosting, picking
from playbill.actors.cli import voice as voice_module
from playbill.actors.cli.app import run
from playbill.actors.cli.errors import diagnose, leaf_of
from playbill.actors.cli.voice import Voice, speak, voice

from .test_beside_the_answer import Eventful, event
from .test_waiting import Terminal

WriteConfig = Callable[..., Path]
LOGGER = logging.getLogger("playbill.actors.edge.config.watch")


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
    stderr_is(terminal := Terminal(), monkeypatch)
    return terminal


def stderr_is(file: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a file the stderr of the voice."""
    monkeypatch.setattr("playbill.actors.cli.voice.sys", SimpleNamespace(stderr=file))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


Verb = Callable[[], Any]
Show = Callable[[], None]


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch, write_config: WriteConfig) -> Callable[..., Verb]:
    """The verb on a host that takes five seconds to stop, to be awaited: ``show`` is called while the screen is there."""

    def make(show: Show = lambda: None, *events: Event, **options: Any) -> Verb:
        made: list[Verb] = []
        host = Eventful({"a": events}, ())

        @asynccontextmanager
        async def slow(*_: Any, **__: Any) -> AsyncIterator[Any]:
            try:
                yield host
            finally:
                LOGGER.warning("the last word")
                with trio.CancelScope(shield=True):  # a host stops its servers also when it is cancelled
                    await trio.sleep(5)

        @contextmanager
        def terminal() -> Iterator[None]:
            yield

        async def shown(*_: Any, **__: Any) -> None:
            await trio.sleep(10)
            show()

        def keep(verb: Verb) -> int:
            made.append(verb)
            return 0

        monkeypatch.setattr(hosting, "open_host", slow)
        monkeypatch.setattr(picking, "run", keep)
        monkeypatch.setattr(playbill.actors.picker.terminal, "open_terminal", terminal)
        monkeypatch.setattr(playbill.actors.picker.view, "run_picker", shown)
        picking.pick_tools(str(write_config()), watch=False, **options)
        return made[0]

    return make


STOPPING = "\rstopping the servers\x1b[K\r\x1b[K"


async def test_servers_that_take_their_time_to_stop_are_told_of_when_the_screen_is_gone(
    autojump_clock: trio.testing.MockClock, told: Terminal, verb: Callable[..., Verb]
) -> None:
    def nothing_yet() -> None:
        assert told.getvalue() == ""

    await verb(nothing_yet)()
    assert told.getvalue().endswith(STOPPING)


async def test_ctrl_c_is_not_silent_either(
    autojump_clock: trio.testing.MockClock, told: Terminal, verb: Callable[..., Verb]
) -> None:
    with trio.move_on_after(3) as scope:
        await verb()()
    assert scope.cancelled_caught
    assert told.getvalue().endswith(STOPPING)


async def test_what_is_logged_under_the_screen_is_said_afterwards(
    autojump_clock: trio.testing.MockClock, told: Terminal, verb: Callable[..., Verb]
) -> None:
    def lost() -> None:
        LOGGER.warning("the watcher\nis lost")
        diagnose("and so is this")
        voice().draw("progress")
        assert told.getvalue() == ""

    await verb(lost)()
    said = "playbill: warning: the watcher is lost\nplaybill: and so is this\nplaybill: warning: the last word\n"
    assert told.getvalue() == said + STOPPING


async def test_what_breaks_the_picker_comes_after_what_was_logged_before(
    autojump_clock: trio.testing.MockClock, told: Terminal, verb: Callable[..., Verb]
) -> None:
    def breaks() -> None:
        LOGGER.warning("it creaks")
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as caught:
        await verb(breaks)()
    assert isinstance(leaf_of(caught.value), ZeroDivisionError)
    assert told.getvalue().startswith("playbill: warning: it creaks\n")


async def test_a_stderr_that_is_no_terminal_is_told_at_once(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, verb: Callable[..., Verb]
) -> None:
    stderr_is(file := io.StringIO(), monkeypatch)

    def lost() -> None:
        LOGGER.warning("the watcher is lost")
        assert file.getvalue() == "playbill: warning: the watcher is lost\n"

    await verb(lost)()
    assert "stopping" not in file.getvalue()


async def test_events_are_told_with_verbose_when_the_screen_is_gone(
    autojump_clock: trio.testing.MockClock, told: Terminal, verb: Callable[..., Verb]
) -> None:
    speak(Voice(verbose=True))

    def nothing_yet() -> None:
        assert told.getvalue() == ""

    await verb(nothing_yet, event(1, "a", "spawned"), event(2, "a"))()
    lines = [line.partition(" s  ")[2] for line in told.getvalue().splitlines() if "server" in line]
    assert lines[:2] == ["server 'a': spawned", "server 'a': started"]


async def test_quiet_says_neither_notes_nor_progress(
    autojump_clock: trio.testing.MockClock,
    told: Terminal,
    verb: Callable[..., Verb],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    speak(Voice(quiet=True))
    await verb(lambda: LOGGER.warning("the watcher is lost"))()
    monkeypatch.setattr(picking, "can_watch", lambda: False)
    picking.pick_tools(None)
    assert told.getvalue() == ""


def test_an_error_of_the_picker_is_json_when_that_is_asked_for(
    write_config: WriteConfig, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr("playbill.actors.picker.terminal._DEVICE", "/no/such/device")
    code = run(["pick", "--json", "--no-watch", "--config", str(write_config("{"))])
    out, err = capsys.readouterr()
    failed = json.loads(out)["failed"]
    assert (code, failed["exit_code"]) in ((3, 3), (2, 2))
    assert err.startswith("playbill: ")


def test_of_what_is_kept_under_a_screen_the_last_lines_count(told: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice_module, "_HELD", 2)
    said = Voice()
    with said.held():
        for word in ("one", "two", "three", "four"):
            said.say(word)
        assert told.getvalue() == ""
    said.say("five")
    assert told.getvalue() == "playbill: 2 lines before these are not kept\nthree\nfour\nfive\n"


def test_a_stderr_that_is_closed_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    for stderr in (None, SimpleNamespace(isatty=lambda: (_ for _ in ()).throw(ValueError("closed")))):
        monkeypatch.setattr("playbill.actors.cli.voice.sys", SimpleNamespace(stderr=stderr))
        said = Voice()
        assert said.shows_progress is False
        with said.held():
            if stderr is None:
                said.say("into the void")
