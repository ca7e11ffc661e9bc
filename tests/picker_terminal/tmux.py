"""A real terminal to test in: tmux, on a socket of its own, driven by send-keys and read by capture-pane.

Nothing sleeps to let something happen: `Terminal.until` looks at the screen again and again until it shows what is expected,
under a deadline that only a failure reaches. The shell numbers its prompts, and `Terminal.run` counts what it typed: a prompt
of before, still on the screen because the shell has not read the last command yet, is not taken for the one after it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

PATIENCE = float(os.environ.get("PLAYBILL_PATIENCE", "30"))
"""Seconds after which a screen that is still not as expected is a failure."""

PROMPT = "shell-is-back-{}$"
"""What stands before a command; with its number in it, from 1."""
SHELL = "/bin/sh"


def has_tmux() -> bool:
    """Whether tmux is installed."""
    return shutil.which("tmux") is not None


class Terminal:
    """One tmux server with one window in which a shell runs.

    Args:
        folder: where the shell starts.
        columns, rows: of the window.
        environ: variables for the shell, on top of few of ours.
    """

    def __init__(
        self, folder: Path, columns: int = 100, rows: int = 30, environ: Mapping[str, str] | None = None
    ) -> None:
        self._closed = False
        self._typed = 0
        self.name = f"playbill-{uuid.uuid4().hex[:12]}"
        # Short, because a socket's path may have some hundred characters only.
        self._own = Path(tempfile.mkdtemp(prefix="pb-"))
        settings = self._own / "tmux.conf"
        # No status line: the window is the screen. What a person's own tmux.conf says must not count here.
        settings.write_text("set -g status off\nset -g default-terminal screen-256color\nset -sg escape-time 0\n")
        # Not by the environment: a root's shell takes no prompt from there.
        start = self._own / "shrc"
        start.write_text(f"PS1='{PROMPT.format('$((asked=asked+1))')} '\n")
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "ENV": str(start),
            **{name: value for name, value in os.environ.items() if name.startswith("PYTHON")},
            **(environ or {}),
        }
        settle = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
        self._tmux(
            "-u", "-f", str(settings), "new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(folder),
            *settle, f"exec {SHELL}",
        )  # fmt: skip
        self.pid = int(self._tmux("display-message", "-p", "#{pane_pid}"))

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self.name, *words],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TMUX_TMPDIR": str(self._own)},
        )
        assert done.returncode == 0, f"tmux {shlex.join(words)}: {done.stderr}"
        return done.stdout

    def keys(self, *names: str) -> None:
        """Press keys, by the names that tmux gives them (``Down``, ``C-c``, ``Space``, …)."""
        self._tmux("send-keys", *names)

    def type(self, text: str) -> None:
        """Type a text as it is."""
        self._tmux("send-keys", "-l", text)

    def run(self, *command: str, tail: str = "") -> None:
        """Type a command for the shell and press Enter.

        Args:
            command: its words.
            tail: shell syntax behind them: redirections, or another command.
        """
        self._tmux("send-keys", "-l", f"{shlex.join(command)} {tail}".strip())
        self.keys("Enter")
        self._typed += 1

    def screen(self) -> str:
        """What is on the screen, without colours, without blanks at the ends of lines."""
        return "\n".join(line.rstrip() for line in self._tmux("capture-pane", "-p").split("\n")).rstrip("\n")

    def at_rest(self) -> str:
        """The screen once ten looks in a row found it the same."""
        seen = [self.screen()]
        while len(seen) < 10:
            time.sleep(0.05)
            shown = self.screen()
            seen = [*seen, shown] if shown == seen[-1] else [shown]
        return seen[-1]

    def coloured(self) -> str:
        """What is on the screen, with escape sequences for its colours and attributes."""
        return self._tmux("capture-pane", "-p", "-e")

    def resize(self, columns: int, rows: int) -> None:
        """Make the window another size; what runs in it is told."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def alternate(self) -> bool:
        """Whether the alternate screen is shown, as by full-screen programs."""
        return self._tmux("display-message", "-p", "#{alternate_on}").strip() == "1"

    def until(self, *expected: str | Callable[[str], bool], gone: str | None = None) -> str:
        """Wait until the screen shows all that is expected.

        Args:
            expected: texts that it shows, or functions that say whether it is as it should be.
            gone: a text that it does not show.

        Returns:
            The screen then.

        Raises:
            AssertionError: it did not come to that; the screen as it is is in the message.
        """
        deadline, pause = time.monotonic() + PATIENCE, 0.02
        while True:
            shown = self.screen()
            missing = [each for each in expected if not (each(shown) if callable(each) else each in shown)]
            if not missing and (gone is None or gone not in shown):
                return shown
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain for {missing or f'no {gone!r}'}; the screen is:\n{shown}")
            # A look is a process: of a program that takes seconds to load, hundreds of looks cost more than it does.
            time.sleep(pause)
            pause = min(0.1, pause * 1.25)

    def until_shell(self) -> str:
        """Wait until the shell has the terminal again after the last command that `run` typed; the screen then."""
        return self.until(self.shell_is_back)

    def shell_is_back(self, shown: str) -> bool:
        """Whether the prompt after the last command that `run` typed ends this screen. It comes too when that was stopped."""
        return shown.rstrip().endswith(PROMPT.format(self._typed + 1)) and not self.alternate()

    def code(self) -> int:
        """The exit code of what `run` typed last, once the shell has the terminal again."""
        self.until_shell()
        mark = uuid.uuid4().hex[:6]
        self.run("echo", mark, tail="code=$?=")
        found = re.search(rf"{mark} code=(\d+)=", self.until_shell())
        assert found is not None
        return int(found[1])

    def hang_up(self) -> None:
        """Close the window under what runs in it, as one who closes the program that shows it."""
        self._closed = True
        self._tmux("kill-server")
        shutil.rmtree(self._own, ignore_errors=True)

    def close(self) -> None:
        """End the window, and the server with it; what still runs in the window gets a SIGHUP from the terminal."""
        if self._closed:
            return
        self._closed = True
        # The window's own processes first, by id: whoever is asked to end by the hangup alone may take its time.
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.pid)], capture_output=True, text=True, check=False
        ).stdout.split()
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGTERM)
                os.kill(int(pid), signal.SIGCONT)  # one that was stopped takes nothing else
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in children):
            time.sleep(0.02)
        self._tmux("kill-server")
        shutil.rmtree(self._own, ignore_errors=True)
