"""The terminal under the picker: how it ends, what it draws on, what it looks like where little can be drawn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ..processes import alive, below, start_of
from .conftest import CLI, CRASHING, Stage, fake
from .tmux import PATIENCE, PROMPT, Terminal

Golden = Callable[[str, Terminal], None]


@pytest.fixture
def shown(stage: Stage) -> Stage:
    """A stage whose config has one server."""
    stage.write(files=fake("read_file", "write_file"))
    return stage


def settings(terminal: Terminal) -> str:
    """What `stty -a` says of the terminal."""
    terminal.run("clear")
    terminal.until_shell()
    terminal.run("stty", "-a")
    # Between the prompts, which have numbers.
    said = "\n".join(terminal.until_shell().split("\n")[1:-1])
    assert "iexten" in said
    return said


def picker_of(terminal: Terminal) -> int:
    """The process of the picker in a terminal: the first below the shell."""
    found = [pid for pid in below(terminal.pid) if b"playbill" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return min(found)


def test_a_prompt_of_before_is_not_taken_for_the_one_after_a_command(
    tmp_path: Path, terminal: Callable[..., Terminal]
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    shell = terminal()
    shell.run("cat", gate.name, tail="> /dev/null; clear")  # in its own folder: a line that wraps is cut anywhere
    shell.run("cat", gate.name, tail="> /dev/null; (exit 7)")
    # Both were typed before the first was over: what it shows of the second is wiped, and the prompt before that stands alone.
    shell.until("exit 7")
    gate.write_bytes(b"")
    shown = shell.until(lambda text: text.strip() == PROMPT.format(2))
    assert not shell.shell_is_back(shown)
    gate.write_bytes(b"")
    assert shell.code() == 7


def test_quitting_gives_the_screen_back(shown: Stage) -> None:
    terminal = shown.terminal
    before = settings(terminal)
    terminal.run("clear")
    terminal.run("echo", "what was there before")
    shown.open()
    terminal.until("2 of 2 tools")
    assert terminal.alternate()
    terminal.keys("q")
    assert "what was there before" in terminal.until_shell()
    assert terminal.code() == 0
    assert settings(terminal) == before


@pytest.mark.parametrize(("key", "code"), [("C-c", 130)])
def test_ctrl_c_ends_it_in_order(shown: Stage, key: str, code: int) -> None:
    terminal = shown.terminal
    before = settings(terminal)
    shown.open()
    terminal.until("2 of 2 tools")
    terminal.keys(key)
    terminal.until_shell()
    assert terminal.code() == code
    assert settings(terminal) == before
    assert shown.servers() == []


def test_sigterm_gives_the_screen_back(shown: Stage) -> None:
    terminal = shown.terminal
    before = settings(terminal)
    shown.open()
    terminal.until("2 of 2 tools")
    os.kill(picker_of(terminal), signal.SIGTERM)
    terminal.until_shell()
    assert terminal.code() == 143
    assert settings(terminal) == before


def test_ctrl_z_gives_the_screen_back_and_fg_takes_it_again(shown: Stage) -> None:
    terminal = shown.terminal
    shown.open()
    terminal.until("2 of 2 tools")
    terminal.keys("C-z")
    terminal.until_shell()
    terminal.run("echo", "meanwhile")
    assert "meanwhile" in terminal.until_shell()
    terminal.run("fg")
    terminal.until("2 of 2 tools", gone="meanwhile")
    terminal.keys("Down", "Space")
    terminal.until("[ ]  read_file")
    terminal.keys("q")
    terminal.until_shell()


def test_ctrl_s_does_not_freeze_it(shown: Stage) -> None:
    terminal = shown.terminal
    before = settings(terminal)
    assert " ixon" in before.replace("-ixon", "")
    shown.open()
    terminal.until("2 of 2 tools")
    terminal.keys("C-s", "Down", "Space")
    terminal.until("[ ]  read_file")
    terminal.keys("C-q", "q")
    terminal.until_shell()
    assert settings(terminal) == before


def test_it_draws_on_the_terminal_when_stdout_is_redirected(shown: Stage) -> None:
    terminal = shown.terminal
    shown.open(tail="> out.txt")
    terminal.until("2 of 2 tools")
    terminal.keys("Down", "Space")
    terminal.until("[ ]  read_file")
    terminal.keys("q")
    terminal.until_shell()
    assert (shown.folder / "out.txt").read_bytes() == b""


def test_it_reads_keys_from_the_terminal_when_stdin_is_redirected(shown: Stage) -> None:
    terminal = shown.terminal
    shown.open(tail="< /dev/null")
    terminal.until("2 of 2 tools")
    terminal.keys("Down", "Space")
    terminal.until("[ ]  read_file")
    terminal.keys("q")
    terminal.until_shell()
    assert terminal.code() == 0


def test_without_any_terminal_it_says_so_and_starts_nothing(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.write(files=fake("read_file"))
    done = subprocess.run(
        [*CLI, "pick", "--config", str(stage.path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,  # so without a controlling terminal
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "needs a terminal" in done.stderr
    assert stage.processes() == []


@pytest.mark.parametrize(("what", "keys"), [("host", ""), ("view", "/boom")], ids=["in the host", "in the view"])
def test_a_crash_gives_the_terminal_back_and_says_one_line(shown: Stage, what: str, keys: str) -> None:
    terminal = shown.terminal
    before = settings(terminal)
    terminal.run("clear")
    terminal.run(sys.executable, CRASHING, what, "pick", "--config", str(shown.path), tail="2> err.txt")
    if keys:
        terminal.until("2 of 2 tools")
        terminal.type(keys)
    terminal.until_shell()
    assert terminal.code() == 1
    said = (shown.folder / "err.txt").read_text()
    assert said.count("\n") == 1
    assert f"planted in the {what}" in said
    assert settings(terminal) == before
    assert shown.servers() == []


@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        (("NO_COLOR=1",), "none"),
        (("TERM=dumb",), "none"),
        (("TERM=screen",), "16"),
        (("TERM=xterm-256color",), "256"),
    ],
    ids=["NO_COLOR", "dumb", "16", "256"],
)
def test_colours_are_those_the_terminal_has(shown: Stage, env: tuple[str, ...], coloured: str) -> None:
    terminal = shown.terminal
    shown.open(env=("-u", "NO_COLOR", "-u", "COLORTERM", *env))
    terminal.until("2 of 2 tools")
    drawn = terminal.coloured()
    assert ("\x1b[38;5;" in drawn or ";38;5;" in drawn) == (coloured == "256")
    has_basic = any(f"[3{digit}m" in drawn or f";3{digit}m" in drawn for digit in range(8))
    assert has_basic == (coloured == "16")
    assert "\x1b[7m" in drawn or coloured != "none", "the cursor is seen without colours too"


def test_an_ascii_terminal_gets_ascii(shown: Stage, golden: Golden) -> None:
    shown.open(env=("LC_ALL=C",))
    screen = shown.terminal.until("2 of 2 tools", "read_file")
    golden("ascii", shown.terminal)
    assert screen.isascii()


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['urwid'] = None\n")
    done = subprocess.run(
        [*CLI, "pick"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "'.[picker]'" in done.stderr


def test_a_terminal_that_goes_away_ends_it_and_its_servers(shown: Stage) -> None:
    shown.open()
    shown.terminal.until("2 of 2 tools")
    pid = picker_of(shown.terminal)
    running = {pid: start_of(pid), **below(pid)}
    assert shown.servers()
    shown.terminal.hang_up()
    deadline = time.monotonic() + PATIENCE
    while alive(running):
        assert time.monotonic() < deadline, f"these go on: {alive(running)}"
        time.sleep(0.02)


def test_a_config_that_cannot_be_read_is_told_before_anything_is_drawn(shown: Stage) -> None:
    shown.path.write_text("{")
    shown.open()
    assert "playbill: " in shown.terminal.until_shell()
    assert not shown.terminal.alternate()
    assert shown.terminal.code() == 3
