"""A call of a tool without the session's own detours: the same bytes out, the same judgement of what comes back, less work.

Theory of operation. A `ClientSession` makes a model of each request to dump it again, checks a result by the schema of the
protocol's version and dumps what it made of it for nobody, and then tries both results a call may have one after the other.
Half the time of a call goes there. Over a pipe, where a request is its JSON and has no headers, all this can be had from the
SDK's public tables: what the session stamps on each request of a connection is the same (`Tap.stamp`, learnt from a request
of its own), and which result a message claims to be is said in it.

    an answer                                   is validated
    of text, as all versions have it            as a result, without the version's schema
    that says it is no request for input        as a result
    else, or if that refuses it                 as the session does it, with the same outcome and the same words

Over HTTP, and where the SDK's own dispatcher was chosen, calls go through the session.
tests/edge_connection/test_quick.py holds both ways against each other.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast, get_args

from mcp_types import LOG_LEVEL_META_KEY, CallToolResult, InputRequiredResult
from mcp_types import methods as sdk_methods
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS
from pydantic import BaseModel, TypeAdapter, ValidationError

if TYPE_CHECKING:
    from mcp.shared.dispatcher import CallOptions

    from ...ports import Progress
    from .listing import Tap

__all__ = ["METHOD", "RESULT", "call", "params_of", "read"]

METHOD = "tools/call"

RESULT: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)

_ARGUMENTS: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


def params_of(tap: Tap, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parameters of a call, as the session would write them.

    Args:
        tap: of the connection; its ``stamp`` is known.
        name: the server's own.
        arguments: what can be made JSON of.
        meta: of the request, or None.

    Raises:
        ValueError: the arguments cannot be made JSON of.
    """
    params: dict[str, Any] = {"name": name, "arguments": _as_json(arguments)}
    stamp = tap.stamp
    if meta is not None:
        stamped = dict(stamp or {})
        own = _as_json({key: value for key, value in meta.items() if value is not None})  # as the SDK writes it
        if LOG_LEVEL_META_KEY in own:
            stamped.pop(LOG_LEVEL_META_KEY, None)  # which a request may say for itself
        params["_meta"] = {**own, **stamped}
    elif stamp:
        params["_meta"] = stamp
    return params


def _as_json(given: Mapping[str, Any]) -> dict[str, Any]:
    for value in given.values():
        if type(value) is not str and type(value) is not int and type(value) is not bool:
            found = _ARGUMENTS.dump_python(dict(given), mode="json", by_alias=True, exclude_none=True)
            return cast("dict[str, Any]", found)
    return dict(given)  # it is that already


async def call(
    tap: Tap,
    version: str,
    name: str,
    arguments: Mapping[str, Any],
    meta: Mapping[str, Any] | None,
    progress: Progress | None,
) -> CallToolResult | InputRequiredResult:
    """Call a tool, once, in the caller's scope.

    Args:
        tap, name, arguments, meta: as of `params_of`.
        version: of the protocol, as agreed on.
        progress: told of it, or None.

    Raises:
        MCPError: as of `Dispatcher.send_raw_request`.
        ValidationError: the answer is no result.
        ValueError: the arguments cannot be made JSON of.
    """
    params = params_of(tap, name, arguments, meta)
    opts: CallOptions = {} if progress is None else {"on_progress": cast("Any", progress)}
    return read(await tap.send_raw_request(METHOD, params, opts), version)


def read(raw: dict[str, Any], version: str) -> CallToolResult | InputRequiredResult:
    """What a raw answer to a call is.

    Raises:
        ValidationError: it is no result of that version of the protocol.
    """
    surface, later, known = _of(version)
    if raw.keys() <= known and _is_plain(raw, "resultType" in known):
        with suppress(ValidationError):
            return _FINISHED.validate_python(raw, by_name=False)
    foreign = not later.isdisjoint(raw)
    mine = {key: value for key, value in raw.items() if key not in later} if foreign else raw
    if mine.get("resultType") != "input_required":
        with suppress(ValidationError):
            surface.validate_python(raw, by_name=False)
            return _FINISHED.validate_python(mine, by_name=False)
    sdk_methods.validate_server_result(METHOD, version, raw)
    return RESULT.validate_python(mine, by_name=False)


_FINISHED: TypeAdapter[CallToolResult] = TypeAdapter(CallToolResult)

_PLAIN = frozenset({"content", "isError", "structuredContent"})

_BLOCKS = 16
"""Looking at more of them takes longer than what it is to save."""


def _is_plain(raw: dict[str, Any], modern: bool) -> bool:
    """Whether a result, of fields in `_PLAIN` only, is what every version says alike of text: it needs no version's schema."""
    content = raw.get("content")
    if type(content) is not list or len(content) > _BLOCKS:
        return False
    for block in content:
        if (
            type(block) is not dict
            or len(block) != 2
            or block.get("type") != "text"
            or type(block.get("text")) is not str
        ):
            return False
    return (
        type(raw.get("isError", False)) is bool
        and type(raw.get("structuredContent", raw)) is dict
        and (not modern or raw.get("resultType") == "complete")
    )


@functools.cache
def _of(version: str) -> tuple[TypeAdapter[Any], frozenset[str], frozenset[str]]:
    """How a version of the protocol has a finished result of a call; what the result types know of later versions, which is
    no business of this one; and the fields of a plain result.

    An unknown version is for the session to refuse, when it shakes hands.
    """
    (finished,) = (model for model in _models(version) if "input_requests" not in model.model_fields)
    newer = KNOWN_PROTOCOL_VERSIONS[KNOWN_PROTOCOL_VERSIONS.index(version) + 1 :]
    later = {field for each in newer for model in _models(each) for field in _fields(model)}
    mine = {field for model in _models(version) for field in _fields(model)}
    return TypeAdapter(finished), frozenset(later - mine), (_PLAIN | {"resultType"}) & mine


def _models(version: str) -> tuple[type[BaseModel], ...]:
    row = sdk_methods.SERVER_RESULTS[METHOD, version]
    return cast("tuple[type[BaseModel], ...]", get_args(row) or (row,))


def _fields(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}
