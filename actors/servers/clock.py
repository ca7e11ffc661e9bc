"""An MCP server that knows the time: what it is here and elsewhere, how far apart two moments are, and how to wait."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, tzinfo
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from ._stdio import BadArguments, Tool, serve
else:  # run by path: this file's folder leads sys.path
    _stdio = import_module("_stdio")
    BadArguments, Tool, serve = _stdio.BadArguments, _stdio.Tool, _stdio.serve


def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # here, as it costs every start a few milliseconds

    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise BadArguments(f"no time zone {name!r} is known here; names look like Europe/Berlin, or UTC") from None


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadArguments(f"{text!r} is not an ISO 8601 time, such as 2030-01-31T12:00:00+00:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _now(zone: str = "UTC") -> str:
    return datetime.now(_zone(zone)).isoformat(timespec="seconds")


def _convert(time: str, zone: str) -> str:
    return _moment(time).astimezone(_zone(zone)).isoformat(timespec="seconds")


def _between(start: str, end: str) -> str:
    seconds = (_moment(end) - _moment(start)).total_seconds()
    days, rest = divmod(abs(seconds), 86_400)
    hours, rest = divmod(rest, 3_600)
    sign = "-" if seconds < 0 else ""
    return f"{sign}{days:.0f} days {hours:.0f} hours {rest // 60:.0f} minutes ({seconds:g} seconds)"


def _wait(seconds: float, cancelled: threading.Event) -> str:
    cancelled.wait(seconds)
    return f"waited {seconds:g} s"


_ZONE = {"type": "string", "description": "An IANA time zone such as Asia/Tokyo, or UTC."}
_TIME = {"type": "string", "description": "An ISO 8601 time; one without an offset is taken as UTC."}

TOOLS = (
    Tool("now", "What time is it", "The time now, to the second, in a time zone.", {"zone": _ZONE}, (), _now),
    Tool(
        "convert",
        "Time elsewhere",
        "Tell a given moment in another time zone.",
        {"time": _TIME, "zone": _ZONE},
        ("time", "zone"),
        _convert,
    ),
    Tool(
        "between",
        "Time between",
        "How long it is from one moment to another; negative when the end is before the start.",
        {"start": _TIME, "end": _TIME},
        ("start", "end"),
        _between,
    ),
    Tool(
        "wait",
        "Wait",
        "Wait, then answer: for trying deadlines and cancellation.",
        {"seconds": {"type": "number", "minimum": 0, "maximum": 600, "description": "How long to wait, in seconds."}},
        ("seconds",),
        _wait,
        slow=True,
    ),
)

if __name__ == "__main__":
    serve("clock", "Clock", "Tells the time anywhere and measures time. Times are ISO 8601.", TOOLS)
