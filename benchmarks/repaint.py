"""How long the picker takes from a snapshot to a drawn screen, with many tools.

    python benchmarks/repaint.py [--tools 2000] [--servers 20] [--rounds 200]

Each round one server's list changes, and the screen (120 × 40) is drawn anew on a canvas: reducing, making rows, painting. What
is printed is the median and the worst; the aim is 20 ms. Then the same for a key that moves the cursor, and for one more letter
of a filter. The terminal's own work is not in it.
"""

from __future__ import annotations

import argparse
from statistics import median
from time import perf_counter
from typing import Any

import trio
from playbill.actors.model.catalog import Catalog
from playbill.actors.model.snapshot import PluginModel, ServerState, Snapshot, ToolState
from playbill.actors.picker.values import Key, News
from playbill.actors.picker.view import Picker

SIZE = (120, 40)


def server(number: int, tools: int, version: int) -> ServerState:
    """A server with so many tools, whose descriptions tell the version."""
    made = tuple(
        ToolState(
            bare=f"tool_{each:04}",
            enabled=True,
            wire_name=f"mcp__s{number}__tool_{each:04}",
            description=f"Does thing {each} of version {version}, at some length, so that it has to be cut somewhere",
            verdict="on_wire",
        )
        for each in range(tools)
    )
    return ServerState(name=f"s{number}", phase="ready", connected=True, list_state="current", tools=made)


class Published:
    """A host of which only the first snapshot is asked for."""

    def __init__(self, first: Snapshot) -> None:
        self._first = first

    def snapshot(self) -> Snapshot:
        """As a `Host`."""
        return self._first


def published(version: int, servers: list[ServerState]) -> Snapshot:
    """A snapshot of these servers."""
    return Snapshot(version, 1, PluginModel(servers=tuple(servers), budget=100_000), Catalog(version, (), (), "0"))


async def measure(tools: int, servers: int, rounds: int) -> None:
    """Run all rounds and print a table."""
    each = tools // servers
    now = [server(number, each, 0) for number in range(servers)]
    host: Any = Published(published(1, now))
    picker = Picker(host)
    picker.render(SIZE, focus=True)
    times: dict[str, list[float]] = {
        "a server's list changes": [],
        "a key moves the cursor": [],
        "a letter of a filter": [],
    }
    for turn in range(rounds):
        now = [server(at, each, turn) if at == turn % servers else was for at, was in enumerate(now)]
        snapshot = published(turn + 2, now)
        begun = perf_counter()
        picker.tell(News(snapshot))
        picker.render(SIZE, focus=True)
        times["a server's list changes"].append(perf_counter() - begun)
        begun = perf_counter()
        picker.keypress(SIZE, "page down" if turn % 5 else "down")
        picker.render(SIZE, focus=True)
        times["a key moves the cursor"].append(perf_counter() - begun)
    for letter in "/tool version thing":
        begun = perf_counter()
        picker.tell(Key(letter))
        picker.render(SIZE, focus=True)
        times["a letter of a filter"].append(perf_counter() - begun)
    print(f"{'':<26}{'median ms':>10}{'worst ms':>10}   ({tools} tools of {servers} servers)")
    for name, took in times.items():
        print(f"{name:<26}{median(took) * 1e3:>10.2f}{max(took) * 1e3:>10.2f}")


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, default=2_000, help="in all")
    parser.add_argument("--servers", type=int, default=20, help="that have them")
    parser.add_argument("--rounds", type=int, default=200, help="how often")
    given = parser.parse_args()
    trio.run(measure, given.tools, given.servers, given.rounds)


if __name__ == "__main__":
    main()
