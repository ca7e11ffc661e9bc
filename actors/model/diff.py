"""What has to be started, stopped or replaced so that the servers that run are those the configuration wants.

Level-triggered: `plan` compares what is wanted with what the supervisor holds now, so that asking twice does nothing
twice and a lost step is made up for by the next plan. Only launch keys replace a server, compared by meaning and as
written (unexpanded); every other change of an entry is a matter of the projection.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import PurePath
from typing import Any

from attrs import field, frozen

from .config import Config, ServerEntry
from .protocol import older

__all__ = ["Delta", "launch_key", "plan", "transport_kind"]


@frozen
class Delta:
    """What the supervisor has to do, all of it side by side.

    Args:
        start: entries nothing runs for, in the order configured.
        stop: names of what runs and should not, in the order the supervisor holds them.
        replace: entries that run with other launch keys, in the order configured.
    """

    start: tuple[ServerEntry, ...] = ()
    stop: tuple[str, ...] = ()
    replace: tuple[ServerEntry, ...] = ()


@frozen
class _Same:
    """An object compared by identity; held, so that its id cannot become another one's."""

    held: Any = field(eq=id)


_ALIASES = {"streamablehttp": "http", "httpstream": "http", "local": "stdio"}


def transport_kind(entry: ServerEntry) -> str:
    """How a server is reached, from its ``type`` (any spelling) or, without one, from what else it says.

    Args:
        entry: any entry, also one that cannot be used.

    Returns:
        ``memory``, ``stdio``, ``http`` (streamable HTTP) or ``sse``; another ``type`` comes back folded, as it is.
    """
    if entry.server is not None:
        return "memory"
    if entry.type is None:
        return "http" if entry.url is not None and entry.command is None else "stdio"
    folded = entry.type.strip().casefold().replace("-", "").replace("_", "").replace(" ", "")
    return _ALIASES.get(folded, folded)


def _value(value: Any) -> Hashable:
    # Readers make strings of these; anything else is told apart by how it is written (1 == True, but they mean two things).
    return value if type(value) is str else repr(value)


def launch_key(entry: ServerEntry) -> Hashable:
    """What decides whether a running server is the one an entry means: equal keys mean the same launch.

    Order of env and headers does not count, nor the case of header names, nor how ``type`` is spelled or that it is
    left out, nor a ``protocol_version`` that is the newest anyway. The folder of the file does, for a process: its paths begin
    there.

    Args:
        entry: as configured, unexpanded.

    Returns:
        A hashable value to compare; it is not for showing (it holds env values as written).
    """
    if entry.launch_key_memo is None:
        object.__setattr__(entry, "launch_key_memo", _launch_key(entry))
    key: Hashable = entry.launch_key_memo
    return key


def _folder(entry: ServerEntry) -> str | None:
    """The folder of its file, where that has a part in how it is launched: a process runs there, or its paths begin there."""
    if entry.source is None or entry.server is not None:
        return None
    texts = (entry.url or "", *map(str, entry.headers.values()))
    if (
        transport_kind(entry) == "stdio"
        or entry.headers_helper is not None
        or any("${workspaceFolder" in text for text in texts)
    ):
        return str(PurePath(entry.source).parent)
    return None


def _launch_key(entry: ServerEntry) -> Hashable:
    return (
        _folder(entry),
        transport_kind(entry),
        entry.command,
        entry.args,
        frozenset((name, _value(value)) for name, value in entry.env.items()),
        entry.cwd,
        entry.env_file,
        entry.url,
        frozenset((name.casefold(), _value(value)) for name, value in entry.headers.items()),
        entry.headers_helper,
        entry.oauth,
        older(entry.protocol_version),
        None if entry.server is None else _Same(entry.server),
    )


def plan(config: Config, running: Mapping[str, Hashable]) -> Delta:
    """Compare the runnable entries with what the supervisor holds.

    Args:
        config: the configuration in force.
        running: name → `launch_key` of every server the supervisor was given and not told to stop, whatever its state
            (starting, parked, …); for one whose replacement is pending, the key of the successor.

    Returns:
        The exact difference; an entry whose launch keys are unchanged is not in it.
    """
    start: list[ServerEntry] = []
    replace: list[ServerEntry] = []
    wanted: set[str] = set()
    for entry in config.servers:
        if not entry.runnable:
            continue
        wanted.add(entry.name)
        if entry.name not in running:
            start.append(entry)
        elif running[entry.name] != launch_key(entry):
            replace.append(entry)
    stop = tuple(name for name in running if name not in wanted)
    return Delta(tuple(start), stop, tuple(replace))
