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

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import trio
from attrs import define, field
from mcp.shared.dispatcher import CallOptions, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp_types import ListToolsResult, PaginatedRequestParams
from mcp_types import methods as sdk_methods
from pydantic import ValidationError

from ...model.amount import EACH, amount
from ...model.status import ToolDef
from ...ports import Expiry, Listing
from ...telemetry.calls import server_request
from ...telemetry.log import about, whom
from .asked import check_size, told_question
from .made import Key, Made, exact, key_of, made_here
from .noted import refused
from .wire import explain_validation, one_line

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

__all__ = ["MAX_PAGES", "MAX_PROBLEMS", "MAX_TOOLS", "SLICE", "Tap", "explain_validation", "list_all", "raw_pages"]

MAX_PAGES = 1000
"""Pages asked for before a list is taken for endless."""


MAX_TOOLS = 10_000
"""Tools looked at of one server; those beyond are left out."""

MAX_CHARS = 64_000_000
"""Characters of all tools of a list together; those beyond are left out, or pages without end would take all memory."""

MAX_PROBLEMS = 100
"""Problem lines of one list; of those beyond only the number is said."""

_NOTED = frozenset(
    {
        *("initialize", "server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list"),
        *("resources/read", "prompts/get", "completion/complete"),
    }
)
"""Requests that are told as spans; a call of a tool is noted where it is made, and a ping is nothing to tell."""

SLICE = 100
"""Tools validated, converted and judged at a time, before others may run."""


@define
class _Page:
    """One page on its way through the tap, a slice at a time.

    Args:
        version: of the protocol.
        room, chars: how many of its tools are looked at, and of how many characters.
        tools: of the slice that was handed on last: what is kept of it.
        problems: what was wrong with that slice, or with the page.
        names: of the tools of all its slices.
        cursor: of the next page.
        frame: the page without its tools; None before it is here.
        rest: its tools that were not handed on yet.
        handed_on: how many were.
        cut: whether it had more tools than room.
        too_large: whether they have more characters than that.
        whose: the server's name.
        keys: of the tools of that slice if they are right as they are, by the `id` of each.
        made: the definitions that are held already.
    """

    version: str
    room: int = MAX_TOOLS
    chars: int = MAX_CHARS
    tools: list[dict[str, Any]] = field(factory=list)
    problems: list[str] = field(factory=list)
    names: set[str] = field(factory=set)
    cursor: str | None = None
    frame: dict[str, Any] | None = None
    rest: list[Any] = field(factory=list)
    handed_on: int = 0
    cut: bool = False
    too_large: bool = False
    whose: str | None = None
    keys: dict[int, Key] = field(factory=dict)
    made: Made = field(factory=Made)


_raw: ContextVar[list[dict[str, Any]] | None] = ContextVar("raw pages this task waits for", default=None)

_SHELVES = {"resources/list": "resources", "resources/templates/list": "resourceTemplates", "prompts/list": "prompts"}


@contextmanager
def raw_pages() -> Iterator[list[dict[str, Any]]]:
    """Inside, this task's pages of resources, templates and prompts come here as they are; the session gets empty ones."""
    pages: list[dict[str, Any]] = []
    token = _raw.set(pages)
    try:
        yield pages
    finally:
        _raw.reset(token)


_awaited: ContextVar[_Page | None] = ContextVar("the page this task waits for", default=None)


Heard = Callable[[str, "Mapping[str, Any] | None"], bool]
"""Takes a notification, and says whether it did; never waits."""


def _nobody_hears(method: str, params: Mapping[str, Any] | None) -> bool:
    return False


