"""Lists of resources, templates and prompts, tolerantly: what is wrong with one item costs that item.

As with tools (`listing`), the request is the session's own, and a tap takes the raw page on its way up: the session gets an
empty one, and the items are read here, one by one and a slice at a time, so that ten thousand of them hold up nobody.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import trio
from mcp_types import PaginatedRequestParams

from ...model.amount import amount
from ...model.frozen import freeze, freeze_all
from ...model.offers import Prompt, PromptArgument, Resource, ResourceTemplate
from ...model.plain import quoted
from .listing import MAX_PAGES, MAX_PROBLEMS, SLICE, raw_pages

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

__all__ = ["MAX_ITEMS", "list_prompts", "list_resources", "list_templates"]

MAX_ITEMS = 20_000
"""Items looked at of one list; those beyond are left out."""

MAX_CHARS = 32_000_000
"""Characters of all items of one list together; those beyond are left out, as is an item larger than `MAX_ITEM_CHARS`."""

MAX_ITEM_CHARS = 2_000_000

T = TypeVar("T", Resource, ResourceTemplate, Prompt)


async def list_resources(
    session: ClientSession, known: Iterable[Resource], problems: list[str]
) -> tuple[Resource, ...]:
    """All pages of the resources.

    Args:
        session: initialised, over a `Tap`.
        known: those listed before; one that is the same again is the same object.
        problems: gets a line for each thing that had to be left out.

    Raises:
        MCPError: the server refused a page, or the connection is lost.
        ValueError: a page is no list at all.
    """
    old = {each.uri: each for each in known}
    return await _all(session.list_resources, "resource", "resources", _resource, old, problems)


async def list_templates(
    session: ClientSession, known: Iterable[ResourceTemplate], problems: list[str]
) -> tuple[ResourceTemplate, ...]:
    """All pages of the templates; as `list_resources`."""
    old = {each.uri_template: each for each in known}
    return await _all(session.list_resource_templates, "template", "resourceTemplates", _template, old, problems)


async def list_prompts(session: ClientSession, known: Iterable[Prompt], problems: list[str]) -> tuple[Prompt, ...]:
    """All pages of the prompts; as `list_resources`."""
    old = {each.name: each for each in known}
    return await _all(session.list_prompts, "prompt", "prompts", _prompt, old, problems)


async def _all(
    ask: Callable[..., Awaitable[Any]],
    what: str,
    key: str,
    make: Callable[[dict[str, Any]], tuple[str, T]],
    old: Mapping[str, T],
    problems: list[str],
) -> tuple[T, ...]:
    found: dict[str, T] = {}
    cursors: set[str] = set()
    cursor: str | None = None
    looked_at = 0
    room = MAX_CHARS
    stopped: str | None = None
    for number in range(1, MAX_PAGES + 1):
        with raw_pages() as pages:
            await ask(params=None if cursor is None else PaginatedRequestParams(cursor=cursor))
        (page,) = pages
        items = page.get(key)
        if not isinstance(items, list):
            raise ValueError(f"its {what} list is no list")
        before = len(found)
        for place, item in enumerate(items):
            looked_at += 1
            if looked_at % SLICE == 0:
                await trio.lowlevel.checkpoint()
            if looked_at > MAX_ITEMS:
                break
            size = amount(item)
            room -= min(size, MAX_ITEM_CHARS)
            if room < 0:
                break
            try:
                if size > MAX_ITEM_CHARS:
                    raise ValueError(f"it has more than {MAX_ITEM_CHARS} characters")
                name, made = make(item)
            except (ValueError, RecursionError) as error:
                problems.append(f"the {what} at position {place} left out: {error or 'nested too deeply'}")
                continue
            was = old.get(name)
            found.setdefault(name, was if was is not None and was == made else made)
        cursor = page.get("nextCursor") or None
        if looked_at > MAX_ITEMS:
            stopped = f"there are more than {MAX_ITEMS} {what}s; those beyond are left out"
        elif room < 0:
            stopped = f"the {what}s have more than {MAX_CHARS} characters; those beyond are left out"
        elif cursor is None:
            break
        elif not isinstance(cursor, str):
            stopped = f"the {what} list goes on at a cursor that is no string; stopped there"
        elif cursor in cursors:
            stopped = f"page {number} of the {what} list leads back to an earlier one; stopped there"
        elif items and len(found) == before:
            stopped = f"page {number} of the {what} list has only {what}s of earlier pages; stopped there"
        if stopped is not None:
            break
        cursors.add(str(cursor))
    else:
        stopped = f"the {what} list has more than {MAX_PAGES} pages; stopped there"
    if len(problems) > MAX_PROBLEMS:
        problems[MAX_PROBLEMS:] = [f"and {len(problems) - MAX_PROBLEMS} more faults of {what}s"]
    if stopped is not None:
        problems.append(stopped)
    return tuple(found.values())


def _text(item: dict[str, Any], key: str) -> str | None:
    value = item.get(key)
    return value if isinstance(value, str) else None


def _object(item: dict[str, Any], key: str) -> Any:
    value = item.get(key)
    return freeze(value) if isinstance(value, dict) else None


def _needed(item: Any, key: str) -> str:
    if not isinstance(item, dict):
        raise ValueError("it is no object")
    value = item.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"it has no {key}")
    return value


def _common(item: dict[str, Any]) -> dict[str, Any]:
    return {
        "title": _text(item, "title"),
        "description": _text(item, "description"),
        "icons": freeze_all(item.get("icons")),
        "meta": _object(item, "_meta"),
    }


def _resource(item: Any) -> tuple[str, Resource]:
    uri = _needed(item, "uri")
    size = item.get("size")
    return uri, Resource(
        uri,
        name=_text(item, "name") or uri,
        mime_type=_text(item, "mimeType"),
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
        annotations=_object(item, "annotations"),
        **_common(item),
    )


def _template(item: Any) -> tuple[str, ResourceTemplate]:
    uri = _needed(item, "uriTemplate")
    return uri, ResourceTemplate(
        uri,
        name=_text(item, "name") or uri,
        mime_type=_text(item, "mimeType"),
        annotations=_object(item, "annotations"),
        **_common(item),
    )


def _prompt(item: Any) -> tuple[str, Prompt]:
    name = _needed(item, "name")
    given = item.get("arguments")
    arguments = []
    for each in given if isinstance(given, list) else ():
        try:
            argument = _needed(each, "name")
        except ValueError:
            raise ValueError(f"an argument of prompt {quoted(name)} has no name") from None
        required = each.get("required") is True
        title, description = _text(each, "title"), _text(each, "description")
        arguments.append(PromptArgument(argument, title=title, description=description, required=required))
    return name, Prompt(name, arguments=tuple(arguments), **_common(item))
