"""What importing costs: CPU of a fresh interpreter that imports one thing, as a ratio to one that imports trio.

    python benchmarks/imports.py [--rounds 21]

Each arm is a process of its own, turn about; its user and system CPU time is the kernel's (`os.wait4`), so that who else is
busy counts for little. "net" is the same without what a bare interpreter costs. All arms read compiled modules, from a folder
of this run. Aim: `open_host`, `Config` and `ServerEntry` at most 1.3 times trio, which they need anyway.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

ARMS = {
    "a bare interpreter": "",
    "trio": "import trio",
    "playbill.actors": "import playbill.actors",
    "open_host, Config, ServerEntry": "from playbill.actors import open_host, Config, ServerEntry",
    "the same, and Host": "from playbill.actors import open_host, Config, ServerEntry, Host",
    "every public name": "import playbill.actors as p\nfor name in p.__all__: getattr(p, name)",
    "playbill list": "from playbill.actors.cli.app import run\nrun(['list', '--config', {config!r}])",
    "an opened, empty host": (
        "import trio\nfrom playbill.actors import open_host, Config\nasync def main():\n async with open_host(Config()): pass\n"
        "trio.run(main)"
    ),
    "mcp.client.session": "import mcp.client.session",
}


def cpu(code: str, environment: dict[str, str]) -> float:
    """CPU milliseconds of an interpreter that runs some code, from its start to its end."""
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", code], environment, file_actions=quiet)
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"this failed: {code}")
    return (used.ru_utime + used.ru_stime) * 1e3


def measure(rounds: int) -> dict[str, float]:
    """The median CPU milliseconds of each arm."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "mcp.json"
        config.write_text('{"mcpServers": {"a": {"command": "x"}, "b": {"url": "https://example.com/mcp"}}}')
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        times: dict[str, list[float]] = {name: [] for name in ARMS}
        for _ in range(rounds + 1):
            for name, code in ARMS.items():
                times[name].append(cpu(code.replace("{config!r}", repr(str(config))), environment))
    return {name: median(each[1:]) for name, each in times.items()}  # the first of each compiles


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21, help="counted rounds of each arm")
    rounds = parser.parse_args().rounds
    found = measure(rounds)
    bare, trio = found["a bare interpreter"], found["trio"]
    print(f"{'':<32}{'CPU ms':>8}{'× trio':>8}{'net':>7}   (medians of {rounds}, turn about)")
    for name, took in found.items():
        print(f"{name:<32}{took:>8.1f}{took / trio:>8.2f}{(took - bare) / (trio - bare):>7.2f}")


if __name__ == "__main__":
    main()
