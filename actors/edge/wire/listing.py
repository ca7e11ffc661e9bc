"""A tool list, tolerantly: whatever a server gets wrong costs as little as possible.

Theory of operation. The SDK validates a page as a whole, so that one bad tool would cost the list, and it hands out one page
at a time. But it must see the list: it stamps the request for its era, and learns from the answer which arguments go into HTTP
headers. So the request is the session's own, and a `Tap` around the dispatcher looks at the raw page on its way up: tools that
would not validate are taken out, each with a problem line, and the rest is what the session, and we, believe.

    a page says            we
    another cursor         ask on, up to `MAX_PAGES`
    no cursor, or ``""``   are done
    a cursor seen before   stop with a problem line: it would go round for ever
    only names we have     the same
    more than `MAX_TOOLS`  take the first ones, and stop with a problem line

A page of many tools must not hold up the other servers: the tap hands it to the session in slices of `SLICE` tools, as if they
were pages, and lets others run between two of them. What the projection will want to know of each tool is then found out here
as well, a slice at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import trio
from attrs import define, field
from mcp.shared.dispatcher import CallOptions, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp_types import ListToolsResult, PaginatedRequestParams
from mcp_types import methods as sdk_methods
from pydantic import ValidationError

from ...model.status import ToolDef
from ...ports import Listing
from ...telemetry.calls import server_request
from ...telemetry.log import about, whom
from .noted import refused
from .wire import one_line

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

__all__ = ["MAX_PAGES", "MAX_PROBLEMS", "MAX_TOOLS", "SLICE", "Tap", "explain_validation", "list_all"]

MAX_PAGES = 1000
"""Pages asked for before a list is taken for endless."""


MAX_TOOLS = 10_000
"""Tools looked at of one server; those beyond are left out."""

MAX_PROBLEMS = 100
"""Problem lines of one list; of those beyond only the number is said."""

_NOTED = frozenset({"initialize", "server/discover", "tools/list"})
"""Requests of our own that are told as spans; a call is noted where it is made, and a ping is nothing to tell."""

SLICE = 100
"""Tools validated, converted and judged at a time, before others may run."""


@define
class _Page:
    """One page on its way through the tap, a slice at a time.

    Args:
        version: of the protocol.
        room: how many of its tools are looked at.
        tools: of the slice that was handed on last: what is kept of it.
        problems: what was wrong with that slice, or with the page.
        names: of the tools of all its slices.
        cursor: of the next page.
        frame: the page without its tools; None before it is here.
        rest: its tools that were not handed on yet.
        handed_on: how many were.
        cut: whether it had more tools than room.
    """

    version: str
    room: int = MAX_TOOLS
    tools: list[dict[str, Any]] = field(factory=list)
    problems: list[str] = field(factory=list)
    names: set[str] = field(factory=set)
    cursor: str | None = None
    frame: dict[str, Any] | None = None
    rest: list[Any] = field(factory=list)
    handed_on: int = 0
    cut: bool = False


_awaited: ContextVar[_Page | None] = ContextVar("the page this task waits for", default=None)


class Tap:
    """A dispatcher around another one: it sifts the pages of `list_all`, and tells when the inner one has ended.

    Args:
        inner: does the work.
        on_ended: called once, when ``run`` of the inner one is over.
        noted: called within a request that is noted, to say over which wire it goes.
    """

    def __init__(
        self, inner: Dispatcher[Any], on_ended: Callable[[], None], noted: Callable[[], None] = lambda: None
    ) -> None:
        self._inner = inner
        self._on_ended = on_ended
        self._noted = noted
        self._whom = whom()
        self.notify = inner.notify

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """As the inner one's; a page of tools that `list_all` waits for comes out sifted, and in slices."""
        page = _awaited.get() if method == "tools/list" else None
        if page is None:
            return await self._send(method, params, opts)
        if page.frame is None:
            raw = await self._send(method, params, opts)
            if not isinstance(raw.get("tools"), list):
                return raw  # no list of tools at all: the session's validation says so
            page.frame = _frame(raw, page)
        else:
            await trio.lowlevel.checkpoint()
        return _sift(page, page.frame)

    async def _send(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None) -> dict[str, Any]:
        with about(self._whom):  # the caller's task may be anybody's
            if method not in _NOTED:
                return await self._inner.send_raw_request(method, params, opts)
            with server_request(method, None if self._whom is None else self._whom.server):
                self._noted()
                try:
                    return await self._inner.send_raw_request(method, params, opts)
                except MCPError as error:
                    refused(error)
                    raise

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: Any = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """As the inner one's."""
        try:
            await self._inner.run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self._on_ended()


