"""Rows of a snapshot: a pure function, and lazy, so that a list of 10,000 tools costs what is looked at.

What depends on one server alone is made once per `ServerState` (`sections.Section`). The rest of a row, such as its verdict in
words, or the seconds until a retry, is made when the row is asked for. So a snapshot in which one server changed costs that
server, and a tick costs nothing until somebody looks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import overload

from attrs import define, field

from ..model.plain import flat, label
from ..model.snapshot import Snapshot
from ..model.why import restarted
from .sections import Memo, Section
from .values import EmptyRow, HeaderRow, Identity, NoticeRow, Operation, Row, ServerRow, ToolRow
from .wishes import Wishes
from .words import (
    LABELS,
    TONES,
    count_of,
    description_of,
    empty_of,
    error_of,
    notices,
    plural,
    state_of,
    title_of,
    tool_words,
    wanted,
)

__all__ = ["Memo", "Rows", "rows"]


@define(eq=False)
class _Part:
    """A section as it is shown: its head, and the tools that match, or a row that says there are none."""

    section: Section
    picked: Sequence[int]

    def __len__(self) -> int:
        return 1 + max(1, len(self.picked))


@define(eq=False)
class Rows(Sequence[Row]):
    """Rows in the order shown: header, notices, then a section per server. A row is made when it is asked for.

    Args:
        top: how many rows at the head the cursor never goes to (header and notices): a view may keep them in sight.
    """

    _snapshot: Snapshot
    _now: float | None
    _sections: list[Section]
    _wishes: Wishes
    _words: tuple[str, ...]
    _notices: Sequence[NoticeRow]
    _parts: list[_Part] = field(init=False)
    _by_name: dict[str, int] = field(init=False)
    _starts: list[int] = field(init=False)
    _made: dict[int, Row] = field(init=False, factory=dict)
    top: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.top = 1 + len(self._notices)
        self._parts = []
        for section in self._sections:
            picked = section.matching(self._words)
            if picked or section.named(self._words):
                self._parts.append(_Part(section, picked))
        self._by_name = {part.section.server.name: at for at, part in enumerate(self._parts)}
        self._starts = list(accumulate(map(len, self._parts), initial=self.top))

    def __len__(self) -> int:
        return self._starts[-1] if self._parts else self.top + 1

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        if isinstance(at, slice):
            return [self[each] for each in range(len(self))[at]]
        at = range(len(self))[at]
        row = self._made.get(at)
        if row is None:
            row = self._made[at] = self._make(at)
        return row

    def identity(self, at: int) -> Identity:
        """The identity of a row, without making the row.

        Raises:
            IndexError: there is no such row.
        """
        at = range(len(self))[at]
        if at < self.top:
            return self._notices[at - 1].identity if at else ("header",)
        if not self._parts:
            return ("no-match",) if self._sections else ("no-servers",)
        part, below = self._place(at)
        server = part.section.server
        if below < 0:
            return ("server", server.name)
        if not part.picked:
            return ("empty", server.name)
        return ("tool", server.name, part.section.tools[part.picked[below]].bare)

    def find(self, identity: Identity) -> int | None:
        """Where the row of that identity is, or None."""
        match identity:
            case ("server", name):
                at = self._by_name.get(name)
                return None if at is None else self._starts[at]
            case ("empty", name):
                at = self._by_name.get(name)
                return None if at is None or self._parts[at].picked else self._starts[at] + 1
            case ("tool", name, bare):
                at = self._by_name.get(name)
                where = None if at is None else self._parts[at].section.position.get(bare)
                if at is None or where is None:
                    return None
                picked = self._parts[at].picked
                below = where if isinstance(picked, range) else bisect_left(picked, where)
                return self._starts[at] + 1 + below if below < len(picked) and picked[below] == where else None
        others: list[int] = [*range(self.top), len(self) - 1]
        for place in others:
            if self.identity(place) == identity:
                return place
        return None

    def heads(self) -> Sequence[int]:
        """Where the heads of the sections are."""
        return self._starts[:-1]

    def _place(self, at: int) -> tuple[_Part, int]:
        part = bisect_right(self._starts, at) - 1
        return self._parts[part], at - self._starts[part] - 1

    def _make(self, at: int) -> Row:
        if at < self.top:
            return self._notices[at - 1] if at else self._header()
        if not self._parts:
            if self._sections:
                return EmptyRow(identity=("no-match",), text="nothing matches the filter — esc clears it")
            return EmptyRow(identity=("no-servers",), text="no servers are configured — press a to add one")
        part, below = self._place(at)
        if below < 0:
            return self._server(part.section)
        if not part.picked:
            return EmptyRow(identity=self.identity(at), text=empty_of(part.section.server))
        return self._tool(part.section, part.picked[below])

    def _header(self) -> HeaderRow:
        model = self._snapshot.model
        ready = sum(server.phase == "ready" for server in model.servers)
        tools = sum(len(section.tools) for section in self._sections)
        on_wire = sum(section.on_wire for section in self._sections)
        busy = self._wishes.busy
        servers = len(model.servers)
        parts = [
            f"{on_wire} of {plural(tools, 'tool')} on the wire",
            f"{ready} of {plural(servers, 'server')} ready",
            f"{busy} under way" if busy else "",
            f"{plural(model.native_count, 'native tool')}" if model.native_count else "",
            "" if model.budget is None else f"budget {model.budget}",
            f"profile {label(model.profile)}",
        ]
        return HeaderRow(
            servers=servers,
            ready=ready,
            tools=tools,
            on_wire=on_wire,
            native=model.native_count,
            budget=model.budget,
            profile=label(model.profile),
            busy=busy,
            parts=tuple(part for part in parts if part),
        )

    def _server(self, section: Section) -> ServerRow:
        server = section.server
        error = error_of(server)
        return ServerRow(
            identity=("server", server.name),
            name=section.name,
            phase=server.phase,
            tone="bad" if server.phase == "ready" and error else TONES[server.phase],
            check=self._wishes.server_check(server.name, wanted(server)),
            state=state_of(server, self._now),
            count=count_of(server, section.on_wire, len(section.tools)),
            error=error,
            source=None if server.source is None else flat(server.source),
            pending=self._wishes.doing.get(server.name),
            remote=None if server.url is None else flat(f"{server.kind} {server.url}"),
            restarted=None if server.phase in ("backing_off", "starting") else restarted(server, self._now),
        )

    def _tool(self, section: Section, at: int) -> ToolRow:
        name, tool = section.server.name, section.tools[at]
        return ToolRow(
            identity=("tool", name, tool.bare),
            name=label(tool.bare),
            title=title_of(tool),
            description=description_of(tool),
            check=self._wishes.tool_check(name, tool.bare, tool.enabled),
            verdict=tool.verdict,
            label=LABELS[tool.verdict],
            words=tool_words(self._snapshot, name, tool.bare, self._now),
            pinned=self._wishes.pin(name, tool.bare, tool.pinned),
            pending=self._wishes.count.get((name, tool.bare), 0),
        )


def rows(
    snapshot: Snapshot,
    now: float | None = None,
    *,
    matching: str = "",
    flights: Sequence[Operation] = (),
    memo: Memo | None = None,
) -> Rows:
    """The rows of a snapshot.

    Args:
        snapshot: what to show.
        now: the clock that the snapshot's times are of (trio's), in seconds; None: no such time is told.
        matching: show only tools that have each of these words, parted by white space, in their server's name, their name,
            title, wire name or description, in whatever case; with the heads of their sections. Empty: all.
        flights: operations under way, the oldest first: their wishes are shown as pending.
        memo: what is kept from one call to the next, to be fast; it changes nothing that comes out.

    Returns:
        Header, notices, and a section per server: its head, then its tools, or a row that says there are none. Never
        without a row that the cursor can be on.
    """
    memo = Memo() if memo is None else memo
    words = tuple(matching.casefold().split())
    model = snapshot.model
    told: list[NoticeRow] | None = memo.last((model,))
    if told is None:
        told = list(notices(model))
        memo.keep((model,), told)
    return Rows(snapshot, now, memo.sections(model), Wishes(flights), words, told)