def _questions_in(raw: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """What an answer asks for (2026-07-28); nothing is known of it yet."""
    asked = raw.get("inputRequests")
    return [each for each in asked.values() if isinstance(each, dict)] if isinstance(asked, dict) else ()


class Tap:
    """A dispatcher around another one: it sifts the pages of `list_all`, and tells when the inner one has ended.

    It also refuses what a server asks at too great a length, before it is validated, and lets notifications be heard in the
    order in which they come and without a task for each.

    Args:
        inner: does the work.
        on_ended: called once, when ``run`` of the inner one is over.
        heard: called with each notification, never waiting; one that it takes goes no further.
        noted: called within a request that is noted, to say over which wire it goes.
        offers: the version that ``initialize`` offers, or None for the newest that it can.

    Attributes:
        stamp: what the session puts into the ``_meta`` of each request, once it has made one after the handshake; else None.
    """

    def __init__(
        self,
        inner: Dispatcher[Any],
        on_ended: Callable[[], None],
        heard: Heard = _nobody_hears,
        noted: Callable[[], None] = lambda: None,
        offers: str | None = None,
    ) -> None:
        self._inner = inner
        self._directly = getattr(inner, "send_directly", None)
        self._offers = offers
        self._on_ended = on_ended
        self._heard = heard
        self._noted = noted
        self._whom = whom()
        self.stamp: dict[str, Any] | None = None
        self.notify = inner.notify

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """As the inner one's; a page of tools that `list_all` waits for comes out sifted, and in slices."""
        if method == "initialize" and self._offers is not None:
            params = {**(params or {}), "protocolVersion": self._offers}
        page = _awaited.get() if method == "tools/list" else None
        if method == "tools/list" and self.stamp is None:
            self.stamp = dict((params or {}).get("_meta") or {})
        if page is None:
            raw = await self._send(method, params, opts)
            if (pages := _raw.get()) is not None and method in _SHELVES:
                pages.append(raw)
                return {_SHELVES[method]: [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
            self._judge_questions(raw)
            return raw
        if page.frame is None:
            raw = await self._send(method, params, opts)
            if not isinstance(raw.get("tools"), list):
                return raw  # no list of tools at all: the session's validation says so
            page.whose = None if self._whom is None else self._whom.server
            page.frame = _frame(raw, page)
        else:
            await trio.lowlevel.checkpoint()
        return _sift(page, page.frame)

    @property
    def direct(self) -> bool:
        """Whether `send_directly` is to be had."""
        return self.stamp is not None and self._directly is not None

    async def send_directly(self, method: str, params: Mapping[str, Any], expiry: Expiry) -> dict[str, Any]:
        """As `PipeDispatcher.send_directly`, which the inner one must be; what is asked for in an answer is judged."""
        assert self._directly is not None
        raw: dict[str, Any] = await self._directly(method, params, expiry)
        if "inputRequests" in raw:
            self._judge_questions(raw)
        return raw

    def _judge_questions(self, raw: Mapping[str, Any]) -> None:
        for question in _questions_in(raw):
            with about(self._whom):
                told_question(str(question.get("method")))
            check_size(str(question.get("method")), question.get("params"))

    async def _send(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None) -> dict[str, Any]:
        with about(self._whom):  # the caller's task may be anybody's
            if method not in _NOTED:
                return await self._inner.send_raw_request(method, params, opts)
            with server_request(method, None if self._whom is None else self._whom.server, params):
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

        async def on_question(context: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
            told_question(method)
            check_size(method, params)
            return await on_request(context, method, params)

        def intercept(method: str, params: Mapping[str, Any] | None) -> bool:
            taken = on_notify_intercept is not None and on_notify_intercept(method, params)
            return taken or self._heard(method, params)

        try:
            await self._inner.run(on_question, on_notify, intercept, task_status=task_status)
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
    room, chars, made = MAX_TOOLS, MAX_CHARS, made_here()
    for number in range(1, MAX_PAGES + 1):
        page = _Page(session.protocol_version or "2025-11-25", room, chars, made=made)
        before = len(tools)
        await _take_page(session, cursor, page, tools, old, problems)
        room, chars = room - page.handed_on, page.chars
        cursor = page.cursor
        if page.too_large:
            stopped = f"the tools have more than {MAX_CHARS} characters; those beyond are left out"
            break
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
        key = page.keys.get(id(raw))
        try:
            made = (None if key is None else page.made.get(key)) or _tool_def(raw)
            before = old.get(name)
            tools[name] = before if before is not None and before == made else made
            if key is not None:
                page.made[key] = tools[name]
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
        icons=raw.get("icons"),
        meta=raw["_meta"] if isinstance(raw.get("_meta"), dict) else None,
    )


def _frame(raw: dict[str, Any], page: _Page) -> dict[str, Any]:
    """A raw page without its tools, which go to ``page.rest``."""
    listed = raw["tools"]
    page.rest, page.cut = listed[: page.room], len(listed) > page.room
    cursor = raw.get("nextCursor")
    text = None if cursor else exact(page.rest)
    # What is far from too much need not be counted, if no page follows.
    if text is None or len(text) * (EACH + 1) > page.chars:
        for position, tool in enumerate(page.rest):
            page.chars -= amount(tool)
            if page.chars < 0:
                page.rest, page.too_large = page.rest[:position], True
                break
    frame = {**raw, "tools": []}
    if cursor is not None and not isinstance(cursor, str):
        page.problems.append(
            f"the tool list goes on at a cursor that is no string ({one_line(repr(cursor), 60)}); stopped there"
        )
        cursor = None
    page.cursor = cursor
    if cursor is None:
        frame.pop("nextCursor", None)
    return frame


def _mended(page: _Page, frame: dict[str, Any]) -> dict[str, Any]:
    """The frame of a page, or, where it would make the whole of it invalid, the one that the protocol wants."""
    if (complaint := _complaint(frame, page.version)) is None:
        return frame
    # Its tools may be right all the same.
    page.problems.append(f"the tool list is framed wrongly ({complaint})")
    frame = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    if page.cursor is not None:
        frame["nextCursor"] = page.cursor
    return frame


def _sift(page: _Page, frame: dict[str, Any]) -> dict[str, Any]:
    """The next slice of a page, without what would make the whole of it invalid."""
    first = not page.handed_on
    if not first:
        page.problems = []
    listed, page.rest = page.rest[:SLICE], page.rest[SLICE:]
    keys = {id(tool): key for tool in listed if (key := key_of(page.whose, page.version, tool)) is not None}
    page.keys = keys
    new = [] if len(keys) == len(listed) and all(key in page.made for key in keys.values()) else listed
    fits = _complaint({**frame, "tools": new}, page.version) is None
    if first and not fits and (mended := _mended(page, frame)) is not frame:
        frame = page.frame = mended
        fits = _complaint({**frame, "tools": new}, page.version) is None
    if page.rest:
        frame = {**frame, "nextCursor": _REST}  # else the session took the first slice for a complete list
    if fits:
        page.tools = sent = listed
    else:
        page.keys = {}
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
