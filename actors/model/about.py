"""What a server says of itself, in bounds and made plain: it is shown to people, and may be given to a model."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from .frozen import FrozenDict, freeze
from .plain import flat, quoted, short

__all__ = ["ServerInfo", "calls_itself", "server_info"]

LONGEST_NAME = 200
LONGEST_TEXT = 1_000
LONGEST_URL = 2_000
LONGEST_INSTRUCTIONS = 20_000
"""Characters; what is longer is cut."""

MAX_ICONS = 16
MAX_ICON_CHARS = 100_000
"""Characters of the source of an icon: a larger one is left out, as are those beyond the first 16."""

_KEPT = frozenset("\n\t")
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@frozen(kw_only=True)
class ServerInfo:
    """What a server said of itself when it was connected to last; it is the server's word, and nothing is proved by it.

    Args:
        name, version: of the program; None when it does not say, as servers of 2026-07-28 need not.
        title, description: for people, on one line; None when not given.
        website_url: ``http`` or ``https``, or None.
        icons: each an Icon of the protocol.
        instructions: how its tools are to be used, for a model's system prompt; may have several lines. None when not given.
    """

    name: str | None = None
    version: str | None = None
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: tuple[FrozenDict, ...] = ()
    instructions: str | None = None


def server_info(said: Mapping[str, Any], instructions: object = None) -> ServerInfo:
    """Make it of what came; total.

    Args:
        said: the protocol's Implementation, in its JSON form.
        instructions: as given.
    """
    url = _line(said.get("websiteUrl"), LONGEST_URL)
    return ServerInfo(
        name=_line(said.get("name"), LONGEST_NAME),
        version=_line(said.get("version"), LONGEST_NAME),
        title=_line(said.get("title"), LONGEST_NAME),
        description=_line(said.get("description"), LONGEST_TEXT),
        website_url=url if url is not None and url.lower().startswith(("http://", "https://")) else None,
        icons=_icons(said.get("icons")),
        instructions=_lines(instructions),
    )


def calls_itself(info: ServerInfo) -> str | None:
    """Its name, version and website in a line for a person; None when it says no name."""
    name = info.title or info.name
    if name is None:
        return None
    version = "" if info.version is None else f" {info.version}"
    return f"{quoted(name)}{version}{'' if info.website_url is None else f' ({info.website_url})'}"


def _line(text: object, longest: int) -> str | None:
    return flat(text, longest).strip() or None if isinstance(text, str) else None


def _lines(text: object) -> str | None:
    """A text whose lines stay, without what would drive a terminal."""
    if not isinstance(text, str):
        return None
    text = short(text.replace("\r\n", "\n"), LONGEST_INSTRUCTIONS)
    shown = "".join(char if char in _KEPT or not _drives(char) else " " for char in text)
    return shown.strip() or None


def _drives(char: str) -> bool:
    """Whether it is a control character, or one that turns the direction of what follows."""
    return unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or char in _TURNING


def _icons(given: object) -> tuple[FrozenDict, ...]:
    icons = []
    for each in given[:MAX_ICONS] if isinstance(given, list) else ():
        if isinstance(each, dict) and isinstance(src := each.get("src"), str) and len(src) <= MAX_ICON_CHARS:
            known = {key: each[key] for key in ("src", "mimeType", "sizes", "theme") if each.get(key) is not None}
            icons.append(freeze(known))
    return tuple(icons)
