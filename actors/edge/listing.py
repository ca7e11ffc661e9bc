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
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import trio
from attrs import define, field
from mcp.shared.dispatcher import CallOptions, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest
from mcp_types import ListToolsResult, PaginatedRequestParams
from mcp_types import methods as sdk_methods
from pydantic import ValidationError

from ..model.status import ToolDef
from ..ports import Listing
from .wire import one_line

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

__all__ = ["MAX_PAGES", "Tap", "list_all"]

MAX_PAGES = 1000
"""Pages asked for before a list is taken for endless."""


@define
class _Page:
    """One page as it passes the tap: what is kept of it, and what was wrong with it."""

    version: str
    tools: list[dict[str, Any]] = field(factory=list)
    problems: list[str] = field(factory=list)
    cursor: str | None = None


_awaited: ContextVar[_Page | None] = ContextVar("the page this task waits for", default=None)


class Tap:
    """A dispatcher around another one: it sifts the pages of `list_all`, and tells when the inner one has ended.

    Args:
        inner: does the work.
        on_ended: called once, when ``run`` of the inner one is over.
    """

    def __init__(self, inner: Dispatcher[Any], on_ended: Callable[[], None]) -> None:
        self._inner = inner
        self._on_ended = on_ended
        self.notify = inner.notify

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """As the inner one's; a page of tools that `list_all` waits for comes out sifted."""
        raw = await self._inner.send_raw_request(method, params, opts)
        if method == "tools/list" and (page := _awaited.get()) is not None:
            return _sift(raw, page)
        return raw

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


async def list_all(session: ClientSession) -> Listing:
    """Ask for all pages of the tool list.

    Args:
        session: initialised, over a `Tap`.

    Returns:
        Every tool that can be understood, in the order advertised, each name once; and what was left out.

    Raises:
        MCPError: the server refused a page, or the connection is lost.
        ValidationError: a page is no list of tools at all.
    """
    tools: dict[str, ToolDef] = {}
    problems: list[str] = []
    cursors: set[str] = set()
    cursor: str | None = None
    for number in range(1, MAX_PAGES + 1):
        page = await _ask(session, cursor)
        new = _take(page, tools, problems)
        cursor = page.cursor
        if not cursor:
            break
        if cursor in cursors:
            problems.append(f"page {number} of the tool list leads back to an earlier one; stopped there")
            break
        if page.tools and not new:
            problems.append(f"page {number} of the tool list has only tools of earlier pages; stopped there")
            break
        cursors.add(cursor)
    else:
        problems.append(f"the tool list has more than {MAX_PAGES} pages; stopped there")
    return Listing(tuple(tools.values()), tuple(problems))


async def _ask(session: ClientSession, cursor: str | None) -> _Page:
    page = _Page(session.protocol_version or "2025-11-25")
    token = _awaited.set(page)
    try:
        result = await session.list_tools(params=None if cursor is None else PaginatedRequestParams(cursor=cursor))
    finally:
        _awaited.reset(token)
    kept = {tool.name for tool in result.tools}
    for tool in page.tools:
        if tool["name"] not in kept:
            page.problems.append(f"tool {tool['name']!r} left out: its x-mcp-header annotations are invalid")
    page.tools = [tool for tool in page.tools if tool["name"] in kept]
    return page


def _take(page: _Page, tools: dict[str, ToolDef], problems: list[str]) -> bool:
    """Add the new tools of a page; returns whether there were any."""
    new = False
    problems += page.problems
    seen: set[str] = set()
    for raw in page.tools:
        name = raw["name"]
        if name in seen:
            problems.append(f"tool {name!r} is listed twice; the first one counts")
        seen.add(name)
        if name in tools:
            continue
        try:
            tools[name] = _tool_def(raw)
        except RecursionError:
            problems.append(f"tool {name!r} left out: its schema is nested too deeply")
            continue
        new = True
    return new


def _tool_def(raw: dict[str, Any]) -> ToolDef:
    return ToolDef(
        raw["name"],
        title=raw.get("title"),
        description=raw.get("description"),
        input_schema=raw["inputSchema"],
        output_schema=raw.get("outputSchema"),
        annotations=raw.get("annotations"),
    )


def _sift(raw: dict[str, Any], page: _Page) -> dict[str, Any]:
    """Take out of a raw page what would make the whole of it invalid."""
    listed = raw.get("tools")
    if not isinstance(listed, list):
        return raw  # no list of tools at all: the session's validation says so
    raw = dict(raw)
    cursor = raw.get("nextCursor")
    if cursor is not None and not isinstance(cursor, str):
        page.problems.append(
            f"the tool list goes on at a cursor that is no string ({one_line(repr(cursor), 60)}); stopped there"
        )
        cursor = raw["nextCursor"] = None
    if cursor is None:
        raw.pop("nextCursor", None)
    page.cursor = cursor
    bare_page = {**raw, "tools": []}
    if (complaint := _complaint(bare_page, page.version)) is not None:
        # The page's frame is wrong, though its tools may be right: give it the frame the protocol wants.
        page.problems.append(f"the tool list is framed wrongly ({complaint})")
        bare_page = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        if cursor is not None:
            bare_page["nextCursor"] = cursor
    if _complaint({**bare_page, "tools": listed}, page.version) is None:
        page.tools = listed
    else:
        for position, tool in enumerate(listed):
            complaint = _complaint({**bare_page, "tools": [tool]}, page.version)
            if complaint is None:
                page.tools.append(tool)
            else:
                name = tool.get("name") if isinstance(tool, dict) else None
                which = f"tool {name!r}" if isinstance(name, str) else f"the tool at position {position}"
                page.problems.append(f"{one_line(which, 100)} left out: {complaint}")
    return {**bare_page, "tools": page.tools}


def _complaint(raw: dict[str, Any], version: str) -> str | None:
    """Why the SDK would refuse a page, in one line, or None."""
    try:
        sdk_methods.validate_server_result("tools/list", version, raw)
        ListToolsResult.model_validate(raw, by_name=False)
    except ValidationError as error:
        return explain_validation(error)
    except RecursionError:
        return "nested too deeply"
    return None


def explain_validation(error: ValidationError) -> str:
    """The first complaint of a validation, in one line: where, and what."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return one_line(f"{where}: {first['msg']}" if where else first["msg"], 200)