async def list_all(session: ClientSession, known: Iterable[ToolDef] = ()) -> Listing:
    """Ask for all pages of the tool list.

    Args:
        session: initialised, over a `Tap`.
        known: the tools listed before; one that is advertised again as it was is the same object.

    Returns:
        Every tool that can be understood, in the order advertised, each name once; and what was left out.

    Raises:
        MCPError: the server refused a page, or the connection is lost.
        ValidationError: a page is no list of tools at all.
    """
    tools: dict[str, ToolDef] = {}
    old = {tool.bare: tool for tool in known}
    problems: list[str] = []
    stopped: str | None = None
    cursors: set[str] = set()
    cursor: str | None = None
    room = MAX_TOOLS
    for number in range(1, MAX_PAGES + 1):
        page = _Page(session.protocol_version or "2025-11-25", room)
        before = len(tools)
        await _take_page(session, cursor, page, tools, old, problems)
        room -= page.handed_on
        cursor = page.cursor
        if page.cut or (cursor and not room):
            stopped = f"the tool list has more than {MAX_TOOLS} tools; those beyond are left out"
            break
        if not cursor:
            break
        if cursor in cursors:
            stopped = f"page {number} of the tool list leads back to an earlier one; stopped there"
            break
        if page.names and len(tools) == before:
            stopped = f"page {number} of the tool list has only tools of earlier pages; stopped there"
            break
        cursors.add(cursor)
    else:
        stopped = f"the tool list has more than {MAX_PAGES} pages; stopped there"
    if len(problems) > MAX_PROBLEMS:
        problems[MAX_PROBLEMS:] = [f"and {len(problems) - MAX_PROBLEMS} more faults of tools"]
    if stopped is not None:
        problems.append(stopped)
    return Listing(tuple(tools.values()), tuple(problems))


async def _take_page(
    session: ClientSession,
    cursor: str | None,
    page: _Page,
    tools: dict[str, ToolDef],
    old: Mapping[str, ToolDef],
    problems: list[str],
) -> None:
    """Ask for one page, and add its new tools and its problems."""
    token = _awaited.set(page)
    try:
        while True:
            await _ask(session, cursor, page)
            _take(page, tools, old, problems)
            if len(tools) > SLICE:
                await trio.lowlevel.checkpoint()
            if not page.rest:
                break
            cursor = _REST
    finally:
        _awaited.reset(token)


_REST = "the rest of this page"  # never sent: the tap answers it


async def _ask(session: ClientSession, cursor: str | None, page: _Page) -> None:
    result = await session.list_tools(params=None if cursor is None else PaginatedRequestParams(cursor=cursor))
    kept = {tool.name for tool in result.tools}
    for tool in page.tools:
        if tool["name"] not in kept:
            page.problems.append(f"tool {tool['name']!r} left out: its x-mcp-header annotations are invalid")
    page.tools = [tool for tool in page.tools if tool["name"] in kept]


def _take(page: _Page, tools: dict[str, ToolDef], old: Mapping[str, ToolDef], problems: list[str]) -> None:
    """Add the new tools of a slice, and its problems."""
    problems += page.problems
    for raw in page.tools:
        name = raw["name"]
        if name in page.names:
            problems.append(f"tool {name!r} is listed twice; the first one counts")
        page.names.add(name)
        if name in tools:
            continue
        try:
            made = _tool_def(raw)
            before = old.get(name)
            tools[name] = before if before is not None and before == made else made
        except RecursionError:
            problems.append(f"tool {name!r} left out: its schema is nested too deeply")


