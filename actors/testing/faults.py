"""Faults as values: what goes wrong, where, with whom and from when on; and which of them make sense, as tables.

There is a table for each level that faults are delivered at: that of whole connections, where an answer is a value; the wire,
where it is bytes on a pipe; and HTTP, where it is a response. A fault's ``repr`` pastes back as the same fault, so that a plan
that was drawn, shrunk or reported is a literal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from attrs import field, frozen

__all__ = [
    "ARGS",
    "BYTES",
    "CORE",
    "HTTP_ARGS",
    "HTTP_VALID",
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
    "valid",
]

Level = Literal["connection", "wire", "http"]
"""Where the faults of servers are delivered: in place of whole connections, in the bytes below a session, or in HTTP."""

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

_BREAKS = ("reset", "closed", "crash", "down", "flaky")
_ANSWERS = (
    *(*_BREAKS, "cut", "hang", "stall", "latency", "jitter", "slice", "bandwidth"),
    *("status", "throttled", "unauthorized", "forbidden", "session_lost", "redirect", "accepted", "html"),
    *("garbage_frame", "long_frame", "duplicate_frame", "cut_stream", "end_stream"),
)

HTTP_VALID: dict[str, tuple[str, ...]] = {
    "connect": ("refused", "flaky", "reset", "hang", "latency", "jitter"),
    "handshake": _ANSWERS,
    "list": (*_ANSWERS, "huge_listing"),
    "call_after": (*_BREAKS, "hang", "latency", "jitter"),
    "call_reply": _ANSWERS,
    "list_changed": VALID["list_changed"],
    "idle": ("crash", "down", "reset", "session_lost", "cut_stream", "end_stream"),
    "close": ("reset", "hang", "latency", "status"),
    **{site: VALID[site] for site in CORE},
}
"""The same over HTTP. There ``connect`` is the connection that a request is sent on, ``close`` the end of a session (DELETE).

Nobody listens (``flaky``: ``arg`` times); the connection is reset, or closed without an answer; the server ends and is there
again at once, without its sessions, or after ``arg`` seconds (``down``); the body breaks off; nothing comes before the headers
(``hang``), or after those of an event stream (``stall``); the answer is late, or comes ``arg`` bytes a millisecond or a second;
it is status ``arg``, 503 with ``arg`` as its Retry-After, 401, 403 with a challenge, 404 as the session is forgotten, 202, a
redirect to another host; it is a page; it cannot be read, is too long, comes twice; its event stream breaks off, or ends, too
early.
"""

HTTP_ARGS: dict[str, tuple[float, ...]] = {
    **{kind: ARGS[kind] for kind in ("flaky", "latency", "jitter", "huge_listing")},
    "slice": (1, 7, 64),
    "bandwidth": (20, 400),
    "status": (500, 400, 502),
    "throttled": (1, 7),
    "down": (0.3, 3.0),
}
"""Kind → the arguments that are drawn for it over HTTP; 0 for a kind that has none."""

_TABLES: dict[Level, tuple[dict[str, tuple[str, ...]], dict[str, tuple[float, ...]]]] = {
    "connection": (VALID, ARGS),
    "wire": (WIRE_VALID, WIRE_ARGS),
    "http": (HTTP_VALID, HTTP_ARGS),
}
_SOMEWHERE = {
    site: tuple(dict.fromkeys(kind for table, _ in _TABLES.values() for kind in table.get(site, ()))) for site in VALID
}
_WHERE: dict[Level, str] = {"connection": "with whole connections", "wire": "on the wire", "http": "over HTTP"}

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
        # Which of them make sense at which level, `check` knows.
        if self.kind not in _SOMEWHERE[self.site]:
            raise ValueError(
                f"{self.kind!r} makes no sense at {self.site!r}; there: {', '.join(_SOMEWHERE[self.site])}"
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
    return tuple((site, kind) for site, kinds in valid(level).items() for kind in kinds)


def args(site: str, kind: str, level: Level = "connection") -> tuple[float, ...]:
    """The arguments that are drawn for a kind at a site; 0 alone when it has none."""
    return (CORE_ARGS if site in CORE else _TABLES[level][1]).get(kind, (0.0,))


def check(fault: Fault, level: Level) -> None:
    """Check that a fault can be delivered at a level.

    Raises:
        ValueError: it cannot.
    """
    kinds = valid(level).get(fault.site, ())
    if fault.kind not in kinds:
        others = [_WHERE[other] for other, (table, _) in _TABLES.items() if fault.kind in table.get(fault.site, ())]
        there = ", ".join(kinds) or "nothing can go wrong at this level"
        raise ValueError(
            f"{fault.kind!r} makes no sense at {fault.site!r}, except {' and '.join(others)}; there: {there}"
        )


def valid(level: Level) -> dict[str, tuple[str, ...]]:
    """Site → the kinds that make sense there, at a level.

    Raises:
        ValueError: there is no such level.
    """
    if level not in _TABLES:
        raise ValueError(f"no such level: {level!r}; there are {', '.join(_TABLES)}")
    return _TABLES[level][0]
