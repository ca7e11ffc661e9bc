"""A server with every feature, on the SDK's `MCPServer`: for a test to take, or run as ``server.py stdio`` or ``… PORT``.

What it asks the client for comes by a request of its own before 2026-07-28, and since then by rounds of input.
"""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.resources import TextResource
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import (
    CallToolResult,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    EmptyResult,
    Icon,
    InputRequiredResult,
    ListRootsRequest,
    NotificationParams,
    ResourceLink,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
    ToolChoice,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel, WithJsonSchema

ICON = Icon(src="data:image/png;base64,iVBORw0KGgo=", mime_type="image/png", sizes=["16x16"])
MODERN = "2026-07-28"


class Form(BaseModel):
    """What a person is asked."""

    name: str
    seats: int = 1


class Seats(BaseModel):
    """A structured result."""

    row: str
    seats: list[int]


class Wrong(BaseModel):
    """A structured result that is not what its schema says."""

    row: str
    seats: Annotated[Any, WithJsonSchema({"type": "array", "items": {"type": "integer"}})]


def _prompted(text: str) -> CreateMessageRequestParams:
    return CreateMessageRequestParams(
        messages=[SamplingMessage(role="user", content=TextContent(text=text))], max_tokens=50
    )


def _is_modern(ctx: Context) -> bool:
    return ctx.protocol_version == MODERN


def _said(block: Any) -> str:
    return f"{block.name}({block.input})" if block.type == "tool_use" else str(block.text)


def _given(ctx: Context, key: str) -> Any:
    return (ctx.input_responses or {}).get(key)


def make() -> MCPServer:
    """The server."""
    server: Any = MCPServer(
        "features",
        title="The house",
        version="1.5",
        website_url="https://example.com/house",
        instructions="Ask the ushers.\nThey \x1b[31mknow\x1b[0m.",
        icons=[ICON],
    )
    server.cancelled = server.roots_heard = 0
    server.log_level = "none"

    @server.tool(icons=[ICON], meta={"example.com/kind": "seats"}, annotations=ToolAnnotations(read_only_hint=True))
    def seats(row: str) -> Seats:
        return Seats(row=row, seats=[1, 2])

    @server.tool()
    def wrong(row: str) -> Wrong:
        return Wrong(row=row, seats="many")

    @server.tool()
    def link() -> list[ResourceLink]:
        return [ResourceLink(name="programme", uri="stage://programme", mime_type="text/plain", icons=[ICON])]

    @server.tool()
    async def meta(ctx: Context) -> CallToolResult:
        given = ctx.request_context.meta or {}
        said = {key: value for key, value in dict(given).items() if key.startswith("example.com/")}
        return CallToolResult(content=[TextContent(text=str(said))], _meta={"example.com/answer": said})

    @server.tool()
    async def steps(ctx: Context, count: int = 3) -> str:
        for step in range(count):
            await ctx.report_progress(step, count, f"step {step}")
        return "done"

    @server.tool()
    async def log(ctx: Context, count: int = 1) -> str:
        for number in range(count):
            await ctx.log("warning", {"number": number}, logger_name="house")
            await ctx.log("debug", "not asked for")
        return "logged"

    @server.tool()
    async def sleep(ctx: Context, seconds: float = 3600.0) -> str:
        try:
            await anyio.sleep(seconds)
        except anyio.get_cancelled_exc_class():
            server.cancelled += 1
            raise
        return "slept"

    @server.tool()
    async def cancelled() -> int:
        return int(server.cancelled)

    @server.tool()
    async def sample(ctx: Context, text: str) -> str | InputRequiredResult:
        if _is_modern(ctx):
            if (answer := _given(ctx, "line")) is None:
                asked = CreateMessageRequest(params=_prompted(text))
                return InputRequiredResult(input_requests={"line": asked}, request_state="second act")
            assert ctx.request_state == "second act"
        else:
            prompted = _prompted(text)
            answer = await ctx.session.create_message(prompted.messages, max_tokens=prompted.max_tokens)
        return f"{answer.model}: {answer.content.text}"

    @server.tool()
    async def sample_with_tools(ctx: Context) -> str | InputRequiredResult:
        """Has a text sampled with tools, and says which of them the model wants to use."""
        prop = Tool(name="prop", description="Fetch a prop.", input_schema={"type": "object"})
        choice = ToolChoice(mode="required")
        if _is_modern(ctx):
            if (answer := _given(ctx, "line")) is None:
                params = _prompted("Alas").model_copy(update={"tools": [prop], "tool_choice": choice})
                return InputRequiredResult(input_requests={"line": CreateMessageRequest(params=params)})
        else:
            messages = _prompted("Alas").messages
            answer = await ctx.session.create_message(messages, max_tokens=9, tools=[prop], tool_choice=choice)
        blocks = answer.content if isinstance(answer.content, list) else [answer.content]
        return f"{type(answer).__name__} {answer.stop_reason}: {' '.join(_said(block) for block in blocks)}"

    @server.tool()
    async def elicit(ctx: Context) -> str | InputRequiredResult:
        if _is_modern(ctx):
            if (answer := _given(ctx, "form")) is None:
                asked = ElicitRequestFormParams(message="Who comes?", requested_schema=Form.model_json_schema())
                return InputRequiredResult(input_requests={"form": ElicitRequest(params=asked)})
            return f"{answer.action} {answer.content}"
        result = await ctx.elicit("Who comes?", Form)
        return f"{result.action} {getattr(result, 'data', None)}"

    @server.tool()
    async def elicit_url(ctx: Context) -> str | InputRequiredResult:
        where = "https://example.com/pay"
        if _is_modern(ctx):
            if (answer := _given(ctx, "pay")) is None:
                asked = ElicitRequestURLParams(message="Pay there", url=where)
                return InputRequiredResult(input_requests={"pay": ElicitRequest(params=asked)})
            return str(answer.action)
        result = await ctx.elicit_url("Pay there", where, "payment-1")
        await ctx.session.send_elicit_complete("payment-1")
        return str(result.action)

    @server.tool()
    async def roots(ctx: Context) -> str | InputRequiredResult:
        if _is_modern(ctx):
            if (answer := _given(ctx, "roots")) is None:
                return InputRequiredResult(input_requests={"roots": ListRootsRequest()})
        else:
            answer = await ctx.session.list_roots()
        return " ".join(f"{root.uri}={root.name}" for root in answer.roots)

    @server.tool()
    async def roots_heard() -> int:
        return int(server.roots_heard)

    async def set_level(ctx: Any, params: SetLevelRequestParams) -> EmptyResult:
        server.log_level = params.level
        return EmptyResult()

    server._lowlevel_server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)

    @server.tool()
    async def log_level() -> str:
        return str(server.log_level)

    async def on_roots(ctx: Any, params: Any) -> None:
        server.roots_heard += 1

    server._lowlevel_server.add_notification_handler("notifications/roots/list_changed", NotificationParams, on_roots)

    @server.tool()
    async def sample_for_a_moment(ctx: Context) -> str:
        with anyio.move_on_after(0.3):
            await ctx.session.create_message(_prompted("never").messages, max_tokens=5)
        return "given up"

    @server.tool()
    async def ping(ctx: Context) -> str:
        return type(await ctx.session.send_ping()).__name__

    @server.tool()
    async def announced(ctx: Context) -> str:
        given = ctx.client_capabilities
        assert given is not None
        parts = given.model_dump(exclude_none=True)
        if parts.get("sampling"):
            parts["sampling-with-" + "-".join(sorted(parts["sampling"]))] = True
        return " ".join(sorted(parts))

    @server.tool()
    async def later(ctx: Context) -> str | InputRequiredResult:
        """Answers on the third attempt, for which the client has only a state."""
        acts = int(ctx.request_state or 0)
        return "curtain" if acts == 2 else InputRequiredResult(request_state=str(acts + 1))

    @server.tool()
    async def never(ctx: Context) -> str | InputRequiredResult:
        return InputRequiredResult(request_state="again")

    _add_shelves(server)
    return server


