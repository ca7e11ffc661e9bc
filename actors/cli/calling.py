"""The verb that calls one tool: `call`."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import trio

from ..edge.config.discover import Scope
from ..model.config import Config, ServerEntry
from ..model.errors import UnknownServer, UnknownTool
from ..model.frozen import thaw
from ..model.naming import PREFIX
from ..model.nearest import nearest
from ..model.plain import flat
from ..model.snapshot import PluginModel, ServerState, Snapshot
from .configs import load
from .errors import CliError, Exit, diagnose
from .hosting import opened
from .interrupt import run
from .listing import how_to_log_in
from .names import by_wire_name, near_tool, origin_of, subject
from .questions import questions_told
from .render import columns_used, print_json, print_table, print_text, summary
from .showing import why_not_ready
from .waiting import settle, working

__all__ = ["arguments_of", "call_tool", "must_run", "origin_of", "parse_arguments", "text_of"]

SCHEMA = 1
"""The version of the JSON around the result; it grows when a key changes or goes, not when one is added."""

TIMEOUT = 60.0

QUOTES = "see playbill call --help (JSON with spaces needs quotes)"


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments of a call.

    Raises:
        CliError: the text is not one JSON object.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CliError(Exit.USAGE, "the arguments are not UTF-8") from None
    try:
        value = json.loads(text, parse_constant=_refuse_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise CliError(
            Exit.USAGE, f"the arguments are not JSON: {error.msg.removesuffix(' at')} at {place} of {text!r}"
        ) from None
    except ValueError as error:
        raise CliError(Exit.USAGE, f"the arguments are not usable JSON: {error}") from None
    except RecursionError:
        raise CliError(Exit.USAGE, "the arguments are not usable JSON: they nest too deep") from None
    if not isinstance(value, dict):
        raise CliError(Exit.USAGE, f'the arguments must be a JSON object like {{"key": 1}}, not {text!r}')
    return value


def _refuse_number(text: str) -> float:
    raise ValueError(f"there is no number {text[:40]}")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse_number(text)


def call_tool(
    path: str | None,
    name: str,
    given: Sequence[str] = (),
    *,
    scope: Scope | None = None,
    as_json: bool = False,
    timeout: float | None = None,
) -> int:
    """Call one tool and print its answer; of a server alone, what there is to call.

    Args:
        path, scope: of the config, as in `configs.open_store`.
        name: a wire name, or ``SERVER/TOOL``; where the name tells the server, no other is started.
        given: what follows it: the tool, if the name is a server's alone; the arguments as one JSON object, if there are any.
        as_json: print the raw result, and whose it is, as JSON.
        timeout: seconds for all of it; None = 60 for the server to be ready, then the entry's own or 60 for the call.

    Returns:
        `Exit.OK`, or `Exit.FAILURE` when the tool says it failed; `Exit.USAGE` when no tool was named, and so none was called.

    Raises:
        CliError: the arguments or the name are wrong, or the server did not get ready.
        PlaybillError: the config cannot be read, or the call failed.
    """
    config: Config | None = None
    if len(given) == 1 and not _is_object(given[0]):
        config = load(path, scope)  # it tells whether the name is a server's, and this its tool
    tool, arguments = _sorted_out(config, name, given)
    values = parse_arguments(arguments)
    config = load(path, scope) if config is None else config
    alone = None if tool is not None or name.startswith(PREFIX) else config.get(name)
    if alone is not None and not given:
        return _list_tools(alone, config, as_json=as_json, timeout=TIMEOUT if timeout is None else timeout)
    seconds = TIMEOUT if timeout is None else timeout
    origin: tuple[ServerEntry, str] | None
    if tool is None:
        origin = origin_of(config, name)
    else:
        entry, bare = subject(config, name, tool)
        origin, name = (entry, bare or ""), f"{entry.name}/{bare}"
    if origin is not None:
        entry, _ = origin
        must_run(entry)
        config = Config((entry,), config.path, config.warnings)
    elif config.error is not None:
        raise config.error  # the server may be in there
    elif config.get(name) is not None and not name.startswith(PREFIX):
        raise CliError(Exit.USAGE, f"{name!r} is a server: write SERVER/TOOL, or the tool behind it")
    elif "/" in name:
        server = name.partition("/")[0]
        near = nearest(server, (entry.name for entry in config.servers))
        hint = f"{near}/{name.partition('/')[2]}" if near else None
        raise UnknownServer(server, hint)

    async def verb() -> int:
        deadline = trio.current_time() + seconds
        async with opened(config) as host:
            snapshot = await _until_known(host, name, origin, seconds)
            server, bare = _find(snapshot.model, name, origin)
            # Without a limit of the person's own, the entry's `timeout` is the limit of the call.
            left = None if timeout is None else max(deadline - trio.current_time(), 0.001)
            with questions_told(server):
                async with working(lambda: f"waiting for the answer of {server}/{bare}"):
                    result = await host.call_tool(server, bare, values, timeout=left)
        if as_json:
            raw = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            print_json({"schema": SCHEMA, "server": server, "tool": bare, "result": raw})
        else:
            print_text(text_of(result))
        if result.is_error:
            diagnose(f"tool {name!r} reported an error{_with_more_scope(server, text_of(result))}")
            return Exit.FAILURE
        return Exit.OK

    return run(verb)


def _with_more_scope(server: str, text: str) -> str:
    """The command for a call that a login was not enough for."""
    return how_to_log_in(server) if "HTTP 403" in text and "log in again" in text else ""


def _list_tools(entry: ServerEntry, config: Config, *, as_json: bool, timeout: float) -> int:
    """Start one server and list what it has to be called."""
    must_run(entry)

    async def verb() -> int:
        async with opened(Config((entry,), config.path, config.warnings)) as host:
            server = _ready((await settle(host, timeout, [entry.name])).model, entry.name)
        if as_json:
            tools = [
                {
                    "tool": tool.bare,
                    "enabled": tool.enabled,
                    "title": tool.title,
                    "description": tool.description,
                    "input_schema": thaw(tool.input_schema),
                }
                for tool in server.tools
            ]
            print_json({"schema": SCHEMA, "server": entry.name, "tool": None, "tools": tools})
        elif server.tools:
            rows = [
                (
                    flat(f"{entry.name}/{tool.bare}"),
                    ", ".join(map(flat, arguments_of(tool.input_schema))),
                    "" if tool.enabled else "excluded",
                    summary(tool.description),
                )
                for tool in server.tools
            ]
            print_table(columns_used(("TOOL", "ARGUMENTS", "STATE", "DESCRIPTION"), rows, keep=1))
        what = "name one of these tools behind it" if server.tools else "which has no tools"
        diagnose(f"{entry.name!r} is a server: {what}")
        return Exit.USAGE

    return run(verb)


def arguments_of(schema: Mapping[str, Any]) -> list[str]:
    """The names of the arguments that a schema has, in its order; one that may be left out is in brackets."""
    known, needed = schema.get("properties"), schema.get("required")
    names = list(known) if isinstance(known, Mapping) else []
    must = set(needed) if isinstance(needed, list | tuple) and all(isinstance(each, str) for each in needed) else set()
    return [name if name in must else f"[{name}]" for name in names]


def _is_object(text: str) -> bool:
    return text.lstrip().startswith("{")


def _sorted_out(config: Config | None, name: str, given: Sequence[str]) -> tuple[str | None, str]:
    """The tool, or None when the name says it, and the arguments.

    Args:
        config: the servers; needed when one thing is given that is no JSON object.
        name, given: as in `call_tool`.

    Raises:
        CliError: two things are given, and the first looks like a part of the arguments.
    """
    match given:
        case []:
            return None, "{}"
        case [one] if _is_object(one) or config is None or config.get(name) is None:
            return None, one
        case [one]:
            return one, "{}"
        case [one, other, *_] if _is_object(one):
            raise CliError(Exit.USAGE, f"too many arguments: {other!r}; {QUOTES}")
        case [one, other, *_]:
            return one, other
    raise AssertionError(given)


def must_run(entry: ServerEntry) -> None:
    """Raise `CliError` when a server cannot be started: its entry is wrong, or says so, or was not approved."""
    if entry.error is not None:
        raise CliError(Exit.CONFIG, entry.error)
    if not entry.runnable:
        why = "disabled" if entry.disabled else f"untrusted: run `playbill trust {shlex.quote(entry.name)}`"
        raise CliError(Exit.SERVER, f"server {entry.name!r} is {why}")


async def _until_known(host: Any, name: str, origin: tuple[ServerEntry, str] | None, seconds: float) -> Snapshot:
    """The snapshot in which the tool's server is ready; of a name whose server is unknown, that knows it or is settled."""
    if origin is not None:
        return await settle(host, seconds, [origin[0].name])
    found: Snapshot | None = None
    async with trio.open_nursery() as nursery:

        async def look() -> None:
            nonlocal found
            async for snapshot in host.changes():
                if by_wire_name(snapshot.model, name) is not None:
                    found = snapshot
                    nursery.cancel_scope.cancel()

        nursery.start_soon(look)
        snapshot = await settle(host, seconds)
        nursery.cancel_scope.cancel()
    return found or snapshot


