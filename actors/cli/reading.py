"""The verbs of what servers offer besides tools: `resources`, `prompts`, `read`, `prompt`."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import attrs
import trio

from ..edge.config.discover import Scope
from ..model.config import Config, ServerEntry
from ..model.errors import RequestRefused
from ..model.frozen import thaw
from ..model.meant import meant_by, variables_of
from ..model.nearest import nearest
from ..model.offers import Prompt
from ..model.plain import flat, quoted
from ..model.snapshot import ServerState, Snapshot
from .calling import must_run, parse_arguments
from .configs import load
from .errors import CliError, Exit, diagnose
from .hosting import opened
from .interrupt import run
from .names import unknown
from .render import columns_used, print_json, print_table, print_text, summary
from .showing import verdict, why_not_ready
from .waiting import settle, working

if TYPE_CHECKING:
    from ..host import Host

__all__ = ["fill_prompt", "read_resource", "show_prompts", "show_resources"]

SCHEMA = 1
"""The version of the JSON; it grows when a key changes or goes, not when one is added."""

TIMEOUT = 30.0

LIST_SECONDS = 3.0
"""How long a list is waited for that is only to tell what may have been meant."""

Shelf = Literal["resources", "prompts"]


def show_resources(path: str | None, name: str | None = None, **options: Any) -> int:
    """List the resources and templates of the servers; as `_show`."""
    return _show("resources", path, name, **options)


def show_prompts(path: str | None, name: str | None = None, **options: Any) -> int:
    """List the prompts of the servers; as `_show`."""
    return _show("prompts", path, name, **options)


def _show(
    shelf: Shelf,
    path: str | None,
    name: str | None,
    *,
    scope: Scope | None = None,
    as_json: bool = False,
    quiet: bool = False,
    timeout: float | None = None,
) -> int:
    """Start servers, wait until each has listed what it offers or has failed, and list it.

    Args:
        shelf: what is listed.
        path, scope: of the config, as in `configs.open_store`.
        name: one server, the only one that is started; None = all.
        as_json: print JSON instead of tables.
        quiet: say only what makes the exit code.
        timeout: seconds to wait for servers; None = 30.

    Returns:
        `Exit.CONFIG` when an entry is invalid, `Exit.SERVER` when a server that should run is not ready or did not list, else
        `Exit.OK`. What is known is printed in each case.

    Raises:
        PlaybillError: the config cannot be read, or has no such server.
    """
    config = load(path, scope)
    if name is not None:
        config = Config((_entry(config, name),), config.path, config.warnings)
    seconds = TIMEOUT if timeout is None else timeout

    async def verb() -> int:
        async with opened(config) as host:
            snapshot = await _listed(host, shelf, seconds)
            if as_json:
                print_json(_json(config, shelf, snapshot))
            else:
                (_print_resources if shelf == "resources" else _print_prompts)(snapshot)
                if not quiet and (without := _without(shelf, snapshot)):
                    diagnose(f"{', '.join(map(repr, without))}: no {shelf}")
            code, lines = verdict(config, snapshot.model, quiet=quiet, of_tools=False)
            wrong = [
                f"server {server.name!r}: {error}"
                for server in snapshot.model.servers
                if (error := _error(server, shelf)) is not None
            ]
            for line in (*lines, *wrong):
                diagnose(line)
            return Exit.SERVER if code == Exit.OK and wrong else code

    return run(verb)


def _without(shelf: Shelf, snapshot: Snapshot) -> list[str]:
    """The servers that have nothing of the kind, and said so."""
    return [
        server.name
        for server in snapshot.model.servers
        if server.phase == "ready"
        and _error(server, shelf) is None
        and not (server.prompts if shelf == "prompts" else server.resources or server.templates)
    ]


def _entry(config: Config, name: str) -> ServerEntry:
    entry = config.get(name)
    if entry is None:
        raise unknown(config, name, nearest(name, (each.name for each in config.servers)))
    return entry


def _error(server: ServerState, shelf: Shelf) -> str | None:
    if server.phase != "ready":
        return None
    error = server.resources_error if shelf == "resources" else server.prompts_error
    if error is not None:
        return error
    state = server.resources_state if shelf == "resources" else server.prompts_state
    return f"its {shelf} are not in yet" if state == "none" else None


async def _listed(host: Host, shelf: Shelf, seconds: float) -> Snapshot:
    """The snapshot in which every server that gets ready has listed what it offers, or has failed to."""

    def missing(snapshot: Snapshot) -> list[str]:
        state, error = f"{shelf}_state", f"{shelf}_error"
        ready = [server for server in snapshot.model.servers if server.phase == "ready"]
        return [each.name for each in ready if getattr(each, state) == "none" and getattr(each, error) is None]

    deadline = trio.current_time() + seconds
    snapshot = await settle(host, seconds)
    with trio.move_on_at(deadline):
        async with working(lambda: f"waiting for the {shelf} of {', '.join(missing(host.snapshot()))}"):
            async for snapshot in host.changes():
                if not missing(snapshot):
                    break
    return snapshot


def _print_resources(snapshot: Snapshot) -> None:
    rows = [
        (
            server.name,
            each.uri,
            each.title or each.name,
            each.mime_type or "",
            _size(each.size),
            summary(each.description),
        )
        for server in snapshot.model.servers
        for each in server.resources
    ]
    if rows:
        print_table(columns_used(("SERVER", "URI", "NAME", "TYPE", "BYTES", "DESCRIPTION"), rows, keep=3))
    templates = [
        (server.name, each.uri_template, each.title or each.name, each.mime_type or "", summary(each.description))
        for server in snapshot.model.servers
        for each in server.templates
    ]
    if rows and templates:
        print()
    if templates:
        print_table(columns_used(("SERVER", "TEMPLATE", "NAME", "TYPE", "DESCRIPTION"), templates, keep=3))


def _size(size: int | None) -> str:
    return "" if size is None else str(size)


def _print_prompts(snapshot: Snapshot) -> None:
    rows = [
        (server.name, each.name, _arguments(each), each.title or "", summary(each.description))
        for server in snapshot.model.servers
        for each in server.prompts
    ]
    if rows:
        print_table(columns_used(("SERVER", "PROMPT", "ARGUMENTS", "TITLE", "DESCRIPTION"), rows, keep=2))


def _arguments(prompt: Prompt) -> str:
    return " ".join(each.name if each.required else f"[{each.name}]" for each in prompt.arguments)


def _json(config: Config, shelf: Shelf, snapshot: Snapshot) -> dict[str, Any]:
    kinds = ("resources", "templates") if shelf == "resources" else ("prompts",)
    return {
        "schema": SCHEMA,
        "config": config.path,
        "servers": [
            {
                "name": server.name,
                "phase": server.phase,
                "error": server.error,
                "list_error": getattr(server, f"{shelf}_error"),
                **{kind: [_plain(each) for each in getattr(server, kind)] for kind in kinds},
            }
            for server in snapshot.model.servers
        ],
    }


def _plain(value: Any) -> Any:
    """A value as JSON: its fields by name."""
    return thaw(attrs.asdict(value, recurse=False) | {"icons": list(value.icons)} | _parts(value))


def _parts(value: Any) -> dict[str, Any]:
    if not isinstance(value, Prompt):
        return {}
    return {"arguments": [attrs.asdict(each) for each in value.arguments]}


def read_resource(path: str | None, name: str, uri: str | None, **options: Any) -> int:
    """Read one resource and print its content; as `_ask`. Without a URI: as `_list_one`."""
    if uri is None:
        return _list_one("resources", path, name, **options)

    async def ask(host: Host, left: float | None) -> Any:
        if "{" in uri:  # many a server would take it as it is
            snapshot = await _listed(host, "resources", LIST_SECONDS if left is None else left)
            listed = snapshot.model.server(name)
            if listed is not None and (open_ := variables_of(uri, listed.templates)):
                raise CliError(Exit.USAGE, f"{uri!r} is a template: fill in {', '.join(open_)}")
        try:
            return await host.read_resource(name, uri, timeout=left)
        except RequestRefused as refused:
            # The list may not have been in when it was refused; who mistyped it wants to know the right one.
            snapshot = await _listed(host, "resources", LIST_SECONDS)
            server = snapshot.model.server(name)
            near = None if server is None else meant_by(uri, server.resources, server.templates)
            raise RequestRefused(name, refused.what, refused.reason, refused.code, near) from None

    return _ask(path, name, f"resource {uri}", {"uri": uri}, ask, _text_of_contents, **options)


def _list_one(shelf: Shelf, path: str | None, name: str, **options: Any) -> int:
    """List what one server has of a kind, and say that one of it is to be named; `Exit.USAGE` unless that fails."""
    must_run(_entry(load(path, options.get("scope")), name))
    code = _show(shelf, path, name, quiet=True, **options)
    if code == Exit.OK:
        kind = "the URI of a resource" if shelf == "resources" else "a prompt"
        diagnose(f"{name!r} is a server: name {kind} behind it, as `playbill {shelf} {shlex.quote(name)}` lists them")
    return code or Exit.USAGE


def _check_arguments(prompt: Prompt, values: dict[str, str]) -> None:
    """Raise `CliError` when a prompt does not take these."""
    known = [each.name for each in prompt.arguments]
    missing = [each.name for each in prompt.arguments if each.required and each.name not in values]
    unknown = [key for key in values if key not in known]
    if missing or unknown:
        wrong = f"needs {', '.join(map(quoted, missing))}" if missing else f"has no {', '.join(map(quoted, unknown))}"
        takes = flat(_arguments(prompt)) or "no arguments"
        raise CliError(Exit.USAGE, f"prompt {quoted(prompt.name)} {wrong}; it takes {takes}")


def fill_prompt(path: str | None, name: str, prompt: str | None, arguments: str | None = None, **options: Any) -> int:
    """Fill in one prompt and print its messages; as `_ask`. Without a prompt: as `_list_one`.

    Raises:
        CliError: the arguments are no JSON object of strings, or not what the prompt says that it takes.
    """
    if prompt is None:
        return _list_one("prompts", path, name, **options)
    values = parse_arguments(arguments or "{}")
    for key, value in values.items():
        if not isinstance(value, str):
            raise CliError(Exit.USAGE, f"the arguments of a prompt are strings, and {key!r} is not")

    async def ask(host: Host, left: float | None) -> Any:
        # So that a name that is none is known to be none.
        snapshot = await _listed(host, "prompts", TIMEOUT if left is None else left)
        server = snapshot.model.server(name)
        if server is not None and server.prompts_state == "current" and server.prompts_error is None:
            for each in server.prompts:
                if each.name == prompt:
                    _check_arguments(each, values)
        return await host.get_prompt(name, prompt, values, timeout=left)

    return _ask(path, name, f"prompt {prompt}", {"prompt": prompt}, ask, _text_of_messages, **options)


def _ask(
    path: str | None,
    name: str,
    what: str,
    named: dict[str, str],
    ask: Callable[[Host, float | None], Awaitable[Any]],
    text_of: Callable[[Any], str],
    *,
    scope: Scope | None = None,
    as_json: bool = False,
    timeout: float | None = None,
) -> int:
    """Start one server, ask it for one thing, and print that.

    Args:
        path, scope: of the config, as in `configs.open_store`.
        name: the server.
        what: is asked for, in words.
        named: the same for the JSON.
        ask, text_of: how, and how the answer is put into words.
        as_json: print the raw result as JSON.
        timeout: seconds for all of it; None = 60 for the server to be ready, then the entry's own or 60 for the answer.

    Raises:
        CliError: the server did not get ready.
        PlaybillError: the config cannot be read, there is no such server, or it does not give it.
    """
    config = load(path, scope)
    entry = _entry(config, name)
    must_run(entry)
    seconds = 2 * TIMEOUT if timeout is None else timeout

    async def verb() -> int:
        deadline = trio.current_time() + seconds
        async with opened(Config((entry,), config.path, config.warnings)) as host:
            snapshot = await settle(host, seconds)
            server = snapshot.model.server(name)
            if server is None or server.phase != "ready":
                why = why_not_ready(server) if server is not None else "it is gone"
                raise CliError(Exit.SERVER, f"server {name!r} is not ready: {why}")
            left = None if timeout is None else max(deadline - trio.current_time(), 0.001)
            async with working(lambda: f"waiting for {what} of {name}"):
                result = await ask(host, left)
        if as_json:
            raw = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            print_json({"schema": SCHEMA, "server": name, **named, "result": raw})
        else:
            print_text(text_of(result).removesuffix("\n"))
        return Exit.OK

    return run(verb)


def _text_of_contents(result: Any) -> str:
    return "\n".join(_text_of_content(each) for each in result.contents)


def _text_of_content(content: Any) -> str:
    text = getattr(content, "text", None)
    if isinstance(text, str):
        return text
    return f"[{content.mime_type or 'binary'}, {len(content.blob) * 3 // 4} bytes]"


def _text_of_messages(result: Any) -> str:
    return "\n".join(f"{each.role}: {_text_of_block(each.content)}" for each in result.messages)


def _text_of_block(block: Any) -> str:
    blocks: Sequence[Any] = block if isinstance(block, list) else [block]
    said = []
    for each in blocks:
        if each.type == "text":
            said.append(each.text)
        elif each.type == "resource":
            said.append(_text_of_content(each.resource))
        elif each.type == "resource_link":
            said.append(f"[resource {each.uri}]")
        else:
            said.append(f"[{each.type}, {getattr(each, 'mime_type', None) or 'unknown'}]")
    return "\n".join(said)
