"""The verbs that edit the config: `add`, `remove`, `enable`, `disable`. They start no server and do not import ``mcp``.

Each is one edit by the store, which locks, re-reads and writes; then it is told what was written where.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

from ..edge.config.entry import entry_json, read_entry
from ..edge.config.jsonc_walk import show_path
from ..edge.config.scopes import ScopedStore
from ..edge.config.trust import TrustStore
from ..model.config import Config, ServerEntry
from ..model.edits import AddServer, Edit, RemoveServer, SetEnabled, SetTool
from ..model.errors import ConfigError, ServerExists
from ..model.nearest import nearest
from ..model.protocol import version_wrong
from ..ports import Edited, Store
from ..sources import find_scopes
from .configs import label, open_store
from .errors import CliError, Exit, diagnose, one_line
from .listing import what_runs
from .names import listed, subject, unknown
from .options import EditOptions
from .patience import editing
from .render import print_json

__all__ = ["add_server", "remove_server", "set_enabled"]

SCHEMA = 1


def add_server(
    name: str,
    command: Sequence[str],
    *,
    url: str | None,
    header: Sequence[str],
    headers_helper: str | None,
    env: Sequence[str],
    cwd: str | None,
    type_: str | None = None,
    protocol_version: str | None = None,
    replace: bool,
    options: EditOptions,
) -> int:
    """Add a server to the file of the scope; without one to the project's if there is one, else the user's.

    Args:
        name: its key.
        command: the program and its arguments; for a remote server nothing, or its URL.
        url, header, type_: of a remote server; headers as ``KEY: VALUE``; None = streamable HTTP, or else SSE.
        headers_helper: of one too: a command line that prints more headers.
        protocol_version: the newest to speak with it; None = the newest that both know.
        env, cwd: of a program; variables as ``KEY=VALUE``.
        replace: whether there may be one of that name.
        options: which file, and how to tell.

    Raises:
        CliError: what is given is no server, or the name is there.
        ConfigError, WriteFailed: the file cannot be read or written; it is as before.
    """
    if url is None and len(command) == 1 and _is_url(command[0]):
        url, command = command[0], ()
    entry = _entry(name, command, url, header, env, cwd, type_)
    if headers_helper is not None:
        if url is None:
            raise CliError(Exit.USAGE, "--headers-helper is for a remote server: playbill add NAME URL")
        if not headers_helper.strip():
            raise CliError(Exit.USAGE, "--headers-helper takes a command line")
        entry = evolve(entry, headers_helper=headers_helper)
    if protocol_version is not None:
        if (wrong := version_wrong(protocol_version)) is not None:
            raise CliError(Exit.USAGE, f"--protocol-version: {wrong}")
        entry = evolve(entry, protocol_version=protocol_version)
    store = open_store(options.config, options.scope, options.timeout)
    before = {path for path in store.watched() if os.path.lexists(path)}
    there = _read(store)
    was = None if there is None else there.get(name)
    try:
        config = _done(store, AddServer(entry, replace))
    except ServerExists as error:
        how = "--replace replaces it"
        if options.config is None and options.scope is None and error.file == str(find_scopes().user):
            how += "; --scope project adds one that is used instead of it here"
        raise CliError(Exit.USAGE, f"a server named {name!r} is configured already in {error.file} ({how})") from None
    new = config.get(name)
    assert new is not None
    file = Path(new.source or "")
    made = file not in before
    what = f"added {name!r} to" if was is None else f"replaced {name!r} in"
    notes = [w.message if not w.path else f"{show_path(w.path)}: {w.message}" for w in _looks(entry)]
    notes += _others(name, file, options)
    _tell(
        f"{what} {'the new file ' if made else ''}{label(file)}: {what_runs(new)}",
        {"verb": "add", "server": name, "file": str(file), "changed": True, "created": made},
        notes,
        options,
        config,
    )
    return Exit.OK


def remove_server(name: str, *, options: EditOptions) -> int:
    """Remove a server from the file that its entry comes from.

    Raises:
        UnknownServer: there is none of that name.
        ConfigError, WriteFailed: the file cannot be read or written; it is as before.
    """
    store = open_store(options.config, options.scope, options.timeout)
    before = store.load()
    entry = before.get(name)
    if entry is None:
        raise unknown(before, name, nearest(name, [each.name for each in before.servers]))
    config = _done(store, RemoveServer(name))
    file = Path(entry.source or "")
    notes = [f"{each} is in force now" for each in _still_there(name, options)]
    _tell(
        f"removed {name!r} from {label(file)}",
        {"verb": "remove", "server": name, "file": str(file), "changed": True},
        notes,
        options,
        config,
    )
    return Exit.OK


def set_enabled(name: str, tool: str | None, on: bool, *, options: EditOptions) -> int:
    """Enable or disable a server or one of its tools, in the file that the entry comes from.

    Args:
        name, tool: as in `names.subject`.
        on: enable or disable.
        options: which file, and how to tell.

    Raises:
        UnknownServer: there is no such server.
        CliError: the name tells no tool.
        ConfigError, WriteFailed: the file cannot be read or written; it is as before.
    """
    store = open_store(options.config, options.scope, options.timeout)
    before = store.load()
    entry, bare = subject(before, name, tool)
    known = listed(entry)
    edit: Edit = SetEnabled(entry.name, on) if bare is None else SetTool(entry.name, bare, on)
    done = _edit(store, edit)
    word = "enabled" if on else "disabled"
    what = repr(entry.name) if bare is None else f"{entry.name}/{bare}"
    file = Path(entry.source or "")
    notes = []
    if bare is not None and bare not in known:
        close = nearest(bare, known)
        hint = f" (did you mean {close!r}? That is in its lists)" if close else ""
        notes.append(f"not checked: only a running server tells whether it has a tool {bare!r}{hint}")
    if bare is not None and on and entry.disabled:
        notes.append(f"the server itself is disabled: playbill enable {entry.name}")
    _tell(
        f"{word} {what} in {label(file)}" if done.wrote else f"{what} is {word} already ({label(file)})",
        {
            "verb": "enable" if on else "disable",
            "server": entry.name,
            "tool": bare,
            "file": str(file),
            "changed": done.wrote,
        },
        notes,
        options,
        done.config,
    )
    return Exit.OK


def _is_url(text: str) -> bool:
    return text.lower().startswith(("http://", "https://"))


def _entry(
    name: str,
    command: Sequence[str],
    url: str | None,
    header: Sequence[str],
    env: Sequence[str],
    cwd: str | None,
    type_: str | None,
) -> ServerEntry:
    def refuse(why: str) -> CliError:
        return CliError(Exit.USAGE, why)

    if not name.strip():
        raise refuse("a server needs a name")
    if not command and url is None:
        how = "playbill add NAME -- COMMAND, or playbill add NAME https://…"
        raise refuse(f"what to run comes behind --, or a URL says where the server is: {how}")
    if command and url is not None:
        raise refuse("a server has a command or a --url, not both")
    if command and header:
        raise refuse("--header is for a server with a URL")
    if command and type_ is not None:
        raise refuse("--type is for a server with a URL")
    if url is not None and (env or cwd is not None):
        raise refuse("--env and --cwd are for a server with a command")
    entry = ServerEntry(
        name,
        command=command[0] if command else None,
        args=tuple(command[1:]),
        env=_pairs(env, "--env", "=", "KEY=VALUE"),
        cwd=cwd,
        type=type_,
        url=url,
        headers=_pairs(header, "--header", ":", "'KEY: VALUE'", str.strip),
    )
    try:
        entry_json(entry)
    except ValueError as wrong:
        raise refuse(f"this is no server: {wrong}") from None
    return entry


def _pairs(
    given: Iterable[str], option: str, sign: str, form: str, clean: Callable[[str], str] = lambda text: text
) -> dict[str, str]:
    out: dict[str, str] = {}
    for each in given:
        key, found, value = each.partition(sign)
        key = key.strip()
        if not found or not key:
            # Not repeated: it may be a secret on its own.
            raise CliError(Exit.USAGE, f"{option} takes {form}")
        if key in out:
            raise CliError(Exit.USAGE, f"{option} gives {key!r} twice")
        out[key] = clean(value)
    return out


def _looks(entry: ServerEntry) -> Sequence[Any]:
    """What looks wrong with a new entry."""
    return read_entry(entry.name, entry_json(entry)).warnings


def _read(store: Store) -> Config | None:
    """The config before an add, which may make it."""
    try:
        return store.load()
    except ConfigError:
        return None


def _edit(store: Store, edit: Edit) -> Edited:
    with editing([*store.watched(), TrustStore().path]):
        done = store.edit([edit])
    refused = done.refused[0]
    if isinstance(store, ScopedStore) and isinstance(refused, ConfigError):
        entry = done.config.get(edit.server)
        if done.config.error is not None and entry is not None and entry.source == str(store.user):
            raise CliError(Exit.CONFIG, f"{refused} (--scope user edits that one)")
    if refused is not None:
        raise refused
    return done


def _done(store: Store, edit: Edit) -> Config:
    return _edit(store, edit).config


def _others(name: str, file: Path, options: EditOptions) -> list[str]:
    """What the other file that applies says of a name that was added."""
    if options.config is not None:
        return []
    scopes = find_scopes()
    joined = _read(scopes)
    used = None if joined is None else joined.get(name)
    if used is not None and used.source != str(file):
        return [f"not used here: {label(used.source or '')} has a server of this name, and is nearer"]
    return [f"used here instead of the one in {label(each)}" for each in _also_in(scopes, name, file)]


def _also_in(scopes: ScopedStore, name: str, file: Path) -> list[Path]:
    found = []
    for each in scopes.files():
        config = _read(scopes.store(each.scope, each.path)) if each.path != file else None
        if config is not None and config.get(name) is not None:
            found.append(each.path)
    return found


def _still_there(name: str, options: EditOptions) -> list[str]:
    """The entry of a removed name that is in force all the same."""
    joined = _read(find_scopes()) if options.config is None else None
    entry = None if joined is None else joined.get(name)
    return [] if entry is None else [f"the {name!r} of {label(entry.source or '')}"]


def _tell(said: str, value: dict[str, Any], notes: Sequence[str], options: EditOptions, config: Config) -> None:
    """Say what was done; a config that is not whole is told whatever was asked for."""
    if options.json:
        print_json({"schema": SCHEMA, **value, "notes": list(notes)})
    elif not options.quiet:
        print(one_line(said))
        for note in notes:
            diagnose(f"note: {note}")
    if config.error is not None:
        diagnose(f"warning: {config.error}")
