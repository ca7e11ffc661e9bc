"""The section of each server: what does not depend on the time or on what is under way, made once per `ServerState`.

A `Memo` makes rows fast and never changes what comes out. It recognises servers and tools by identity: the projection hands
on the very objects that did not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from attrs import define, field

from ..model.plain import label
from ..model.snapshot import PluginModel, ServerState, ToolState

__all__ = ["Memo", "Section"]

_SEARCHED = 4_000  # characters of a description that the filter looks at

_Searched = tuple[Sequence[ToolState], Sequence[str]]
"""Tools, and of each the text that the filter looked at; both empty when it did not look."""


@define(eq=False, slots=False)
class Section:
    """A server and its tools.

    Args:
        server: whose section.
        before: what the filter looked at of the same server before, to be used again for tools that are the same objects.
    """

    server: ServerState
    _before: _Searched = field(default=((), ()), repr=False)
    _last_match: tuple[tuple[str, ...], Sequence[int]] | None = field(init=False, default=None, repr=False)

    @cached_property
    def _by_name(self) -> dict[str, ToolState]:
        # A name that a server lists twice is one row: two could not be told apart.
        return {tool.bare: tool for tool in self.server.tools}

    @cached_property
    def tools(self) -> tuple[ToolState, ...]:
        """The tools in the order advertised, each name once."""
        return tuple(self._by_name.values())

    @cached_property
    def position(self) -> dict[str, int]:
        """Of each bare name, where its tool is in `tools`."""
        return {bare: at for at, bare in enumerate(self._by_name)}

    @cached_property
    def on_wire(self) -> int:
        """How many of its tools are on the wire."""
        return [tool.verdict for tool in self.tools].count("on_wire")

    @cached_property
    def name(self) -> str:
        """The server's name, as it can be shown."""
        return label(self.server.name)

    @cached_property
    def _head(self) -> str:
        return self.server.name.casefold()

    @cached_property
    def _texts(self) -> list[str]:
        """What the filter looks at, of each of `tools`."""
        (tools, texts), self._before = self._before, ((), ())
        if not texts:
            return [self._text(tool) for tool in self.tools]
        known = {id(tool): text for tool, text in zip(tools, texts, strict=True)}
        return [known.get(id(tool)) or self._text(tool) for tool in self.tools]

    def searched(self) -> _Searched:
        """What the filter looked at, of this section or of one before it; nothing is made."""
        return (self.tools, self._texts) if "_texts" in self.__dict__ else self._before

    def _text(self, tool: ToolState) -> str:
        described = (tool.description or "")[:_SEARCHED]
        return "\n".join((self._head, tool.bare, tool.title or "", tool.wire_name, described)).casefold()

    def named(self, words: Sequence[str]) -> bool:
        """Whether the server's own name has all the words (lower case, as `str.casefold` makes it)."""
        return all(word in self._head for word in words)

    def matching(self, words: tuple[str, ...]) -> Sequence[int]:
        """Which tools have all the words in server, name, title, wire name or description: positions in `tools`."""
        if not words:
            return range(len(self.tools))
        if self._last_match is None or self._last_match[0] != words:
            texts = self._texts
            before, found = self._last_match or ((), range(len(texts)))
            # Who types on narrows what was found; anything else begins anew.
            if not all(any(word in new for new in words) for word in before):
                before, found = (), range(len(texts))
            for word in dict.fromkeys(words):
                if word not in before:
                    found = [at for at in found if word in texts[at]]
            self._last_match = (words, found)
        return self._last_match[1]


@define(eq=False)
class Memo:
    """What one picker keeps to be fast: the sections of the last snapshot, and the last things made of it.

    It belongs to one picker at a time, and does not grow.
    """

    _sections: dict[str, Section] = field(init=False, factory=dict)
    _last: list[tuple[tuple[Any, ...], Any]] = field(init=False, factory=list)

    def sections(self, model: PluginModel) -> list[Section]:
        """The section of each server, in the order configured; anew only where the server is another object."""
        made: dict[str, Section] = {}
        for server in model.servers:
            was = self._sections.get(server.name)
            made[server.name] = (
                was
                if was is not None and was.server is server
                else Section(server, ((), ()) if was is None else was.searched())
            )
        self._sections = made
        return list(made.values())

    def last(self, key: tuple[Any, ...]) -> Any:
        """What was kept for a key of the same objects, or None."""
        for was, made in self._last:
            if len(was) == len(key) and all(a is b for a, b in zip(was, key, strict=True)):
                return made
        return None

    def keep(self, key: tuple[Any, ...], made: Any) -> None:
        """Keep something for a key; the last eight are kept."""
        self._last = [(key, made), *self._last[:7]]
