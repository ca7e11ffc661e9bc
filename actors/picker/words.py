"""What is said of the header, a notice, a server and a tool: parts of text, each one line without control characters."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..model.phase import DOWN_PHASES, WORDS, predicate
from ..model.plain import flat, line, quoted
from ..model.snapshot import Phase, PluginModel, ServerState, Snapshot, ToolState, Verdict
from ..model.why import TOLD, typed, why
from .values import NoticeRow, Tone

__all__ = [
    "LABELS",
    "TONES",
    "count_of",
    "description_of",
    "empty_of",
    "error_of",
    "notices",
    "plural",
    "state_of",
    "title_of",
    "tool_words",
    "wanted",
]

TONES: dict[Phase, Tone] = {
    "disabled": "off",
    "untrusted": "ask",
    "invalid": "bad",
    "needs_auth": "ask",
    "starting": "busy",
    "ready": "good",
    "backing_off": "busy",
    "parked": "bad",
    "stopping": "busy",
}

LABELS: dict[Verdict, str] = {
    "excluded": "excluded",
    "server_down": "server down",
    "quarantined": "quarantined",
    "over_budget": "over budget",
    "on_wire": "on the wire",
}
"""A verdict in one or two words, for a narrow column."""

_LONGEST_DESCRIPTION = 4_000  # characters that are looked at for the first line
_WARNINGS_TOLD = 3
_IN_FORCE = "what could be read last stays in force until that is mended"


def plural(count: int, what: str) -> str:
    """``1 tool``, ``2 tools``."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def _wait(at: float, now: float) -> str:
    seconds = at - now
    if not seconds > 0:
        return "now"
    return f"in {math.ceil(seconds)} s" if seconds <= 120 else f"in {math.ceil(seconds / 60)} min"


def _ordinal(number: int) -> str:
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def wanted(server: ServerState) -> bool:
    """Whether the config means a server to run, as far as its switch goes."""
    return server.phase not in ("disabled", "stopping")


def state_of(server: ServerState, now: float | None) -> str:
    """How it is with a server, in few words.

    Args:
        server: which.
        now: the clock that its times are of, in seconds; None when it is not known.
    """
    at = server.next_retry_at
    retry = "" if at is None or now is None else f"retry {_wait(at, now)}{TOLD if server.retry_asked else ''}"
    words = WORDS[server.phase]
    match server.phase:
        case "backing_off":
            attempt = "" if server.attempt is None else f" ({_ordinal(server.attempt[0])} of {server.attempt[1]})"
            return f"{retry or 'waiting for a retry'}{attempt}"
        case "parked":
            how = "mend it, then press R" if server.futile else "press R to revive"
            return f"{words} — {how}{f', {retry}' if retry else ''}"
        case "starting" if server.connected:
            return f"{words}: its tools are not in yet"
        case "starting":
            return f"{words} again" if server.error else words
        case "untrusted":
            return f"{words} — press t to review"
        case "needs_auth":
            if server.url is None:
                return f"{words} — press R afterwards"
            if not server.logs_in:
                return f"{words} — correct its headers, then press R"
            line = typed("login", server.name)
            return f"{words} — log in, then press R" if line is None else f"{words} — {line}"
    return words


def error_of(server: ServerState) -> str | None:
    """Why a server is not connected, or why its newest listing failed; or None.

    Of its own file only the name is said, as the row says where that is: else a narrow screen shows a path and no reason.
    """
    if server.error:
        path = server.source or ""
        name = path.replace("\\", "/").rpartition("/")[2]
        return flat(server.error.replace(path, name) if name else server.error)
    return f"its newest tool list: {flat(server.list_error)}" if server.list_error else None


def count_of(server: ServerState, on_wire: int, tools: int) -> str | None:
    """``X of Y tools on the wire``; None while the server has not listed its tools."""
    if server.list_state == "none":
        return None
    return f"{on_wire} of {plural(tools, 'tool')} on the wire" if tools else "no tools"


def empty_of(server: ServerState) -> str:
    """What stands where the tools of a server would be."""
    if server.list_state != "none":
        return "this server has no tools"
    if server.phase in DOWN_PHASES:  # nothing lists them as long as it stays so
        return f"its tools are not known: it {predicate(server.phase)}"
    return "it has not listed its tools yet"


def title_of(tool: ToolState) -> str | None:
    """The title of a tool; None when it says nothing that the name does not."""
    title = flat(tool.title, 100).strip() if tool.title else ""
    return title if title and title != tool.bare else None


def description_of(tool: ToolState) -> str:
    """The first line of a tool's description that says anything; empty when none does."""
    for each in (tool.description or "")[:_LONGEST_DESCRIPTION].splitlines():
        if (said := flat(each).strip()) != "":
            return said
    return ""


def tool_words(snapshot: Snapshot, server: str, bare: str, now: float | None) -> str:
    """The verdict on a tool in the words of `why`, less the names, which the row shows anyhow."""
    return str(why(snapshot, server, bare, now)).removeprefix(f"tool {quoted(bare)} of server {quoted(server)} is ")


def notices(model: PluginModel, *, most: int | None = _WARNINGS_TOLD) -> Iterator[NoticeRow]:
    """The config's error, the warnings of budget and limit, and of the config's warnings the first ``most``; None: all."""
    if model.config_error is not None:
        yield NoticeRow(identity=("config-error",), kind="error", text=line(model.config_error), more=_IN_FORCE)
    if (over := model.budget_warning()) is not None:
        yield NoticeRow(identity=("warning", "budget"), kind="warning", text=over, more=model.budget_details())
    if (limit := model.limit_warning()) is not None:
        yield NoticeRow(identity=("warning", "limit"), kind="warning", text=line(limit))
    told = model.config_warnings[:most]
    more = len(model.config_warnings) - len(told)
    for at, warning in enumerate(told):
        rest = f"and {more} more (w shows them)" if more > 0 and at == len(told) - 1 else None
        yield NoticeRow(identity=("warning", "config", str(at)), kind="warning", text=line(warning), more=rest)
