"""What the catalog costs with 200 servers of 50 tools each: projections, toggles, views, previews, exports.

    python benchmarks/catalog.py [--servers 200] [--tools 50] [--rounds 20] [--views 100] [--json]

Pure functions on values, no process and no loop. The collector of garbage is on while it measures: its pauses count. Each
figure is also told as a ratio over one `json.dumps` of all tools' schemas, which ran in the same process. Aims: a full
projection of definitions that were judged beforehand under 150 ms, a toggle's under 5 ms, a view under 20 ms. What judging
costs has no aim: it is done a few tools at a time as lists come in, but for the first reading of a view with another profile.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import Any

from attrs import evolve, frozen
from playbill.actors import Budget, Config, ServerEntry
from playbill.actors.model.config import ConfigState
from playbill.actors.model.lens import Lens
from playbill.actors.model.preview import preview
from playbill.actors.model.profile import PORTABLE, PROFILES, Profile
from playbill.actors.model.projection import Memo, project
from playbill.actors.model.seen import Seen
from playbill.actors.model.snapshot import Snapshot
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef
from playbill.actors.model.tool import prepare

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where."},
        "limit": {"type": "integer", "minimum": 1, "default": 10},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path"],
}
ANY_NUMBER = PROFILES["mcp"]
"""A profile without a limit of its own, so that all tools are sent."""


@frozen
class Row:
    """One figure.

    Args:
        what: was measured.
        times: milliseconds of each round.
        aim: milliseconds, or None.
    """

    what: str
    times: list[float]
    aim: float | None = None


def entries(servers: int) -> list[ServerEntry]:
    """That many servers."""
    return [ServerEntry(f"server_{number}", command="run", exclude=("tool_1",)) for number in range(servers)]


def listed(config: list[ServerEntry], tools: int, *profiles: Profile) -> dict[str, ServerStatus]:
    """Every server ready, with new definitions of so many tools; judged for the profiles, as server actors do."""
    statuses = {}
    for number, entry in enumerate(config):
        defs = tuple(
            ToolDef(f"tool_{each}", description=f"Tool {each} of server {number}.", input_schema=SCHEMA)
            for each in range(tools)
        )
        for profile in profiles:
            for tool in defs:
                prepare(entry.name, tool, profile)
        statuses[entry.name] = ServerStatus(
            lifecycle=Lifecycle(stage="running", generation=1),
            report=Report(generation=1, connected=True, ready=True),
            tools=defs,
            tools_generation=1,
        )
    return statuses


def timed(rounds: int, prepared: Callable[[int], Callable[[], object]]) -> list[float]:
    """Milliseconds of each round, without what prepares it."""
    times = []
    for turn in range(rounds):
        act = prepared(turn)
        gc.collect()  # what preparing left behind; what the measured part leaves is its own
        begun = perf_counter()
        act()
        times.append((perf_counter() - begun) * 1e3)
    return times


def toggled(config: list[ServerEntry], turn: int) -> list[ServerEntry]:
    """The servers, with another tool of one of them disabled."""
    at = turn * 7 % len(config)
    return [
        evolve(entry, exclude=("tool_1", f"tool_{2 + turn % 5}")) if number == at else entry
        for number, entry in enumerate(config)
    ]


def look(
    state: ConfigState, statuses: dict[str, ServerStatus], profile: Profile, before: Seen | None, memo: Memo
) -> Seen:
    """One step of the projector."""
    previous = None if before is None else before.snapshot
    snapshot = project(state, statuses, [], Budget(None), previous, memo, profile=profile)
    return Seen(
        snapshot=snapshot,
        state=state,
        statuses=statuses,
        natives=(),
        budget=Budget(None),
        profile=profile,
        rows=memo.made,
    )


def lenses(count: int, servers: int) -> list[Lens]:
    """What views leave out: a few tools, a few servers, all but a few."""
    return [
        (
            Lens(exclude=[f"server_{turn % servers}/tool_3", f"mcp__server_{turn * 3 % servers}__tool_4"]),
            Lens(exclude=[f"server_{turn % servers}", f"server_{turn * 5 % servers}"]),
            Lens(include=[f"server_{(turn + each) % servers}" for each in range(5)]),
        )[turn % 3]
        for turn in range(count)
    ]


def measure(servers: int, tools: int, rounds: int, views: int) -> Iterator[Row]:
    """Each figure."""
    config = entries(servers)
    state = ConfigState(1, Config(config))

    def full(profile: Profile, budget: Budget, *judged: Profile) -> list[float]:
        def prepared(_: int) -> Callable[[], object]:
            statuses = listed(config, tools, *judged)
            return lambda: project(state, statuses, [], budget, profile=profile)

        return timed(rounds, prepared)

    statuses = listed(config, tools, ANY_NUMBER, PORTABLE)
    schemas = [
        [tool.bare, tool.description, tool.input_schema] for each in statuses.values() for tool in each.tools or ()
    ]
    yield Row("json.dumps of all tools", timed(rounds, lambda _: lambda: json.dumps(schemas, sort_keys=True)))
    yield Row("full projection, all sent", full(ANY_NUMBER, Budget(None), ANY_NUMBER), 150)
    yield Row("full projection, 100 sent", full(PORTABLE, Budget(100), PORTABLE), 150)
    few = max(3, rounds // 4)
    yield Row("full projection and judging", timed(few, lambda _: _judging(config, tools)))

    memo = Memo()
    seen = look(state, statuses, ANY_NUMBER, None, memo)
    snapshot = seen.snapshot

    def toggle(turn: int) -> Callable[[], object]:
        after = ConfigState(turn + 2, Config(toggled(config, turn)))

        def act() -> None:
            nonlocal snapshot
            snapshot = project(after, statuses, [], Budget(None), snapshot, memo, profile=ANY_NUMBER)

        return act

    yield Row("toggle's projection, all sent", timed(rounds * 2, toggle), 5)
    yield Row("toggle's projection, 100 sent", list(_toggles(config, statuses, rounds * 2)), 5)

    glasses = lenses(views, servers)
    memos = [Memo() for _ in glasses]
    shown: list[Snapshot | None] = [None] * views

    def see(turn: int) -> Callable[[], object]:
        def act() -> None:
            shown[turn] = seen.project(lens=glasses[turn], previous=shown[turn], memo=memos[turn])

        return act

    yield Row(f"each of {views} views, first", timed(views, see), 20)
    seen = look(ConfigState(1000, Config(toggled(config, 3))), statuses, ANY_NUMBER, seen, memo)
    yield Row(f"each of {views} views, after a toggle", timed(views, see), 20)
    yield from _another_profile(seen, config, statuses, rounds)
    yield Row("preview of a tool enabled", timed(rounds, lambda _: lambda: preview(seen, enable=["server_3/tool_1"])))
    yield Row("preview of a token budget", timed(rounds, lambda _: lambda: preview(seen, budget=Budget(None, 20_000))))
    for provider in ("openai", "anthropic", "mcp"):
        catalog = project(state, statuses, [], Budget(100), profile=PORTABLE).catalog
        times = timed(rounds, lambda _, of=catalog, to=provider: lambda: of.for_provider(to))
        yield Row(f"for_provider({provider!r}), 100 tools", times)


def _another_profile(
    seen: Seen, config: list[ServerEntry], statuses: dict[str, ServerStatus], rounds: int
) -> Iterator[Row]:
    """A view with another profile than the host's: when nothing is judged for it yet, when all is, and after a toggle."""
    other = evolve(ANY_NUMBER, name="another", schema=PORTABLE.schema)
    memos = [Memo() for _ in range(rounds)]
    shown: list[Snapshot | None] = [None] * rounds

    def see(turn: int) -> Callable[[], object]:
        def act() -> None:
            shown[turn] = seen.project(profile=other, previous=shown[turn], memo=memos[turn])

        return act

    yield Row("view of another profile, first", timed(1, see))
    yield Row("view of another profile, judged", timed(rounds - 1, lambda turn: see(turn + 1)))
    seen = look(ConfigState(2000, Config(toggled(config, 4))), statuses, ANY_NUMBER, seen, Memo(seen.rows))
    yield Row("view of another profile, toggled", timed(rounds, see))


