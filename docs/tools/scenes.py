"""The scenes that the pictures show: which program, what is typed, and what of its screen is different at every run.

What differs is replaced by something of the same width: a process number by one that is counted, a moment by another.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import frozen
from rich.text import Text

from .picture import Screen, picture

__all__ = ["SCENES", "Scene", "demo_screen", "normalised", "picker_screen"]

_DEMO_COLUMNS, _DEMO_ROWS = 96, 64


@frozen
class Scene:
    """One picture.

    Args:
        title: of the window.
        columns: its width.
        shoot: gives the screen, normalised.
    """

    title: str
    columns: int
    shoot: Callable[[], Screen]

    def svg(self) -> str:
        """The picture as it is now."""
        return picture(self.shoot(), title=self.title, columns=self.columns)


def _program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "playbill.actors.cli", *arguments]


def _environment(home: str) -> dict[str, str]:
    """What decides how things look is the same on every machine; `python` is the one that has playbill."""
    scripts = sysconfig.get_path("scripts")
    return {
        "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
        "TZ": "UTC",
    }


def _replaced(line: Text, pattern: str, make: Callable[[re.Match[str]], str]) -> Text:
    out, at = Text(), 0
    for found in re.finditer(pattern, line.plain):
        out.append_text(line[at : found.start()])
        new = Text(make(found))
        for start, end, style in ((s.start, s.end, s.style) for s in line.spans):
            if start <= found.start() < end:
                new.stylize(style)
        out.append_text(new)
        at = found.end()
    out.append_text(line[at:])
    return out


def normalised(screen: Screen, *patterns: tuple[str, Callable[[re.Match[str]], str]]) -> Screen:
    """The screen with what differs from run to run replaced, and without the empty lines around it.

    Args:
        screen: as it is.
        patterns: regular expressions, each with what goes in place of a match; applied to each line one after the other.
    """
    lines = screen
    for pattern, make in patterns:
        lines = [_replaced(line, pattern, make) for line in lines]
    filled = [number for number, line in enumerate(lines) if line.plain.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _counted(first: int) -> Callable[[re.Match[str]], str]:
    """The same name for the same match, whatever it was: numbers from ``first`` on."""
    seen: dict[str, str] = {}
    return lambda found: seen.setdefault(found[0], str(first + len(seen)))


def demo_screen() -> Screen:
    """What `playbill demo` has shown when it ends.

    Raises:
        RuntimeError: it failed.
        TimeoutError: it did not end.
    """
    from .terminal import Terminal  # needs the extra `docs`; what is below does not

    with tempfile.TemporaryDirectory(prefix="playbill-picture-") as home:
        command = _program("demo")
        with Terminal(command, columns=_DEMO_COLUMNS, rows=_DEMO_ROWS, cwd=home, env=_environment(home)) as terminal:
            code = terminal.finish()
            if code:
                raise RuntimeError(f"playbill demo ended with {code}; its screen was:\n{terminal.text()}")
            screen = terminal.screen()
    return normalised(
        screen,
        (r"(?<=clock )\d+(?=,)|(?<=notes )\d+(?=,)|(?<=dice )\d+(?= *$)|(?<=pid )\d+|(?<=→ )\d+", _counted(4101)),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", lambda found: "2026-01-01T12:00:00+00:00"),
        (r"(?<=digest )[0-9a-f]+", lambda found: "fe6556a96f86"),
        (r"\d+(?= answered)", lambda found: "150"),
        (r"\d+(?= of them after the kill)", lambda found: "130"),
        (r"(?<=in )\d+\.\d(?= s)", lambda found: "4.8"),
        # How many looks at its state the kill was seen in is chance.
        (r"notes: ready →.*", lambda found: "notes: ready → starting → backing_off → starting → ready"),
    )


_PICKER_COLUMNS, _PICKER_ROWS = 100, 24
_PICKER_CONFIG = """\
{
  "mcpServers": {
    "clock": { "command": "python", "args": ["-m", "playbill.actors.servers.clock"] },
    "dice": { "command": "python", "args": ["-m", "playbill.actors.servers.dice"] },
    "notes": { "command": "python", "args": ["-m", "playbill.actors.servers.notes"], "priority": -1 },
    "files": { "command": "npx", "timeout": "5" }
  }
}
"""


def _cut(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else f"{text[: width - 1]}…"


def picker_screen() -> Screen:
    """What `playbill pick` shows after a tool was switched off.

    Raises:
        RuntimeError: it failed.
        TimeoutError: it did not show what it should.
    """
    from .terminal import Terminal

    # In /tmp, so that the path of the config is short everywhere.
    with tempfile.TemporaryDirectory(prefix="p", dir="/tmp") as home:
        Path(home, "mcp.json").write_text(_PICKER_CONFIG, "utf-8")
        command = _program("pick", "--config", "mcp.json", "--budget", "11")
        with Terminal(
            command, columns=_PICKER_COLUMNS, rows=_PICKER_ROWS, cwd=home, env=_environment(home)
        ) as terminal:
            terminal.wait_for(lambda text: "3 of 4 servers ready" in text, "three ready servers")
            terminal.press("jjjjjjj ")
            terminal.wait_for(lambda text: "excluded" in text and "12 tools over" in text, "the tool switched off")
            terminal.settle()
            screen = terminal.screen()
            terminal.press("q")
            code = terminal.finish()
            if code:
                raise RuntimeError(f"playbill pick ended with {code}; its screen was:\n{terminal.text()}")
    return normalised(
        screen,
        (r"(?:/[\w.-]+)+/(mcp\.json:.*)", lambda found: found[1].ljust(len(found[0]))),
        # Where the line was too short for it.
        (r"\(/[\w/.-]*…", lambda found: _cut("(mcp.json:4)", len(found[0]))),
        # Here it stands at the right edge.
        (r"(?:/[\w.-]+)+/mcp\.json", lambda found: "mcp.json".rjust(len(found[0]))),
    )


SCENES: Mapping[str, Scene] = {
    "demo": Scene("playbill demo", _DEMO_COLUMNS, demo_screen),
    "picker": Scene("playbill pick", _PICKER_COLUMNS, picker_screen),
}
