"""Plans of a run, as values: which servers, what goes wrong, what is asked of the host, and when. A seed draws one.

Theory of operation
    A plan is drawn in swarm style: each site is active in a run with p = .25, and where it is, each of the servers may be
    struck there several times, each with p = .25. So most runs stress few things hard, and no two stress the same. At least
    one server is left alone, for its timeline to be compared. Until `Plan.heal_at` everything may go wrong; then nothing does
    and the host has to converge.

    `singles` has every valid fault (site × kind) once, and `doubles` covers every pair of (site, kind) in few plans.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from attrs import evolve, field, frozen

from ...supervision import Backoff, Intensity
from .faults import CORE, Fault, FaultPlan, Level, all_pairs, args, check, valid

__all__ = ["DISTURBING", "Op", "Plan", "ServerPlan", "doubles", "draw", "singles"]

ACTIVE = 0.25
"""The chance that a site is active in a run, and that a server is struck at one that is."""

CHANCES = 5
"""How many times in a run a server may be struck at an active site."""

DISTURBING = frozenset({"restart", "replace", "disable", "enable", "add", "remove"})
"""Operations that stop or start the server they are done to."""


@frozen
class ServerPlan:
    """One scripted server.

    Args:
        name: of the server.
        tools: how many tools it has: ``t0``, ``t1``, …
        connect: seconds from its start to the handshake.
        call: seconds one call takes.
        modern: it knows ``server/discover``; matters only on the wire and over HTTP.
    """

    name: str
    tools: int = 2
    connect: float = 0.0
    call: float = 0.1
    modern: bool = False


@frozen
class Op:
    """One thing asked of the host.

    Args:
        at: trio clock seconds; several at one instant are a burst.
        what: ``call`` (by origin), ``wire`` (by wire name), ``off``, ``on``, ``pin``, ``unpin`` (a tool), ``disable``,
            ``enable``, ``restart``, ``revive``, ``replace``, ``add``, ``remove`` (a server), ``reload``, ``note`` (a row is
            added to the stored configuration by hand, then it is reloaded).
        server: whom it concerns.
        tool: which of its tools, by bare name.
        timeout: seconds, of a call.
        cancel: seconds after which the caller goes away, or None.
    """

    at: float
    what: str
    server: str = ""
    tool: str = ""
    timeout: float = 30.0
    cancel: float | None = None


@frozen
class Plan:
    """A whole run.

    Args:
        seed: of the scheduler and the jitter.
        servers: the cast.
        faults: what goes wrong.
        work: what is asked of the host, by time.
        heal_at: trio clock seconds from which nothing goes wrong any more.
        drain: seconds that calls in flight have when their server is stopped.
        budget: of the catalog, in tools, or None.
        base, most, reset_after, jitter: of the backoff, in seconds; jitter is a share.
        restarts, window, retry: how many restarts within how many seconds are borne; seconds between a parked one's retries.
        connect_timeout, list_timeout: seconds.
        level: where the faults of servers are delivered.

    Raises:
        ValueError: a fault cannot be delivered at that level.
    """

    seed: int
    servers: tuple[ServerPlan, ...]
    faults: FaultPlan = field(factory=FaultPlan)
    work: tuple[Op, ...] = ()
    heal_at: float = 20.0
    drain: float = 2.0
    budget: int | None = None
    base: float = 0.2
    most: float = 4.0
    reset_after: float = 3.0
    jitter: float = 0.1
    restarts: int = 4
    window: float = 10.0
    retry: float = 8.0
    connect_timeout: float = 4.0
    list_timeout: float = 3.0
    level: Level = "connection"

    def __attrs_post_init__(self) -> None:
        for fault in self.faults:
            check(fault, self.level)

    @property
    def backoff(self) -> Backoff:
        """As the supervisor takes it."""
        return Backoff(base=self.base, max=self.most, jitter=self.jitter, reset_after=self.reset_after)

    @property
    def intensity(self) -> Intensity:
        """As the supervisor takes it."""
        return Intensity(restarts=self.restarts, window=self.window, then="park", park_retry=self.retry)

    def struck(self) -> frozenset[str]:
        """The servers that something goes wrong with."""
        return frozenset(fault.server for fault in self.faults if fault.server)

    def disturbed(self) -> frozenset[str]:
        """The servers that an operation stops or starts."""
        return frozenset(op.server for op in self.work if op.what in DISTURBING)

    def without(self, *, core: bool = False, servers: bool = False) -> Plan:
        """The same run with fewer faults.

        Args:
            core: leave out those of the core actors.
            servers: leave out those of servers.
        """
        kept = (f for f in self.faults if not (core and f.site in CORE) and not (servers and f.site not in CORE))
        return evolve(self, faults=FaultPlan(tuple(kept)))


def _time(rng: random.Random, until: float) -> float:
    return round(rng.uniform(0, until), 2)


def draw(seed: int, level: Level = "connection") -> Plan:
    """Draw a plan; the same seed always gives the same at a level.

    Args:
        seed: any number.
        level: where the faults of servers are delivered.
    """
    below = level != "connection"
    rng = random.Random(f"playbill {f'{level} ' if below else ''}plan {seed}")
    horizon = rng.choice((6.0, 12.0, 25.0))
    servers = tuple(
        ServerPlan(
            name,
            tools=rng.choice((1, 2, 5)),
            connect=rng.choice((0.0, 0.05, 1.0)),
            call=rng.choice((0.0, 0.05, 0.7, 3.0)),
            modern=below and rng.random() < 0.5,
        )
        for name in "abcde"[: rng.randint(1, 5)]
    )
    faults: list[Fault] = []
    # The last one is left alone, unless it is the only one.
    victims = [server.name for server in servers[: max(1, len(servers) - 1)]]
    for site, kinds in valid(level).items():
        if rng.random() >= ACTIVE:
            continue
        for name in [""] if site in CORE else victims:
            for _ in range(CHANCES):
                if rng.random() < ACTIVE:
                    kind, at = rng.choice(kinds), _time(rng, horizon)
                    faults.append(Fault(at, name, site, kind, rng.choice(args(site, kind, level))))
                    if site == "list" and rng.random() < 0.5:
                        # Else nobody would list again, and most faults of listing would strike nobody.
                        faults.append(Fault(round(at + 0.01, 2), name, "list_changed", "duplicate_frame"))
    return Plan(
        seed=seed,
        servers=servers,
        faults=FaultPlan(tuple(faults)),
        work=_work(rng, servers, horizon),
        heal_at=horizon + 1,
        drain=rng.choice((0.0, 0.5, 5.0)),
        budget=rng.choice((None, None, 3)),
        base=rng.choice((0.05, 0.2, 1.0)),
        reset_after=rng.choice((1.0, 3.0, 10.0)),
        restarts=rng.choice((0, 2, 5)),
        window=rng.choice((5.0, 20.0)),
        connect_timeout=rng.choice((2.0, 5.0)),
        level=level,
    )


_EDITS = (
    "off",
    "on",
    "off",
    "on",
    "pin",
    "unpin",
    "reload",
    "note",
    "restart",
    "revive",
    "replace",
    "disable",
    "enable",
)


def _work(rng: random.Random, servers: tuple[ServerPlan, ...], horizon: float) -> tuple[Op, ...]:
    work: list[Op] = []
    # Some servers are never stopped by us, so that what happens to them can be told exactly.
    stoppable = [server.name for server in servers if rng.random() < 0.3]
    for _ in range(rng.randint(3, 14)):
        at = _call_time(rng, horizon)
        for _ in range(rng.choice((1, 1, 1, 3))):
            work.append(_call(rng, rng.choice(servers), at))
    for _ in range(rng.choice((0, 3, 8))):
        at = _edit_time(rng, horizon)
        for _ in range(rng.choice((1, 1, 3))):
            what = rng.choice(_EDITS)
            server = rng.choice(servers)
            if what in DISTURBING and server.name not in stoppable:
                what = "reload"
            named = what not in ("reload", "note")
            tool = f"t{rng.randrange(server.tools)}" if what in ("off", "on", "pin", "unpin") else ""
            work.append(Op(at, what, server.name if named else "", tool))
    if rng.random() < 0.3:
        first = _edit_time(rng, horizon / 2)
        work.append(Op(first, "add", "extra"))
        if rng.random() < 0.5:
            work.append(Op(round(first + 0.01 + _time(rng, horizon / 2), 3), "remove", "extra"))
    return _without_ties(work)


def _call_time(rng: random.Random, until: float) -> float:
    return round(_time(rng, until) + 0.003, 3)


def _edit_time(rng: random.Random, until: float) -> float:
    return round(_time(rng, until) + 0.006, 3)


def _without_ties(work: list[Op]) -> tuple[Op, ...]:
    """The work by time; of what is done to one server at one instant only the first, as its order would be chance."""
    taken: set[tuple[float, str]] = set()
    kept = []
    for op in sorted(work, key=lambda op: op.at):
        if op.what in ("call", "wire", "reload", "note"):
            kept.append(op)
        elif (op.at, op.server) not in taken:
            taken.add((op.at, op.server))
            kept.append(op)
    return tuple(kept)


def _call(rng: random.Random, server: ServerPlan, at: float) -> Op:
    return Op(
        at,
        rng.choice(("call", "call", "wire")),
        server.name,
        f"t{rng.randrange(server.tools)}",
        timeout=rng.choice((0.5, 2.0, 6.0)),
        cancel=rng.choice((None, None, None, 0.3)),
    )


def _systematic(name: str, count: int, level: Level) -> Plan:
    """A run in which every site is come to: calls all the time, a replacement, reloads, toggles."""
    modern = level != "connection"
    servers = tuple(
        ServerPlan(each, tools=2, connect=0.05, call=0.2, modern=modern and n % 2 == count % 2)
        for n, each in enumerate("abc"[:count])
    )
    work = [Op(round(0.5 * n, 2), "call", server.name, "t0", timeout=3.0) for n in range(20) for server in servers]
    work += [Op(2.0, "off", server.name, "t1") for server in servers]
    work += [Op(4.0, "reload"), Op(4.0, "reload"), Op(4.0, "reload"), Op(5.0, "note"), Op(6.0, "restart", "a")]
    work += [Op(8.0, "on", "a", "t1")]
    return Plan(
        seed=sum(name.encode()),
        servers=servers,
        work=tuple(sorted(work, key=lambda op: op.at)),
        heal_at=12.0,
        reset_after=1.5,
        restarts=3,
        level=level,
    )


def _at(site: str) -> float:
    """When a fault of the systematic mode is due: in the life of the first connection, or before it begins."""
    return 0.0 if site in ("spawn", "connect", "handshake", "list") else 1.1


def singles(level: Level = "connection") -> Iterator[Plan]:
    """Every valid (site, kind), with its least and its greatest argument, against one of one, two and three servers."""
    for site, kind in all_pairs(level):
        least, most = min(args(site, kind, level)), max(args(site, kind, level))
        for count, arg in zip((1, 2, 3), (least, most, most), strict=True):
            plan = _systematic(f"{site} {kind}", count, level)
            fault = Fault(_at(site), "" if site in CORE else "a", site, kind, arg)
            yield evolve(plan, faults=FaultPlan((fault,)))
    for kind in valid(level)["list"]:
        # And of a later listing, which has to be announced to be made.
        later = Fault(1.1, "a", "list", kind, max(args("list", kind, level)))
        announced = Fault(1.2, "a", "list_changed", "duplicate_frame")
        yield evolve(_systematic(f"later list {kind}", 2, level), faults=FaultPlan((later, announced)))


def doubles(level: Level = "connection") -> Iterator[Plan]:
    """Plans of three servers in which every two valid (site, kind) meet: on one server, or in a core actor and on it.

    A plan is a row of a covering: it takes pairs that have not met yet, two kinds at a time, until all have.
    """
    pairs = all_pairs(level)
    open_pairs = list(itertools.combinations(range(len(pairs)), 2))
    width = 8

    def enough(size: int) -> float:
        # On the wire there are so many pairs that a row may repeat some, or the rows would be very many.
        return size if level == "connection" else size / 2

    met: set[tuple[int, int]] = set()
    for first, second in open_pairs:
        if (first, second) in met:
            continue
        row = [first, second]
        for candidate in range(len(pairs)):
            new = sum(tuple(sorted((candidate, each))) not in met for each in row)
            if len(row) < width and candidate not in row and new >= enough(len(row)):
                row.append(candidate)
        met.update(itertools.combinations(sorted(row), 2))
        yield _row([pairs[each] for each in row], level)


def _row(row: list[tuple[str, str]], level: Level) -> Plan:
    plan = _systematic(" ".join(f"{site} {kind}" for site, kind in row), 3, level)
    faults = []
    for n, (site, kind) in enumerate(row):
        arg = args(site, kind, level)[0]
        faults.append(Fault(round(_at(site) + 0.7 * n, 2), "" if site in CORE else "a", site, kind, arg))
    return evolve(plan, faults=FaultPlan(tuple(faults)))
