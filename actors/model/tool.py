"""One advertised tool on its way into the model: judged, named, encoded, hashed, each by itself.

What a tool's definition makes raise quarantines that tool alone. A tool is recognised by identity, or by the hash of its
JSON, and never by ``==``: for Python ``1 == True``, but they are other bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from attrs import define, field

from .frozen import FrozenDict
from .mask import mask_text
from .naming import wire_name
from .schema import canonical, judge
from .snapshot import ToolRef, ToolState, Verdict, WireTool
from .status import ToolDef

__all__ = ["Tool", "encode", "make_tools", "one_line", "prepare"]

_NO_SCHEMA = FrozenDict()
_STATES_KEPT = 8  # verdicts a tool remembers


def encode(tool: WireTool) -> bytes:
    """The hash of one tool as it is sent: equal if and only if its canonical JSON is.

    Raises:
        ValueError, TypeError, RecursionError: see `canonical`.
    """
    parts = [tool.wire_name, tool.server, tool.bare, tool.title, tool.description, tool.input_schema]
    return sha256(canonical(parts)).digest()


@define(eq=False)
class Tool:
    """One advertised tool: judged, named, and hashed.

    Args:
        source: the definition it was made from; held, because it is recognised by identity.
        wire: what is sent, also when it is not sent; of a flawed tool only what is safe to show.
        flaw: why it is quarantined, or None.
        digest: 32 bytes, see `encode`; empty when flawed.
        ref: where it comes from.
    """

    source: ToolDef
    wire: WireTool
    flaw: str | None
    digest: bytes
    ref: ToolRef
    _states: dict[tuple[bool, Verdict, str | None], ToolState] = field(init=False, factory=dict)

    def state(self, enabled: bool, verdict: Verdict, reason: str | None) -> ToolState:
        """The tool as the model shows it; the same object for the same answer."""
        key = (enabled, verdict, reason)
        found = self._states.get(key)
        if found is None:
            wire = self.wire
            found = ToolState(
                bare=wire.bare,
                enabled=enabled,
                title=wire.title,
                description=wire.description,
                input_schema=wire.input_schema,
                wire_name=wire.wire_name,
                verdict=verdict,
                reason=reason,
            )
            if len(self._states) >= _STATES_KEPT:
                self._states.clear()
            self._states[key] = found
        return found


def _flawed(server: str, bare: str, source: ToolDef, flaw: str) -> Tool:
    """A quarantined tool, showing of its definition what can be shown."""

    def text(name: str) -> str | None:
        try:
            value = getattr(source, name)
            value.encode("utf-8")
        except Exception:
            return None
        return value if type(value) is str else None

    schema = _NO_SCHEMA
    try:
        if isinstance(source.input_schema, FrozenDict) and judge(ToolDef(bare, input_schema=_typed(source))) is None:
            schema = source.input_schema
    except Exception:
        schema = _NO_SCHEMA
    name = wire_name(server, bare)
    wire = WireTool(
        wire_name=name,
        server=server,
        bare=bare,
        title=text("title"),
        description=text("description"),
        input_schema=schema,
    )
    return Tool(source, wire, flaw, b"", ToolRef(server, bare))


def _typed(source: ToolDef) -> FrozenDict:
    """Its schema with the root forced to be an object's, to ask whether the rest of it is JSON."""
    return FrozenDict({**source.input_schema, "type": "object"})


def prepare(server: str, source: ToolDef) -> None:
    """Judge and hash a definition before the projection asks for it; for who can let others run between two of them.

    Args:
        server: the name of the server.
        source: the definition, which keeps what was made of it. Never raises, and changes no result.
    """
    bare = _bare(source)
    if bare is not None:
        object.__setattr__(source, "prepared_memo", _make_tool(server, bare, source))


def _prepared(server: str, bare: str, source: ToolDef) -> Tool:
    made = getattr(source, "prepared_memo", None)
    if isinstance(made, Tool) and made.source is source and made.wire.server == server:
        return made
    return _make_tool(server, bare, source)


def _make_tool(server: str, bare: str, source: ToolDef) -> Tool:
    try:
        flaw = judge(source)
        if flaw is not None:
            return _flawed(server, bare, source, flaw)
        wire = WireTool(
            wire_name=wire_name(server, bare),
            server=server,
            bare=bare,
            title=source.title,
            description=source.description,
            input_schema=source.input_schema,
        )
        digest = encode(wire)
    except Exception as error:
        return _flawed(server, bare, source, f"its definition cannot be used: {one_line(error)}")
    return Tool(source, wire, None, digest, ToolRef(server, bare))


def _same_or(tool: Tool, old: Tool | None) -> Tool:
    if old is not None and tool.digest and old.digest == tool.digest:
        # Advertised again, byte for byte: keep the objects, and with them the order in which a reader sees the keys.
        return Tool(tool.source, old.wire, None, tool.digest, old.ref)
    return tool


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


def make_tools(server: str, advertised: Iterable[ToolDef], old: tuple[Tool, ...] = ()) -> tuple[Tool, ...]:
    """Judge, name and hash a server's tools, each by itself.

    Args:
        server: the name of the server.
        advertised: its list.
        old: what was made of its list before; what is the same is used again.

    Returns:
        In the order advertised; of tools with one name the first.
    """
    known = {id(tool.source): tool for tool in old}
    named = {tool.wire.bare: tool for tool in old}
    made: dict[str, Tool] = {}
    for place, source in enumerate(advertised, 1):
        tool = known.get(id(source))
        if tool is None:
            bare = _bare(source)
            if bare is None:
                tool = _flawed(server, f"(tool {place})", source, "it has no name that is text")
            else:
                tool = _same_or(_prepared(server, bare, source), named.get(bare))
        made.setdefault(tool.wire.bare, tool)  # a name advertised twice is one tool: the first
    return tuple(made.values())