def _add_shelves(server: Any) -> None:
    """Resources, templates and prompts, which a tool can change."""
    notes = {"stage://notes": "the ghost enters"}

    @server.resource("stage://notes", title="Notes", mime_type="text/plain", icons=[ICON], meta={"example.com/k": 1})
    def read_notes() -> str:
        """What the prompter wrote."""
        return notes["stage://notes"]

    @server.resource("stage://picture", mime_type="image/png")
    def picture() -> bytes:
        return b"PNG"

    @server.resource("stage://scenes/{act}/{scene}", title="A scene")
    def scene(act: str, scene: str) -> str:
        return f"act {act}, scene {scene}"

    @server.prompt(title="Audition", icons=[ICON])
    def audition(part: str, mood: str = "grave") -> str:
        """How to read a part."""
        return f"Read {part}, {mood}"

    @server.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> Completion:
        given = [] if context is None else sorted((context.arguments or {}).values())
        of = getattr(ref, "name", None) or ref.uri
        values = [f"{of}/{argument.name}={argument.value}{number}" for number in range(2)]
        return Completion(values=values + given, total=5, has_more=True)

    async def subscribe(ctx: Any, params: SubscribeRequestParams) -> EmptyResult:
        server.subscribed.add(str(params.uri))
        return EmptyResult()

    async def unsubscribe(ctx: Any, params: UnsubscribeRequestParams) -> EmptyResult:
        server.subscribed.discard(str(params.uri))
        return EmptyResult()

    server.subscribed = set()
    server._lowlevel_server.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
    server._lowlevel_server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)

    @server.tool()
    async def subscribed() -> str:
        return " ".join(sorted(server.subscribed))

    @server.tool()
    async def write(ctx: Context, text: str, times: int = 1) -> str:
        notes["stage://notes"] = text
        for _ in range(times):
            if _is_modern(ctx):
                await ctx.notify_resource_updated("stage://notes")
            else:
                await ctx.session.send_resource_updated("stage://notes")
        return "written"

    @server.tool()
    async def add(ctx: Context) -> str:
        """One more resource and one more prompt."""
        server.add_resource(TextResource(uri="stage://new", name="new", text="new"))
        server.add_prompt(Prompt.from_function(lambda: "new", name="new"))
        if _is_modern(ctx):
            await ctx.notify_resources_changed()
            await ctx.notify_prompts_changed()
        else:
            await ctx.session.send_resource_list_changed()
            await ctx.session.send_prompt_list_changed()
        return "added"


def main() -> None:
    """Run it."""
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    server = make()
    if sys.argv[1] == "stdio":
        server.run()
    else:
        server.run(transport="streamable-http", port=int(sys.argv[1]))


if __name__ == "__main__":
    main()
