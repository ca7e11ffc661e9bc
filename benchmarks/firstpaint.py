"""How soon something is seen: the picker's first screen, and `playbill list`, against importing trio.

    python benchmarks/firstpaint.py [--rounds 11] [--servers 20] [--slow 5]

All arms are run turn about in one run, each in a process of its own: `python -c 'import trio'`; `playbill list` of the
config; `playbill pick` on a pseudo-terminal, until the first server's row has been written to it, with servers that take
`--slow` seconds to start. Aims: the picker at most 3 times, `list` at most 2 times as long as the import.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from statistics import median
from time import perf_counter

CLI = [sys.executable, "-m", "playbill.actors.cli"]
SLEEPER = "import sys, time; time.sleep(float(sys.argv[1])); sys.stdin.read()"
FIRST = "server-00"


def write_config(folder: Path, servers: int, slow: float) -> Path:
    """An ``mcp.json`` of servers that say nothing for so many seconds."""
    entry = {"command": sys.executable, "args": ["-I", "-S", "-c", SLEEPER, str(slow)]}
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {f"server-{number:02}": entry for number in range(servers)}}, indent=2))
    return path


def imported() -> float:
    """Seconds that importing trio takes."""
    begun = perf_counter()
    subprocess.run([sys.executable, "-c", "import trio"], check=True)
    return perf_counter() - begun


def listed(config: Path) -> float:
    """Seconds until `playbill list` is done."""
    begun = perf_counter()
    subprocess.run([*CLI, "list", "--config", str(config)], check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - begun


def painted(config: Path) -> float:
    """Seconds until the picker shows the first server's row."""
    begun = perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.executable, [*CLI, "pick", "--config", str(config)])
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        seen = b""
        while FIRST.encode() not in seen:
            seen += os.read(terminal, 65536)
        took = perf_counter() - begun
    finally:
        os.kill(pid, signal.SIGTERM)
        # What is still written must be read, or the picker cannot end.
        try:
            while os.read(terminal, 65536):
                pass
        except OSError:
            pass
        os.waitpid(pid, 0)
        os.close(terminal)
    return took


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11, help="counted rounds of each arm")
    parser.add_argument("--servers", type=int, default=20, help="how many")
    parser.add_argument("--slow", type=float, default=5.0, help="seconds each takes to start")
    given = parser.parse_args()
    arms: dict[str, list[float]] = {"import trio": [], "playbill list": [], "playbill pick": []}
    with tempfile.TemporaryDirectory() as folder:
        config = write_config(Path(folder), given.servers, given.slow)
        for turn in range(given.rounds + 1):
            took = {
                "import trio": imported(),
                "playbill list": listed(config),
                "playbill pick": painted(config),
            }
            if turn:  # the first one warms the file cache
                for name, seconds in took.items():
                    arms[name].append(seconds)
    floor = median(arms["import trio"])
    print(f"{'':<16}{'ms':>8}  {'ratio':>5}   (medians of {given.rounds}, turn about; {given.servers} servers)")
    for name, times in arms.items():
        print(f"{name:<16}{median(times) * 1e3:>8.0f}  {median(times) / floor:>5.2f}")


if __name__ == "__main__":
    main()
