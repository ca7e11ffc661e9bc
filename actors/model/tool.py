"""One advertised tool on its way into the model: judged, named, encoded, hashed, each by itself.

What a tool's definition makes raise quarantines that tool alone. A tool is recognised by identity, or by the hash of its
JSON, and never by ``==``: for Python ``1 == True``, but they are other bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from attrs import define, field

from .budget import same_count, token_cost
from .frozen import FrozenDict
from .mask import mask_text
from .naming import wire_name
from .profile import Profile
from .schema.fit import Fit, Flaw, fit
from .schema.sound import canonical
from .snapshot import ToolState, Verdict
from .status import ToolDef
from .wire import ToolRef, WireTool

__all__ = ["Sent", "Tool", "encode", "make_tools", "nothing_sent", "one_line", "prepare"]

Sent = Callable[[str], WireTool | None]
"""From a wire name to the tool of that name in the catalog before, made for the same profile."""

_NO_SCHEMA = FrozenDict()
_STATES_KEPT = 16  # verdicts a tool remembers
_COUNTS_KEPT = 16  # tokenizers whose count a tool remembers
_PROFILES_KEPT = 16  # profiles a definition remembers what it is for


def encode(tool: WireTool) -> bytes:
    """The hash of one tool as it is sent: equal if and only if its canonical JSON is.

    Raises:
        ValueError, TypeError, RecursionError: see `canonical`.
    """
    parts = [tool.wire_name, tool.server, tool.bare, tool.title, tool.description, tool.input_schema]
    return sha256(canonical(parts)).digest()


@define(eq=False)
class Tool:
    """One advertised tool: judged for a profile, named, and hashed.

    Args:
        source: the definition it was made from; held, because it is recognised by identity.
        profile: what it was judged for.
        wire: what is sent, also when it is not sent; of a flawed tool only what is safe to show.
        shown: its schema as the model shows it: as advertised, or empty when that is no JSON.
        flaw: why it is quarantined, or None.
        changes: what was mended, one line each.
        digest: 32 bytes, see `encode`; empty when flawed.
        ref: where it comes from.
    """

    source: ToolDef
    profile: Profile
    wire: WireTool
    shown: FrozenDict
    flaw: Flaw | None
    changes: tuple[str, ...]
    digest: bytes
    ref: ToolRef
    _states: dict[tuple[bool, Verdict, str | None, bool], ToolState] = field(init=False, factory=dict)
    _costs: list[tuple[Callable[[str], int] | None, int]] = field(init=False, factory=list)

    def cost(self, count: Callable[[str], int] | None) -> int:
        """Its tokens (`token_cost`), counted once with each tokenizer."""
        for counter, cost in self._costs:
            if same_count(counter, count):
                return cost
        cost = token_cost(self.wire, count)
        if len(self._costs) >= _COUNTS_KEPT:
            del self._costs[0]
        self._costs.append((count, cost))
        return cost

    def state(self, enabled: bool, verdict: Verdict, reason: str | None, pinned: bool = False) -> ToolState:
        """The tool as the model shows it; the same object for the same answer."""
        key = (enabled, verdict, reason, pinned)
        found = self._states.get(key)
        if found is None:
            wire = self.wire
            flaw = self.flaw if verdict == "quarantined" else None
            found = ToolState(
                bare=wire.bare,
                enabled=enabled,
                title=wire.title,
                description=_text(self.source, "description"),
                input_schema=self.shown,
                wire_name=wire.wire_name,
                verdict=verdict,
                reason=reason,
                rule=None if flaw is None else flaw.rule,
                path=None if flaw is None else flaw.path,
                mended=self.changes,
                pinned=pinned,
                **_unsent(self.source),
            )
            if len(self._states) >= _STATES_KEPT:
                self._states.clear()
            self._states[key] = found
        return found


def _unsent(source: ToolDef) -> dict[str, Any]:
    """What a definition says that only readers of the model see; nothing of it when it is broken."""
    try:
        return {
            "output_schema": source.output_schema,
            "annotations": source.annotations,
            "icons": source.icons,
            "meta": source.meta,
        }
    except Exception:
        return {}


def _text(source: ToolDef, name: str) -> str | None:
    """A text of a definition, or None when it is none that can be shown."""
    try:
        value = getattr(source, name)
        value.encode("utf-8")
    except Exception:
        return None
    return value if type(value) is str else None


def _flawed(server: str, bare: str, source: ToolDef, profile: Profile, flaw: Flaw, shown: FrozenDict) -> Tool:
    """A quarantined tool, showing of its definition what can be shown."""
    wire = WireTool(
        wire_name=wire_name(server, bare),
        server=server,
        bare=bare,
        title=_text(source, "title"),
        description=_text(source, "description"),
        input_schema=shown,
    )
    return Tool(source, profile, wire, shown, flaw, (), b"", ToolRef(server, bare))


def prepare(server: str, source: ToolDef, profile: Profile) -> Tool | None:
    """Judge and hash a definition before the projection asks for it; for who can let others run between two of them.

    Args:
        server: the name of the server.
        source: the definition, which keeps what was made of it. Never raises, and changes no result.
        profile: what it is to be judged for.

    Returns:
        What was made of it; None when it has no name.
    """
    bare = _bare(source)
    if bare is None:
        return None
    tool = _prepared(server, bare, source, profile)
    if tool.flaw is None:
        tool.state(True, "on_wire", None)  # what it most likely comes to
    return tool


def _prepared(server: str, bare: str, source: ToolDef, profile: Profile) -> Tool:
    """What a definition is for a profile; made once, and kept in the definition, so that views share it."""
    try:
        memo = source.prepared_memo
        made = memo.get(profile)
        if isinstance(made, Tool) and made.source is source and made.wire.server == server:
            return made
    except Exception:
        return _make_tool(server, bare, source, profile)
    made = _make_tool(server, bare, source, profile)
    if len(memo) >= _PROFILES_KEPT:
        del memo[next(iter(memo))]
    memo[profile] = made
    return made


def _make_tool(server: str, bare: str, source: ToolDef, profile: Profile) -> Tool:
    shown = _NO_SCHEMA
    try:
        name = wire_name(server, bare)
        found: Fit = fit(source, name, profile)
        shown = found.shown
        if found.flaw is not None:
            return _flawed(server, bare, source, profile, found.flaw, shown)
        wire = WireTool(
            wire_name=name,
            server=server,
            bare=bare,
            title=source.title,
            description=found.description,
            input_schema=found.input_schema,
        )
        digest = encode(wire)
    except Exception as error:
        flaw = Flaw("unusable", "", f"its definition cannot be used: {one_line(error)}")
        return _flawed(server, bare, source, profile, flaw, shown)
    return Tool(source, profile, wire, shown, None, found.changes, digest, ToolRef(server, bare))


def _same_or(tool: Tool, old: Tool | None, sent: Sent) -> Tool:
    """The tool with the objects that were sent before, if they are the same JSON.

    So a reader goes on seeing the keys in the same order, and a provider the same bytes, whatever order they come in.
    """
    if not tool.digest:
        return tool
    if old is not None and old.profile == tool.profile:
        if old.digest != tool.digest:
            return tool
        again = Tool(tool.source, tool.profile, old.wire, tool.shown, None, tool.changes, tool.digest, old.ref)
        again._costs = old._costs  # of the same text
        return again
    wire = sent(tool.wire.wire_name)
    if wire is None or wire is tool.wire or wire.server is None or encode(wire) != tool.digest:
        return tool
    return Tool(tool.source, tool.profile, wire, tool.shown, None, tool.changes, tool.digest, tool.ref)


def nothing_sent(wire_name: str) -> None:
    """As `Sent`, where there was no catalog before."""


def one_line(error: BaseException) -> str:
    """An exception in one line, secrets masked."""
    try:
        text = mask_text(" ".join(str(error).split()))[:200]
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _bare(source: ToolDef) -> str | None:
    try:
        bare = source.bare
    except Exception:
        return None
    return bare if type(bare) is str else None


def make_tools(
    server: str,
    advertised: Iterable[ToolDef],
    profile: Profile,
    old: tuple[Tool, ...] = (),
    sent: Sent = nothing_sent,
) -> tuple[Tool, ...]:
    """Judge, name and hash a server's tools, each by itself.

    Args:
        server: the name of the server.
        advertised: its list.
        profile: what they are judged for.
        old: what was made of its list before; what is the same is used again.
        sent: asked for what is not in ``old``.

    Returns:
        In the order advertised; of tools with one name the first.
    """
    known = {id(tool.source): tool for tool in old if tool.profile == profile}
    named = {tool.wire.bare: tool for tool in old}
    made: dict[str, Tool] = {}
    for place, source in enumerate(advertised, 1):
        tool = known.get(id(source))
        if tool is None:
            bare = _bare(source)
            if bare is None:
                flaw = Flaw("nameless", "name", "it has no name that is text")
                tool = _flawed(server, f"(tool {place})", source, profile, flaw, _NO_SCHEMA)
            else:
                tool = _same_or(_prepared(server, bare, source, profile), named.get(bare), sent)
        made.setdefault(tool.wire.bare, tool)  # a name advertised twice is one tool: the first
    return tuple(made.values())
