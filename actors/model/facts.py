"""What is to be said of one server whatever the others are: how it is, and each tool's verdict but the budget's.

`make_row` makes a server's `Row` of its entry and its status. Nothing here raises: what an entry or a status makes raise
becomes the error of its row.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from .config import ServerEntry
from .mask import mask_args, mask_text, mask_url
from .naming import wire_name
from .offers import NOTHING_OFFERED
from .phase import DOWN_PHASES, error_of, list_state_of, live_report, offers_state_of, phase_of, predicate
from .profile import Profile
from .row import Row, Stock
from .snapshot import Phase, ToolState
from .status import ServerStatus
from .tool import Sent, Tool, make_tools, nothing_sent, one_line

__all__ = ["make_row"]

_BY_BARE = attrgetter("ref.bare")


def _excluded(entry: ServerEntry, bare: str) -> str:
    """Why the lists do not let a tool through, in words; `why` says where that is written."""
    said = "excluded by" if entry.excludes(bare) else "not in the include list of"
    return f"{said} the entry {entry.name!r}"


def _down(facts: Mapping[str, Any]) -> str | None:
    """Why no tool is on the wire, whatever the budget, in words."""
    phase: Phase = facts["phase"]
    if phase not in DOWN_PHASES:
        return None
    why = f": {error}" if (error := facts["error"]) else ""
    return f"its server {predicate(phase)}{'' if phase in ('disabled', 'untrusted', 'stopping') else why}"


def _written(entry: ServerEntry) -> dict[str, Any]:
    """What the entry alone says. Masking takes longer than all the rest, and an entry seldom changes."""
    return {
        "name": entry.name,
        "command": None if entry.command is None else mask_text(entry.command),
        "args": mask_args(entry.args),
        "url": None if entry.url is None else mask_url(entry.url),
        "headers": tuple(entry.headers),
        "logs_in": entry.logs_in,
        "source": entry.source,
    }


def _facts(entry: ServerEntry, status: ServerStatus, written: Mapping[str, Any]) -> dict[str, Any]:
    phase = phase_of(entry, status)
    life, report = status.lifecycle, live_report(status)
    connected = report is not None and report.connected
    died = life is not None and not (life.first and connected)
    return {
        **written,
        "kind": entry.kind if report is None or report.kind is None else report.kind,
        "connected": connected,
        "phase": phase,
        "error": error_of(phase, entry, status),
        "futile": phase == "parked" and report is not None and report.futile,
        "list_error": None if report is None else report.list_error,
        "list_state": list_state_of(status),
        **_offers(status),
        "restarts": 0 if life is None else life.restarts,
        "restarted_at": None if life is None else life.restarted_at,
        "next_retry_at": None if life is None else life.next_retry_at,
        "retry_asked": life is not None and life.asked,
        "attempt": None if life is None else life.attempt,
        "generation": 0 if life is None else life.generation,
        "pid": report.pid if connected and report is not None else None,
        "protocol_version": report.protocol_version if connected and report is not None else None,
        "info": None if status.report is None else status.report.info,
        "stderr_tail": report.stderr_tail if died and report is not None else "",
    }


def _offers(status: ServerStatus) -> dict[str, Any]:
    offers = status.offers
    if offers is NOTHING_OFFERED:
        return {}
    listed, asked = offers.resources_generation, offers.prompts_generation
    return {
        "resources": offers.resources,
        "templates": offers.templates,
        "prompts": offers.prompts,
        "resources_state": offers_state_of(status, listed, offers.resources_error),
        "prompts_state": offers_state_of(status, asked, offers.prompts_error),
        "resources_error": offers.resources_error,
        "prompts_error": offers.prompts_error,
    }


def _failed_facts(entry: ServerEntry, error: Exception) -> dict[str, Any]:
    return {"name": entry.name, "phase": "invalid", "error": f"it cannot be shown: {one_line(error)}"}


def _priority(entry: ServerEntry) -> float:
    try:
        return entry.priority if isinstance(entry.priority, int) else float(entry.priority)
    except Exception:
        return 0


def _fixed(entry: ServerEntry, tool: Tool, down: str | None, pinned: bool) -> ToolState | None:
    """The state of a tool the budget has no say in, or None. The order of the questions is that of the verdicts."""
    try:
        bare = tool.wire.bare
        enabled = entry.allows(bare)
        if not enabled:
            return tool.state(False, "excluded", _excluded(entry, bare), pinned)
        if down is not None:
            return tool.state(True, "server_down", down, pinned)
        if tool.flaw is not None:
            return tool.state(True, "quarantined", str(tool.flaw), pinned)
    except Exception as error:
        return tool.state(False, "quarantined", f"its entry's lists cannot be used: {one_line(error)}", pinned)
    return None


def _unlisted(entry: ServerEntry) -> tuple[ToolState, ...]:
    """What is known of the tools of a server that has not listed any: the excluded names."""
    return tuple(
        ToolState(
            bare=bare,
            enabled=entry.allows(bare),
            wire_name=wire_name(entry.name, bare),
            verdict="excluded",
            reason=_excluded(entry, bare),
            pinned=bare in entry.pin,
        )
        for bare in dict.fromkeys(entry.exclude)
    )


def make_row(
    entry: ServerEntry, status: ServerStatus, profile: Profile, old: Row | None = None, sent: Sent = nothing_sent
) -> Row:
    """Everything about a server that does not depend on the others. Total: it never raises.

    Args:
        entry: as configured.
        status: what is known of it.
        profile: what its tools are judged for.
        old: its row before; what is the same in it is used again.
        sent: what was sent before, for tools that ``old`` does not know.
    """
    tools: tuple[Tool, ...] = ()
    extra: tuple[ToolState, ...] = ()
    alike = old if old is not None and old.entry is entry else None
    written = None if alike is None else alike.written
    known = (
        old is not None and old.stock.advertised is status.tools and (old.profile is profile or old.profile == profile)
    )
    try:
        written = _written(entry) if written is None else written
        facts = _facts(entry, status, written)
        if status.tools is None:
            extra = _unlisted(entry)
    except Exception as error:
        facts = _failed_facts(entry, error)
    if known and alike is not None and alike.stock.down == _down(facts):
        return Row(entry, status, profile, written, facts, alike.stock)
    try:
        if status.tools is not None:
            before = () if old is None else old.stock.tools
            tools = before if known else make_tools(entry.name, status.tools, profile, before, sent)
    except Exception as error:
        facts = _failed_facts(entry, error)
    down = _down(facts)
    try:
        pins = frozenset(entry.pin)
    except Exception:
        pins = frozenset()
    fixed = tuple(_fixed(entry, tool, down, tool.ref.bare in pins) for tool in tools)
    open_ = sorted((tool for tool, done in zip(tools, fixed, strict=True) if done is None), key=_BY_BARE)
    stock = Stock(
        advertised=status.tools,
        down=down,
        priority=_priority(entry),
        tools=tools,
        fixed=fixed,
        extra=extra,
        pins=pins,
        pinned=tuple(tool for tool in open_ if tool.ref.bare in pins),
        others=tuple(tool for tool in open_ if tool.ref.bare not in pins),
    )
    return Row(entry, status, profile, written, facts, stock)
