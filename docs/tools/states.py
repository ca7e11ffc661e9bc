"""The state machines, read from where the code has them.

- The stages of a child: `STAGES`, the table that `playbill.supervision` itself is checked against.
- The server actor: the table at the top of `actors/server.py`.
- The phase of a server: `phase_of`, asked about every combination of what it reads.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import playbill.actors.server
from attrs import field, frozen
from playbill.actors.model.config import ServerEntry
from playbill.actors.model.phase import DOWN_PHASES, phase_of
from playbill.actors.model.status import Lifecycle, Report, ServerStatus
from playbill.supervision.probe import STAGES

from .pages import Undocumented, literal, page, table

__all__ = ["Edge", "Machine", "child_stages", "phase_page", "phases", "server_actor"]


@frozen
class Edge:
    """One way from a state to another.

    Args:
        source, target: the states.
        label: when, or empty.
    """

    source: str
    target: str
    label: str = ""


@frozen
class Machine:
    """A state machine, and where its picture has the states.

    Args:
        name: what it is called in the picture's title.
        places: of each state, its centre, in units of a box and its gap.
        edges: the ways.
        ends: states that are left by no way.
    """

    name: str
    places: Mapping[str, tuple[float, float]]
    edges: tuple[Edge, ...]
    ends: frozenset[str] = field(factory=frozenset)

    def __attrs_post_init__(self) -> None:
        named = {state for edge in self.edges for state in (edge.source, edge.target)} | self.ends
        for state in sorted(named - self.places.keys()):
            raise Undocumented(
                f"{self.name}: the state {state!r} has no place in its picture: see docs/tools/states.py"
            )
        for state in sorted(self.places.keys() - named):
            raise Undocumented(f"{self.name}: the state {state!r} of docs/tools/states.py is no more in the code")


_CHILD = {
    "starting": (0.0, 0.0),
    "running": (2.6, 0.0),
    "backing_off": (0.0, 1.8),
    "parked": (2.6, 1.8),
    "stopping": (1.3, 3.3),
    "removed": (3.6, 3.3),
}


def child_stages(stages: Mapping[Any, frozenset[Any]] = STAGES) -> Machine:
    """The stages of a child under a supervisor.

    Args:
        stages: which may follow which.

    Raises:
        Undocumented: a stage has no place in the picture.
    """
    edges = tuple(Edge(source, target) for source, after in stages.items() for target in sorted(after))
    return Machine(
        "Stages of a child", _CHILD, edges, frozenset(source for source, after in stages.items() if not after)
    )


_ACTOR = {
    "connecting": (0.0, 0.0),
    "listing": (1.9, 0.0),
    "ready": (3.8, 0.0),
    "needs_auth": (0.0, 1.6),
    "ended": (1.9, 2.9),
    "lost": (3.8, 1.6),
}


def _rows(text: str) -> Iterator[list[str]]:
    for line in re.findall(r"^ *\|(.*)\| *$", text, re.MULTILINE):
        cells = [cell.strip() for cell in line.split("|")]
        if not set("".join(cells)) <= {"-"}:
            yield cells


def server_actor(text: str = playbill.actors.server.__doc__ or "") -> Machine:
    """One incarnation of a server actor, from the table in its module's docstring.

    Args:
        text: that docstring.

    Raises:
        Undocumented: the table is another one than this function knows how to draw.
    """
    head, *rows = list(_rows(text)) or [[]]
    if head != ["state", "what it waits for", "on success", "on loss or timeout", "on a stop"]:
        raise Undocumented(f"actors/server.py: docs/tools/states.py cannot read a table with the columns {head}")
    edges = []
    for state, waits, success, loss, stop in rows:
        if success != "–":
            edges.append(Edge(state, success, waits))
        if loss != "–":
            edges.append(Edge(state, "lost", "loss or timeout" if loss == "raise" else loss))
        edges.append(Edge(state, "ended", f"stop: {stop}"))
    edges.append(Edge("connecting", "needs_auth", "a login is needed"))
    return Machine("One incarnation of a server actor", _ACTOR, tuple(edges), frozenset({"lost", "ended"}))


_REPORTS: Mapping[str, Report | None] = {
    "none": None,
    "connecting": Report(generation=1),
    "connected": Report(generation=1, connected=True),
    "connected, first list is in": Report(generation=1, connected=True, ready=True),
    "was ready, connection lost": Report(generation=1, ready=True, error="lost"),
    "a login is needed": Report(generation=1, needs_auth=True),
}


def phases() -> Iterator[tuple[str, str, str, str]]:
    """What `phase_of` says: the entry, the supervisor's word, the actor's word, the phase."""
    entries = {
        "disabled": ServerEntry("s", command="x", disabled=True),
        "untrusted": ServerEntry("s", command="x", trusted=False),
        "wrong": ServerEntry("s", error="wrong"),
        "to run": ServerEntry("s", command="x"),
    }
    lives: dict[str, Lifecycle | None] = {"none": None}
    for stage in ("starting", "running", "backing_off", "parked", "stopping"):
        lives[stage] = Lifecycle(stage=stage, generation=1)  # type: ignore[arg-type]
    lives["starting, on probation"] = Lifecycle(stage="starting", generation=1, probation=True)
    lives["running, on probation"] = Lifecycle(stage="running", generation=1, probation=True)
    for (wanted, entry), (life, lifecycle), (said, report) in itertools.product(
        entries.items(), lives.items(), _REPORTS.items()
    ):
        yield wanted, life, said, phase_of(entry, ServerStatus(lifecycle=lifecycle, report=report))


def _merged(rows: list[tuple[str, str, str, str]]) -> list[tuple[str, str, str, str]]:
    """The same with fewer rows: what makes no difference is named in one cell; all there is of it is `any`."""
    for place in (2, 1):
        every = dict.fromkeys(row[place] for row in rows)
        groups: dict[tuple[str, ...], list[str]] = {}
        for row in rows:
            groups.setdefault(row[:place] + row[place + 1 :], []).append(row[place])
        rows = []
        for rest, values in groups.items():
            cells = [*rest]
            cells.insert(place, "any" if len(values) == len(every) else " · ".join(values))
            rows.append((cells[0], cells[1], cells[2], cells[3]))
    return rows


def phase_page() -> str:
    """The page about the phases, as it is to be."""
    rows = _merged(list(phases()))
    return page(
        "# Phase of a server",
        "A server's phase is a pure function of its entry, of the supervisor's word on it and of what its actor reported."
        " This is that function, asked about every combination"
        " ([what each phase means](../architecture.md#phases-of-a-server)).",
        table(
            ("the entry is", "the supervisor says", "the actor says", "phase", "its tools"),
            (
                (
                    entry,
                    life,
                    said,
                    literal(phase),
                    "down" if phase in DOWN_PHASES else "on the wire, if it has listed them",
                )
                for entry, life, said, phase in rows
            ),
        ),
    )
