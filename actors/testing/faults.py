"""Faults as values: what goes wrong, where, with whom and from when on; and which of them make sense, as a table.

A fault's ``repr`` pastes back as the same fault, so that a plan that was drawn, shrunk or reported is a literal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import field, frozen

__all__ = ["ARGS", "CORE", "SPONTANEOUS", "VALID", "Fault", "FaultPlan", "all_pairs"]

CORE = ("coordinator", "projector", "mailbox")
"""The sites in the host's own core actors: a fault there names no server."""

SPONTANEOUS = ("idle", "list_changed")
"""The sites at which a server acts by itself, at the fault's time; at all others a fault waits for the next who comes."""

_DELAYS = ("latency", "jitter", "hang", "slice")
_DEATHS = ("crash", "clean_exit", "reset", "flaky")

VALID: dict[str, tuple[str, ...]] = {
    "spawn": ("crash", "flaky", "latency", "jitter", "hang"),
    "connect": (*_DEATHS, *_DELAYS),
    "handshake": (*_DEATHS, *_DELAYS, "garbage_frame"),
    "list": (*_DEATHS, *_DELAYS, "bandwidth", "garbage_frame", "duplicate_frame", "huge_listing"),
    "call_before": (*_DEATHS, *_DELAYS, "limit"),
    "call_after": (*_DEATHS, *_DELAYS),
    "call_reply": (*_DEATHS, *_DELAYS, "bandwidth", "garbage_frame"),
    "list_changed": ("crash", "duplicate_frame", "flaky", "huge_listing"),
    "idle": ("crash", "clean_exit", "reset"),
    "close": ("crash", "latency", "jitter", "slow_close", "slow_teardown", "refuses_to_die"),
    "coordinator": ("crash", "flaky", "latency"),
    "projector": ("crash", "flaky", "latency"),
    "mailbox": ("crash", "flaky", "stalled_mailbox"),
}
"""Site → the kinds that make sense there.

Where: the process is started, is connected to, shakes hands, lists its tools; a call is sent, has arrived, is being answered;
the server announces a change, or does nothing; the connection is closed; in the core actors.
What: dies, exits with code 0, resets, dies the next n times (at ``list_changed``: announces n times); is late by ``arg``, by
about ``arg``, for ever, in ``arg`` pieces; takes ``arg`` seconds for each item; takes ``arg`` calls at once; answers nonsense,
announces twice, lists ``arg`` tools more; closes slowly, takes long to clean up, ignores being told to end; a core actor reads
its mail ``arg`` seconds late.
"""

ARGS: dict[str, tuple[float, ...]] = {
    "flaky": (2, 3, 6),
    "latency": (0.02, 0.5, 2.0),
    "jitter": (0.1, 1.0),
    "slice": (3, 20),
    "bandwidth": (0.01, 0.1),
    "limit": (1, 2),
    "huge_listing": (100,),
    "slow_close": (0.5, 3.0),
    "slow_teardown": (0.2, 2.0),
    "refuses_to_die": (7.0, 12.0),
    "stalled_mailbox": (0.05, 0.5),
}
"""Kind → the arguments that are drawn for it; 0 for a kind that has none."""

CORE_ARGS: dict[str, tuple[float, ...]] = {"flaky": (2, 3), "latency": (0.02, 0.3), "stalled_mailbox": (0.05, 0.5)}
"""The same in the core actors: they are ours, and are never asked to bear a hang."""


def _known_site(_: object, __: object, value: str) -> None:
    if value not in VALID:
        raise ValueError(f"no such site: {value!r}; there are {', '.join(VALID)}")


@frozen
class Fault:
    """One thing that goes wrong, once.

    Args:
        at: trio clock seconds from which it may strike: the first who then comes to the site is struck.
        server: whom; empty for a core actor.
        site: where, a key of `VALID`.
        kind: what, one of the site's kinds.
        arg: how much: seconds, times, pieces, calls or tools, as the kind has it.

    Raises:
        ValueError: the site or the kind is unknown, or they do not go together.
    """

    at: float
    server: str
    site: str = field(validator=_known_site)
    kind: str
    arg: float = 0.0

    def __attrs_post_init__(self) -> None:
        if self.kind not in VALID[self.site]:
            raise ValueError(f"{self.kind!r} makes no sense at {self.site!r}; there: {', '.join(VALID[self.site])}")
        if (self.site in CORE) != (self.server == ""):
            raise ValueError(f"a fault at {self.site!r} names {'no' if self.site in CORE else 'a'} server")


def _in_order(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    return tuple(sorted(faults, key=lambda fault: fault.at))


@frozen
class FaultPlan:
    """All that goes wrong in a run, by time."""

    faults: tuple[Fault, ...] = field(default=(), converter=_in_order)

    def __iter__(self) -> Iterator[Fault]:
        return iter(self.faults)

    def __len__(self) -> int:
        return len(self.faults)

    def of(self, server: str) -> tuple[Fault, ...]:
        """Those of one server; of the core actors, for an empty name."""
        return tuple(fault for fault in self.faults if fault.server == server)


def all_pairs() -> tuple[tuple[str, str], ...]:
    """Every (site, kind) that makes sense."""
    return tuple((site, kind) for site, kinds in VALID.items() for kind in kinds)
