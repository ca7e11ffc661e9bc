"""All there is to say of a server or a tool, as lines: each without control characters, and not wrapped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ..model.phase import DOWN_PHASES, WORDS
from ..model.plain import flat, label, line
from ..model.snapshot import ServerState, Snapshot, ToolState
from ..model.why import restarted, why, why_server

__all__ = ["lines_of_server", "lines_of_tool", "shown_lines"]

_MOST_LINES = 1_000
_MOST_PARTS = 20_000  # of a schema's JSON
_MOST_TEXT = 20_000  # characters of a text in lines


def shown_lines(text: str) -> list[str]:
    """A text of several lines, for a screen: blanks for what cannot be seen, and an end to what has none."""
    made = [_kept(each) for each in text[:_MOST_TEXT].splitlines()[:_MOST_LINES]]
    return made if len(text) <= _MOST_TEXT and len(made) < _MOST_LINES else [*made, "…"]


def _kept(text: str) -> str:
    """A line with its blanks at the beginning."""
    text = text.expandtabs(4)
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def _schema(schema: Any) -> list[str]:
    """A schema as JSON, cut when it is huge."""
    try:
        parts = list(islice(json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(schema), _MOST_PARTS + 1))
    except (RecursionError, TypeError, ValueError):
        return ["(it cannot be shown: it is nested too deeply, or is no JSON)"]
    made = "".join(parts[:_MOST_PARTS]).splitlines()
    whole = len(parts) <= _MOST_PARTS and len(made) <= _MOST_LINES
    return [line(_kept(each)) if len(each) > 400 else _kept(each) for each in made[:_MOST_LINES]] + (
        [] if whole else ["…"]
    )


def _list_of(server: ServerState) -> str:
    """How fresh its tool list is."""
    if server.list_state == "current":
        return "current"
    if server.list_state == "none":
        return "not in yet" if server.phase not in DOWN_PHASES else "not known"
    return "stale: what it listed before, until a newer list is in"


def _fields(fields: list[tuple[str, str | None]]) -> Iterator[str]:
    width = max(len(name) for name, _ in fields)
    for name, value in fields:
        if value:
            yield f"{name.ljust(width)}  {value}"


def lines_of_tool(snapshot: Snapshot, server: ServerState, tool: ToolState, now: float | None) -> list[str]:
    """A tool: why it is on the wire or not, its names, what is sent otherwise, its description and its schema.

    Args:
        snapshot: of which both are.
        server, tool: which.
        now: the clock of the snapshot's times, or None.
    """
    found = [str(why(snapshot, server.name, tool.bare, now)), ""]
    found += _fields(
        [
            ("server", label(server.name)),
            ("title", flat(tool.title or "")),
            ("wire name", flat(tool.wire_name)),
            ("enabled", "yes" if tool.enabled else "no"),
            ("pinned", "yes" if tool.pinned else None),
        ]
    )
    if tool.mended:
        found += ["", "Sent otherwise than its server says:", *(f"  {flat(each)}" for each in tool.mended)]
    if tool.description:
        found += ["", "Description:", *(f"  {each}" for each in shown_lines(tool.description))]
    return [*found, "", "Arguments (JSON Schema):", *(f"  {each}" for each in _schema(tool.input_schema))]


def lines_of_server(snapshot: Snapshot, server: ServerState, now: float | None) -> list[str]:
    """A server: how it is, what it runs, and what it wrote on stderr before it died.

    Args:
        snapshot: of which it is.
        server: which.
        now: the clock of the snapshot's times, or None.
    """
    found = [str(why_server(snapshot, server.name, now)), ""]
    argv = None if server.command is None else " ".join(flat(each) for each in (server.command, *server.args))
    found += _fields(
        [
            ("phase", WORDS[server.phase]),
            ("list", _list_of(server)),
            ("runs", argv),
            ("kind", {"http": "http (remote)", "sse": "sse (remote)"}.get(server.kind)),
            ("url", None if server.url is None else flat(server.url)),
            (
                "headers",
                ", ".join(map(flat, server.headers)) + " (what they hold is not shown)" if server.headers else None,
            ),
            ("from", None if server.source is None else flat(server.source)),
            ("pid", None if server.pid is None else str(server.pid)),
            ("protocol", None if server.protocol_version is None else flat(server.protocol_version)),
            ("restarts", (restarted(server, now) or "").removeprefix("restarted ")),
            ("error", flat(server.error or server.list_error or "")),
        ]
    )
    if server.stderr_tail:
        found += ["", "Last words on stderr:", *(f"  {each}" for each in shown_lines(server.stderr_tail))]
    return found