def _judging(config: list[ServerEntry], tools: int) -> Callable[[], object]:
    statuses = listed(config, tools)
    return lambda: project(ConfigState(1, Config(config)), statuses, [], Budget(100))


def _toggles(config: list[ServerEntry], statuses: dict[str, ServerStatus], rounds: int) -> Iterator[float]:
    memo = Memo()
    snapshot = project(ConfigState(1, Config(config)), statuses, [], Budget(100), None, memo)
    for turn in range(rounds):
        after = ConfigState(turn + 2, Config(toggled(config, turn)))
        begun = perf_counter()
        snapshot = project(after, statuses, [], Budget(100), snapshot, memo)
        yield (perf_counter() - begun) * 1e3


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=200)
    parser.add_argument("--tools", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--views", type=int, default=100)
    parser.add_argument("--json", action="store_true", help="figures for a program")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    floor = 0.0
    for row in measure(given.servers, given.tools, given.rounds, given.views):
        floor = floor or median(row.times)
        low, middle, high = min(row.times), median(row.times), max(row.times)
        rows.append(
            {"what": row.what, "min": low, "median": middle, "max": high, "ratio": middle / floor, "aim": row.aim}
        )
        if not given.json:
            aim = "" if row.aim is None else f"   aim < {row.aim:g} ms"
            print(
                f"{row.what:<36}  min {low:>8.2f}   median {middle:>8.2f}   max {high:>8.2f} ms   ×{middle / floor:<6.2f}{aim}",
                flush=True,
            )
    if given.json:
        json.dump({"servers": given.servers, "tools": given.tools, "rows": rows}, sys.stdout, indent=2)
        print()


if __name__ == "__main__":
    main()
