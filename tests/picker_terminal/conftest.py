"""The picker as a person has it: the real program, in a real terminal (tmux), with real servers and a real file.

Needs tmux. Where there is none the tests are skipped, but not on CI (``CI`` is set there): a skip nobody reads proves nothing.

Golden screens are texts in ``golden/``. To make them anew after a change that is meant: PLAYBILL_GOLDEN=write, run the tests,
and read the diff. What differs from run to run (paths, process ids) is put as words before comparing.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..processes import marked
from .tmux import Terminal, has_tmux

FAKE = str(Path(__file__).parents[1] / "edge_connection" / "fake_server.py")
CRASHING = str(Path(__file__).with_name("crashing.py"))
GOLDEN = Path(__file__).with_name("golden")
CLI = (sys.executable, "-m", "playbill.actors.cli")

TOOLS: dict[str, str] = {
    "read_file": "Read a text file whole, or its first lines",
    "write_file": "Write a text file; what was in it is gone",
    "list_folder": "What is in a folder",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without tmux the tests here are skipped, outside of CI."""
    if has_tmux() or os.environ.get("CI"):
        return
    for item in items:
        if Path(__file__).parent in item.path.parents and "terminal" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.skip(reason="tmux is not installed, and this is not CI"))


def fake(*tools: str, **options: Any) -> dict[str, Any]:
    """The config entry of a fake server with these tools, and options as in fake_server.py."""
    listed = [
        {"name": name, "description": TOOLS.get(name, f"Does {name}"), "inputSchema": {"type": "object"}}
        for name in tools
    ]
    options.setdefault("tools", [listed])
    return {"command": sys.executable, "args": ["-I", "-S", FAKE, json.dumps(options)]}


class Stage:
    """A folder with an ``mcp.json``, and a terminal in which the picker runs on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "mcp.json"
        self.mark = uuid.uuid4().hex
        self.terminal: Terminal

    def write(self, path: Path | None = None, /, **servers: dict[str, Any]) -> None:
        """Write the config as an editor would."""
        for entry in servers.values():
            entry.setdefault("env", {})["PLAYBILL_TEST_MARK"] = self.mark
        (path or self.path).write_text(json.dumps({"mcpServers": servers}, indent=2))

    def config(self) -> dict[str, Any]:
        """The servers in the file now."""
        found: dict[str, Any] = json.loads(self.path.read_text())["mcpServers"]
        return found

    def open(self, *options: str, tail: str = "", env: tuple[str, ...] = ()) -> None:
        """Type the command that shows the picker."""
        before = ("env", *env) if env else ()
        self.terminal.run(*before, *CLI, "pick", "--config", str(self.path), *options, tail=tail)

    def servers(self) -> list[int]:
        """The processes of the servers: those that are marked and run the fake."""
        return [pid for pid in marked(f"PLAYBILL_TEST_MARK={self.mark}") if FAKE in _command(pid)]

    def processes(self) -> list[int]:
        """All processes that are marked."""
        return marked(f"PLAYBILL_TEST_MARK={self.mark}")


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


@pytest.fixture
def stage(tmp_path: Path, terminal: Callable[..., Terminal]) -> Iterator[Stage]:
    """A stage with a terminal of 100 × 30; after the test no process of it lives."""
    stage = Stage(tmp_path)
    stage.terminal = terminal()
    yield stage
    stage.terminal.close()
    left = stage.processes()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, "processes were left"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Makes terminals, which are closed after the test."""
    made: list[Terminal] = []

    def make(columns: int = 100, rows: int = 30, **environ: str) -> Terminal:
        state = {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("STATE", "CONFIG", "CACHE", "DATA")}
        one = Terminal(tmp_path, columns, rows, {**state, **environ})
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str, Terminal], None]:
    """Compares the screen of a terminal with the golden one of that name, when it has come to rest there."""

    def compare(name: str, terminal: Terminal) -> None:
        path = GOLDEN / f"{name}.txt"
        if os.environ.get("PLAYBILL_GOLDEN") == "write":
            path.write_text(normal(terminal.at_rest(), tmp_path) + "\n", encoding="utf-8")
        assert path.exists(), f"there is no {path.name}: PLAYBILL_GOLDEN=write makes it"
        expected = path.read_text(encoding="utf-8").removesuffix("\n")
        terminal.until(lambda shown: normal(shown, tmp_path) == expected)

    return compare


def normal(screen: str, folder: Path) -> str:
    """A screen without what differs from run to run."""
    # A path that was cut to fit is known by its end, or by its beginning; one as seen from the folder by its name.
    lines = [
        re.sub(r"(?<=\S)\s+(?:\S*(?:…|/)\S*)?mcp\.json$", "  FOLDER/mcp.json", line) for line in screen.split("\n")
    ]
    text = "\n".join(lines).replace(str(folder), "FOLDER").replace(sys.executable, "PYTHON")
    text = re.sub(r"/\S+…", "PATH…", text)
    text = re.sub(r"\bpid \d+", "pid N", text)
    return re.sub(r"\b(in )\d+( s)\b", r"\1N\2", text)