def _find(model: PluginModel, name: str, origin: tuple[ServerEntry, str] | None) -> tuple[str, str]:
    if origin is None:
        found = by_wire_name(model, name)
        if found is None:
            raise UnknownTool(name, near_tool(model, name))
        return found
    entry, bare = origin
    server = _ready(model, entry.name)
    if server.tool(bare) is None:
        near = nearest(bare, (tool.bare for tool in server.tools))
        raise UnknownTool(bare, f"{entry.name}/{near}" if near else None, server=entry.name)
    return entry.name, bare


def _ready(model: PluginModel, name: str) -> ServerState:
    server = model.server(name)
    if server is None or server.phase != "ready":
        why = why_not_ready(server) if server is not None else "it is gone"
        raise CliError(Exit.SERVER, f"server {name!r} is not ready: {why}")
    return server


def text_of(result: Any) -> str:
    """The words of an ``mcp`` ``CallToolResult``: its texts, and a line in brackets for what is not text."""
    parts = []
    for block in result.content:
        kind = block.type
        if kind == "text":
            parts.append(block.text)
        elif kind in ("image", "audio"):
            parts.append(f"[{kind}, {block.mime_type}, {len(block.data) * 3 // 4} bytes]")
        elif kind == "resource_link":
            parts.append(f"[resource {block.uri}]")
        elif kind == "resource":
            text = getattr(block.resource, "text", None)
            parts.append(text if text is not None else f"[resource {block.resource.uri}]")
        else:
            parts.append(f"[{kind}]")
    structured: Mapping[str, Any] | None = result.structured_content
    if not parts and structured is not None:
        return json.dumps(structured, indent=2, ensure_ascii=False)
    return "\n".join(parts)
