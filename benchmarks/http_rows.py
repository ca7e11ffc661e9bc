"""The rows of `http_faults.py`: what a server over HTTP does wrong, when, and what its caller asks for meanwhile.

The servers are those of the tests: `tests/faulty_http/server.py` over real sockets, the SDK's own on uvicorn in a process of
its own, and npm's ``server-everything``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.faulty_http.server import Web, deed

__all__ = ["CALL", "CONNECT", "LONG", "ROWS", "Row"]

CALL = 1.0
"""Seconds that a call may take: ``timeout`` of the entry, where a row means waiting for it."""

CONNECT = 1.5
"""Seconds from nothing to the first list: ``connectTimeout`` of the entry, likewise."""

LONG = 30.0


@frozen
class Row:
    """One fault.

    Args:
        name: what is done wrong.
        era: of the server: ``legacy``, ``modern``, ``sse``; or what runs it.
        kind: how it is played: see `http_faults`.
        deeds: moment → deed, as `Web.deeds`.
        entry: keys of the entry.
        prepare: done to the server before it is started.
        pings: seconds of silence before it is pinged, and within which it answers, for this row; None: as always.
        options: of the real server's program.
    """

    name: str
    era: str
    kind: str = "call"
    deeds: Mapping[str, Any] = field(factory=dict)
    entry: Mapping[str, Any] = field(factory=dict)
    prepare: Callable[[Web], None] | None = None
    pings: float | None = None
    options: Mapping[str, Any] = field(factory=dict)

    def __str__(self) -> str:
        return f"{self.name} [{self.era}]"


def _bearer(status: int) -> dict[str, Any]:
    return deed(status=status, headers={"WWW-Authenticate": "Bearer"})


def _later(status: int, seconds: int) -> dict[str, Any]:
    return deed(status=status, headers={"Retry-After": str(seconds)})


_ELSEWHERE = deed(status=307, headers={"Location": "https://elsewhere.example/mcp"})
_SLOW = {"timeout": CALL}
_IMPATIENT = {"connect_timeout": CONNECT}

_OF_A_CALL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "401": (_bearer(401), {}),
    "403 with a challenge": (_bearer(403), {}),
    **{str(status): (deed(status=status), {}) for status in (400, 418, 500, 502)},
    "429, Retry-After 7": (_later(429, 7), {}),
    "503, Retry-After 7": (_later(503, 7), {}),
    "202": (deed(status=202), {}),
    "307 elsewhere": (_ELSEWHERE, {}),
    "reset": (deed("reset"), {}),
    "closed without an answer": (deed("close"), {}),
    "cut off": (deed("cut"), {}),
    "half the JSON": (deed("truncate"), {}),
    "a page": (deed("html"), {}),
    "result null": (deed("result", result=None), {}),
    "68 MB": (deed("large", size=68_000_000), {}),
    "stream broken off": (deed("break_off"), {}),
    "stream ended": (deed("end"), {}),
    "stream stalled": (deed("stall"), _SLOW),
    "never answered": (deed("hang"), _SLOW),
}
_BY_THE_STREAM = {"202", "half the JSON", "a page", "result null", "68 MB", *(n for n in _OF_A_CALL if "stream" in n)}
"""No faults over HTTP+SSE, where the answer to a POST says nothing."""


def _calls(era: str) -> list[Row]:
    return [
        Row(
            name,
            era,
            "call" if how else "healthy",
            {"tools/call": how} if how else {},
            _SLOW if (name, era) == ("cut off", "sse") else entry,  # its answer would be in the stream
        )
        for name, (how, entry) in _OF_A_CALL.items()
        if era != "sse" or name not in _BY_THE_STREAM
    ]


def _at_the_start(era: str) -> list[Row]:
    first = {"legacy": "initialize", "modern": "server/discover", "sse": "GET"}[era]
    rows = [
        Row("401 at the start", era, "start", {"*": _bearer(401)}),
        Row("403 with a challenge at the start", era, "start", {"*": _bearer(403)}),
        Row("500 at the start", era, "start", {"*": deed(status=500)}),
        Row("503, Retry-After 500, at the start", era, "start", {"*": _later(503, 500)}),
        Row("reset at the start", era, "start", {"*": deed("reset")}),
        Row("closed at the start", era, "start", {"*": deed("close")}),
        Row("first request never answered", era, "start", {"*": deed("hang")}, _IMPATIENT),
        Row("handshake never answered", era, "start", {first: deed("hang")}, _IMPATIENT),
        Row("list never answered", era, "start", {"tools/list": deed("hang")}, _IMPATIENT),
        Row("401 to the list", era, "start", {"tools/list": _bearer(401)}),
        Row("503, Retry-After 500, to the list", era, "start", {"tools/list": _later(503, 500)}),
        Row("nobody listens", era, "refused"),
    ]
    if era == "sse":
        rows += [
            Row("no endpoint event", era, "start", {"GET": deed("stall")}, {"type": "sse", **_IMPATIENT}),
            Row("405 to the stream", era, "start", {"GET": deed(status=405)}),
        ]
    else:
        rows += [
            Row("a page at the start", era, "start", {"*": deed("html")}),
            Row("405 to everything", era, "start", {"*": deed(status=405)}),
            Row("503 three times, Retry-After 0", era, "start", {"*": [_later(503, 0)] * 3}),
        ]
    return rows


def _no_stream(web: Web) -> None:
    web.deeds["GET"] = deed(status=405)
    gone = '{"jsonrpc": "2.0", "id": "listen-1", "error": {"code": -32601, "message": "Method not found"}}'
    web.deeds["subscriptions/listen"] = deed(status=404, body=gone)


def _of_sessions() -> list[Row]:
    session = deed(status=400, body='{"jsonrpc": "2.0", "error": {"code": -32000, "message": "No valid session"}}')
    return [
        Row("session forgotten: 404", "legacy", "forget"),
        Row("session forgotten: 404, no GET stream", "legacy", "forget", prepare=_no_stream),
        Row("session forgotten: 400 with words", "legacy", "call", {"tools/call": [session]}),
        Row("stream with ids broken off, resumed", "legacy", "resume"),
        Row("initialized never taken", "legacy", "start", {"notifications/initialized": deed("hang")}),
        Row("GET stream never answered", "legacy", "start", {"GET": deed("hang")}),
        Row("DELETE never answered", "legacy", "leave", {"DELETE": deed("hang")}),
        Row("idle, pings not answered", "legacy", "idle", {"ping": deed("hang")}, pings=0.3),
    ]


def _of_lives(era: str) -> list[Row]:
    rows = [
        Row("ended while idle", era, "end"),
        Row("restarted on its port, 10 calls in flight", era, "restart"),
        Row("100 calls never answered, one more", era, "pool", entry=_SLOW),
        Row("1,000 calls cancelled", era, "cancel"),
    ]
    if era != "sse":
        rows.append(Row("ended while idle, no stream", era, "end", prepare=_no_stream, pings=0.3))
    return rows


def _of_the_sdk() -> list[Row]:
    rows = [
        Row(
            f"SDK on uvicorn, {'stateless' if stateless else 'stateful'}, {'JSON' if json else 'streams'}: killed",
            era,
            "uvicorn",
            options={"transport": "streamable-http", "stateless_http": stateless, "json_response": json},
        )
        for era in ("modern", "legacy")
        for stateless in (False, True)
        for json in (False, True)
    ]
    return [*rows, Row("SDK on uvicorn: killed", "sse", "uvicorn", options={"transport": "sse"})]


_NPM = [
    Row("npm server-everything: killed", "legacy", "npm", options={"mode": "streamableHttp"}),
    Row("npm server-everything: killed", "sse", "npm", options={"mode": "sse"}),
]

ROWS: list[Row] = [
    *(row for era in ("legacy", "modern", "sse") for row in (*_calls(era), *_at_the_start(era), *_of_lives(era))),
    *_of_sessions(),
    *_of_the_sdk(),
    *_NPM,
]
"""All of them."""