def _tool_def(raw: dict[str, Any]) -> ToolDef:
    schema = raw.get("inputSchema")
    return ToolDef(
        raw["name"],
        title=raw.get("title"),
        description=raw.get("description"),
        input_schema={} if schema is None else schema,  # none is one that says nothing
        output_schema=raw.get("outputSchema"),
        annotations=raw.get("annotations"),
    )


def _frame(raw: dict[str, Any], page: _Page) -> dict[str, Any]:
    """A raw page without its tools, which go to ``page.rest``; mended where it would make the whole of it invalid."""
    listed = raw["tools"]
    page.rest, page.cut = listed[: page.room], len(listed) > page.room
    frame = {**raw, "tools": []}
    cursor = raw.get("nextCursor")
    if cursor is not None and not isinstance(cursor, str):
        page.problems.append(
            f"the tool list goes on at a cursor that is no string ({one_line(repr(cursor), 60)}); stopped there"
        )
        cursor = None
    page.cursor = cursor
    if cursor is None:
        frame.pop("nextCursor", None)
    if (complaint := _complaint(frame, page.version)) is not None:
        # The page's frame is wrong, though its tools may be right: give it the frame the protocol wants.
        page.problems.append(f"the tool list is framed wrongly ({complaint})")
        frame = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        if cursor is not None:
            frame["nextCursor"] = cursor
    return frame


def _sift(page: _Page, frame: dict[str, Any]) -> dict[str, Any]:
    """The next slice of a page, without what would make the whole of it invalid."""
    if page.handed_on:
        page.problems = []
    listed, page.rest = page.rest[:SLICE], page.rest[SLICE:]
    if page.rest:
        frame = {**frame, "nextCursor": _REST}  # else the session took the first slice for a complete list
    if _complaint({**frame, "tools": listed}, page.version) is None:
        page.tools = sent = listed
    else:
        page.tools, sent = [], []
        for position, tool in enumerate(listed, page.handed_on):
            complaint, passed = _passable(tool, frame, page.version)
            if complaint is None:
                page.tools.append(tool)
                sent.append(passed)
            else:
                name = tool.get("name") if isinstance(tool, dict) else None
                which = f"tool {name!r}" if isinstance(name, str) else f"the tool at position {position}"
                page.problems.append(f"{one_line(which, 100)} left out: {complaint}")
    page.handed_on += len(listed)
    return {**frame, "tools": sent}


def _passable(tool: Any, frame: dict[str, Any], version: str) -> tuple[str | None, Any]:
    """Why a tool cannot be listed, or None; and what of it the session is given, which need not be all we keep.

    Whether a schema can be used, and mended, is for the projection to judge, which shows the tool in either case; and many
    servers leave out even its type. So one that the protocol does not allow passes behind the nearest that it does.
    """
    first = _complaint({**frame, "tools": [tool]}, version)
    if first is None or first == _TOO_DEEP or not isinstance(tool, dict):
        return first, tool
    schema = tool.get("inputSchema")
    for stand_in in ({**schema, "type": "object"} if isinstance(schema, dict) else None, {"type": "object"}):
        passed = {**tool, "inputSchema": stand_in}
        if stand_in is not None and _complaint({**frame, "tools": [passed]}, version) is None:
            return None, passed
    return first, tool


_TOO_DEEP = "nested too deeply"


def _complaint(raw: dict[str, Any], version: str) -> str | None:
    """Why the SDK would refuse a page, in one line, or None."""
    try:
        sdk_methods.validate_server_result("tools/list", version, raw)
        ListToolsResult.model_validate(raw, by_name=False)
    except ValidationError as error:
        return explain_validation(error)
    except (ValueError, RecursionError):  # a serializer's limit on depth
        return _TOO_DEEP
    return None


def explain_validation(error: ValidationError) -> str:
    """The first complaint of a validation, in one line: where, and what."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return one_line(f"{where}: {first['msg']}" if where else first["msg"], 200)
