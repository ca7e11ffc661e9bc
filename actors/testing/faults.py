"""Faults as values: what goes wrong, where, with whom and from when on; and which of them make sense, as tables.

There is a table for each level that faults are delivered at: that of whole connections, where an answer is a value, and the
wire, where it is bytes on a pipe. A fault's ``repr`` pastes back as the same fault, so that a plan that was drawn, shrunk or
reported is a literal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from attrs import field, frozen

__all__ = [
    "ARGS",
    "BYTES",
    "CORE",
    "NOISE",
    "SPONTANEOUS",
    "VALID",
    "WIRE_ARGS",
    "WIRE_VALID",
    "Fault",
    "FaultPlan",
    "Level",
    "all_pairs",
    "args",
    "check",
]

Level = Literal["connection", "wire"]
"""Where the faults of servers are delivered: in place of whole connections, or in the bytes below a session."""

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

NOISE = ("not_json", "no_message", "bad_utf8", "nul_bytes", "long_line", "glued_line")
"""Kinds of garbage that is no answer to anything: text, JSON that is no message, bytes that are no UTF-8, NUL bytes, a line
over the limit, half a line that the next one is glued to."""

BYTES = ("slice", "bandwidth", "limit", "half_frame", "duplicate_frame", "garbage_frame", "long_frame", *NOISE)
"""The kinds that concern the bytes of one answer, on the wire."""

_ON_THE_WIRE: dict[str, tuple[str, ...]] = {
    "handshake": BYTES,
    "list": BYTES,
    "call_before": ("slice", "limit"),
    "call_reply": BYTES,
    "idle": ("limit", "half_frame", *NOISE),
}

WIRE_VALID: dict[str, tuple[str, ...]] = {
    site: tuple(dict.fromkeys((*kinds, *_ON_THE_WIRE.get(site, ())))) for site, kinds in VALID.items()
}
"""The same on the wire, where most kinds are meant literally.

A server that dies while it answers (`handshake`, `list`, `call_reply`) has written half of its answer; one that resets closes
both pipes and lives on. What is late, or never comes, is the answer; at ``call_before`` the server stops reading for that long
(``hang``: until the heal). Further: the answer (``call_before``: what is read) comes in pieces of ``arg`` bytes; it comes at
``arg`` bytes a second; the stream ends ``arg`` bytes from the beginning of it on; half of it comes, and then nothing until the
heal; it comes twice; it cannot be read; it is longer than a line may be; a line of `NOISE` comes before it (at ``idle``: by
itself).
"""

WIRE_ARGS: dict[str, tuple[float, ...]] = {
    **ARGS,
    "slice": (1, 7, 64),
    "bandwidth": (20, 400),
    "limit": (1, 40, 600),
    "refuses_to_die": (0,),
}
"""Kind → the arguments that are drawn for it on the wire; 0 for a kind that has none."""

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
        arg: how much: seconds, times, pieces, bytes, calls or tools, as the kind has it.

    Raises:
        ValueError: the site or the kind is unknown, or they do not go together.
    """

    at: float
    server: str
    site: str = field(validator=_known_site)
    kind: str
    arg: float = 0.0

    def __attrs_post_init__(self) -> None:
        # Those of the wire are all; which of them make sense at another level, `check` knows.
        if self.kind not in WIRE_VALID[self.site]:
            raise ValueError(
                f"{self.kind!r} makes no sense at {self.site!r}; there: {', '.join(WIRE_VALID[self.site])}"
            )
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


def all_pairs(level: Level = "connection") -> tuple[tuple[str, str], ...]:
    """Every (site, kind) that makes sense at a level."""
    return tuple((site, kind) for site, kinds in _valid(level).items() for kind in kinds)


def args(site: str, kind: str, level: Level = "connection") -> tuple[float, ...]:
    """The arguments that are drawn for a kind at a site; 0 alone when it has none."""
    table = CORE_ARGS if site in CORE else WIRE_ARGS if level == "wire" else ARGS
    return table.get(kind, (0.0,))


def check(fault: Fault, level: Level) -> None:
    """Check that a fault can be delivered at a level.

    Raises:
        ValueError: it cannot.
    """
    kinds = _valid(level)[fault.site]
    if fault.kind not in kinds:
        where = "" if fault.kind not in WIRE_VALID[fault.site] else ", except on the wire"
        raise ValueError(f"{fault.kind!r} makes no sense at {fault.site!r}{where}; there: {', '.join(kinds)}")


def _valid(level: Level) -> dict[str, tuple[str, ...]]:
    if level not in ("connection", "wire"):
        raise ValueError(f"no such level: {level!r}; there are connection and wire")
    return WIRE_VALID if level == "wire" else VALID
