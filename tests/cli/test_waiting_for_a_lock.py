"""An edit that waits for another program's lock says so on a terminal, and wipes it in the end."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playbill.actors.cli import patience
from playbill.actors.cli.patience import editing, who_is_awaited
from playbill.actors.cli.voice import Voice, speak, voice
from playbill.actors.edge.config.lock import locked

from .conftest import PROGRAM
from .terminal import on_terminal, screen
from .test_beside_the_screen import stderr_is
from .test_scopes_and_trust import write
from .test_waiting import Terminal

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
ENTRY = {"command": "x", "tools": {"exclude": ["t"]}}


@pytest.fixture(autouse=True)
def a_voice_of_our_own() -> Iterator[None]:
    """What one test makes of the voice is not heard in the next."""
    before = voice()
    speak(Voice())
    yield
    speak(before)


@pytest.fixture
def terminal(environment: dict[str, str]) -> dict[str, str]:
    """The environment of a terminal that can do what is usual."""
    return {**environment, "TERM": "xterm", "LC_ALL": "C.UTF-8"}


@pytest.mark.parametrize(
    "words",
    [["add", "b", "--", "y"], ["remove", "a"], ["enable", "a/t"], ["disable", "a"], ["trust", "a", "--yes"]],
    ids=lambda words: words[0],
)
def test_each_verb_that_edits_tells_whom_it_waits_for(
    tmp_path: Path, terminal: dict[str, str], words: list[str]
) -> None:
    config = write(tmp_path / ".mcp.json", a=ENTRY)
    approvals = tmp_path / "state" / "playbill" / "trust.json"
    approvals.parent.mkdir(parents=True)
    held, name = (approvals, "trust.json") if words[0] == "trust" else (config, ".mcp.json (project)")
    environ = {**terminal, "XDG_STATE_HOME": str(tmp_path / "state")}
    with ExitStack() as stack:
        stack.enter_context(locked(held, 5))

        def seen(text: bytes) -> None:
            if b"waiting for another program that edits " in text:
                stack.close()

        end = words.index("--") if "--" in words else len(words)
        command = [*PROGRAM, *words[:end], "--timeout", "50", *words[end:]]
        code, text = on_terminal(command, tmp_path, environ, 200, seen=seen)
    assert code == 0, text
    assert f"{name}\x1b[K\r\x1b[K" in text
    assert not [line for line in screen(text) if "waiting" in line]


def test_there_is_no_such_word_in_a_pipe(tmp_path: Path, playbill: Playbill) -> None:
    config = write(tmp_path / "mcp.json", a=ENTRY)
    with locked(config, 5):
        done = playbill("disable", "a", "--config", config, "--timeout", "1.2")
    assert done.returncode == 1
    assert "another process has held its lock for more than 1.2 s" in done.stderr
    assert "waiting" not in done.stderr


def test_an_edit_that_is_quick_says_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stderr_is(told := Terminal(), monkeypatch)
    with editing([tmp_path / "mcp.json"]):
        pass
    assert told.getvalue() == ""


def test_an_edit_that_fails_wipes_the_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.001)
    stderr_is(told := Terminal(), monkeypatch)
    with pytest.raises(OSError, match="full"), editing([tmp_path / "mcp.json"]):
        while "writing" not in told.getvalue():
            pass
        raise OSError("full")
    assert told.getvalue() == "\rwriting\x1b[K\r\x1b[K"


def test_whoever_waits_left_a_byte_in_the_lock(tmp_path: Path) -> None:
    config, lock = tmp_path / "mcp.json", tmp_path / "mcp.json.lock"
    assert who_is_awaited([config]) == "writing"
    lock.touch()
    assert who_is_awaited([config]) == "writing"  # it is ours
    lock.write_bytes(b"?")
    assert who_is_awaited([tmp_path / "other.json", config]).startswith("waiting for another program that edits ")
    link = tmp_path / "link.json"
    config.touch()
    link.symlink_to(config)
    assert who_is_awaited([link]).endswith("link.json")
