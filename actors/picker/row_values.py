"""The rows of the picker, as values: all frozen, all plain."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from ..model.snapshot import Phase, Verdict

__all__ = ["Check", "EmptyRow", "HeaderRow", "Identity", "NoticeRow", "Row", "ServerRow", "Tone", "ToolRow"]

Identity = tuple[str, ...]
"""What a row is of, whatever else changes: ``("header",)``, ``("config-error",)``, ``("warning", what)``, ``("server", name)``,
``("tool", server, bare)``, ``("empty", server)``, ``("no-servers",)``, ``("no-match",)``. Names in it are raw."""

Check = Literal["on", "off", "pending-on", "pending-off"]
"""A checkbox: what the config says, or the last wish while it is under way."""

Tone = Literal["good", "busy", "ask", "bad", "off"]
"""How it is with a server, for a colour: well, under way, waiting for a person, in trouble, not meant to run."""


@frozen(kw_only=True)
class HeaderRow:
    """The line above everything: how many there are of what.

    Args:
        identity: ``("header",)``.
        servers, ready: configured servers, and those of them that are ready.
        tools, on_wire: MCP tools known, and those of them that are on the wire.
        native: native tools, which always ship.
        budget: the cap on tools in force, or None.
        profile: what the catalog is made for.
        busy: operations under way.
        parts: the same in words, the most important first; a narrow screen shows the first ones.
    """

    identity: Identity = ("header",)
    servers: int
    ready: int
    tools: int
    on_wire: int
    native: int
    budget: int | None
    profile: str
    busy: int
    parts: tuple[str, ...]


@frozen(kw_only=True)
class NoticeRow:
    """A warning, or an error of the config.

    Args:
        identity: ``("config-error",)``, ``("warning", "budget")``, ``("warning", "limit")``, ``("warning", "config", n)``.
        kind: ``error`` or ``warning``.
        text: what it says.
        more: a second line, or None.
    """

    identity: Identity
    kind: Literal["error", "warning"]
    text: str
    more: str | None = None


@frozen(kw_only=True)
class ServerRow:
    """The head of a server's section.

    Args:
        identity: ``("server", name)``.
        name: as it can be shown; the raw one is in the identity.
        phase: as in the model; also the name of the glyph.
        tone: for a colour.
        check: whether it is meant to run.
        state: how it is in few words: ``ready``, ``retry in 12 s (4th of 5)``, ``parked``, ``needs login``, …
        count: ``X of Y tools on the wire``, ``no tools``; None while it has not listed.
        error: why it is not connected, or why its newest listing failed; or None.
        restarted: how often it was restarted, and when last; None when it was not, or its state says so.
        remote: of a remote server its kind and its URL, without secrets; None of others.
        source: the file that its entry is from, or None.
        pending: what is under way with it (``removing``, ``restarting``, …), or None.
    """

    identity: Identity
    name: str
    phase: Phase
    tone: Tone
    check: Check
    state: str
    count: str | None
    error: str | None
    source: str | None
    pending: str | None
    restarted: str | None = None
    remote: str | None = None


@frozen(kw_only=True)
class ToolRow:
    """One tool.

    Args:
        identity: ``("tool", server, bare)``.
        name: the bare name, as it can be shown.
        title: as its server titles it; None when it gives none, or the name again.
        description: the first line of it, or the empty string.
        check: whether the config's lists let it through.
        verdict: as in the model.
        label: the verdict in one or two words, for a narrow column: ``on the wire``, ``excluded``, ``over budget``, …
        words: the verdict in the words of `why`, less what the row says anyhow.
        pinned: the budget trims it last.
        pending: operations on it that are under way.
    """

    identity: Identity
    name: str
    title: str | None
    description: str
    check: Check
    verdict: Verdict
    label: str
    words: str
    pinned: bool
    pending: int


@frozen(kw_only=True)
class EmptyRow:
    """Where there would be rows: a server without tools, or that has not listed yet; no servers; nothing that matches.

    Args:
        identity: ``("empty", server)``, ``("no-servers",)`` or ``("no-match",)``.
        text: which it is.
    """

    identity: Identity
    text: str


Row = HeaderRow | NoticeRow | ServerRow | ToolRow | EmptyRow
