"""What reading and editing a large configuration costs: 5 MB, 5,000 servers.

    python benchmarks/config.py [--servers 5000] [--megabytes 5] [--rounds 5]

Every figure is printed beside that of `json.loads` on the same text (without its comments), taken in turn in the same run.
Aims: a first reading under 1.5 s, one toggle under 300 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from playbill.actors.edge.config.file import FileStore
from playbill.actors.edge.config.read import Reader
from playbill.actors.model.edits import SetTool

AIMS = {"first reading": 1500.0, "toggle": 300.0}


def text_of(servers: int, size: int) -> str:
    """A configuration of that many servers and about that many characters, with a comment in each entry."""
    entries = {
        f"server-{number}": {
            "command": "npx",
            "args": ["-y", f"@scope/server-{number}@latest", "--root", "/srv/data", "--quiet"],
            "env": {"TOKEN": f"${{TOKEN_{number}}}", "LOG_LEVEL": "info", "CACHE": f"/var/cache/{number}"},
            "disabled": number % 10 == 0,
            "timeout": 60000,
            "alwaysAllow": ["read", "list"],
            "tools": {"exclude": ["delete", "drop"]},
            "description": "",
        }
        for number in range(servers)
    }
    short = json.dumps({"mcpServers": entries}, indent=2)
    filler = "x" * max(0, (size - len(short)) // servers - len("// a comment\n      "))
    long = short.replace('"description": ""', f'// a comment\n      "description": "{filler}"')
    return "// Everything.\n" + long + "\n"


def timed(act: Callable[[], object]) -> float:
    """Milliseconds that a call takes."""
    begun = perf_counter()
    act()
    return (perf_counter() - begun) * 1e3


def measure(servers: int, size: int, rounds: int, folder: Path) -> None:
    """Print one line for each act."""
    text = text_of(servers, size)
    plain = text.replace("// a comment\n", "").replace("// Everything.\n", "")
    file = folder / "mcp.json"
    file.write_text(text, "utf-8")
    store = FileStore(file)
    config = store.load()
    assert len(config.servers) == servers
    assert not any(each.error for each in config.servers)
    times: dict[str, list[float]] = {}
    floor: list[float] = []

    def first() -> None:
        Reader(str(file)).read(text)

    def first_from_file() -> None:
        FileStore(file).load()

    def toggle(turn: int) -> Callable[[], None]:
        def act() -> None:
            nonlocal config
            on = not config.servers[servers // 2].allows("tool")
            done = store.edit([SetTool(config.servers[servers // 2].name, "tool", on)], config)
            assert done.wrote
            assert done.refused == (None,)
            config = done.config

        return act

    def alone() -> None:
        other = FileStore(file)
        assert other.edit([SetTool("server-1", "tool", len(times["toggle by a new process"]) % 2 == 1)]).wrote

    def again() -> None:
        nonlocal config
        os.utime(file)
        config = store.load(config)

    times["toggle by a new process"] = []
    for turn in range(rounds):
        floor.append(timed(lambda: json.loads(plain)))
        for what, act in (
            ("first reading", first),
            ("first reading, from the file", first_from_file),
            ("reading again, nothing changed", again),
            ("toggle", toggle(turn)),
            ("toggle by a new process", alone),
        ):
            times.setdefault(what, []).append(timed(act))
    print(f"{len(text) / 1e6:.1f} MB, {servers} servers, median of {rounds}; in {folder}")
    print(f"{'json.loads':<32} {median(floor):>9.1f} ms")
    for what, taken in times.items():
        aim = f"  (aim: {AIMS[what]:g} ms)" if what in AIMS else ""
        print(f"{what:<32} {median(taken):>9.1f} ms   ratio {median(taken) / median(floor):>5.2f}{aim}")


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=5000)
    parser.add_argument("--megabytes", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(given.servers, int(given.megabytes * 1e6), given.rounds, Path(folder))


if __name__ == "__main__":
    main()
