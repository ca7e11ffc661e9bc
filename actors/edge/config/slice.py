"""The edits of one entry's text: which text is written follows from the keys that are there.

A list is edited under the alias the person uses; ours (``tools.exclude``, ``tools.pin``; beside a ``tools`` that is a list,
``disabledTools``) is made when there is none, and goes again when it is empty, unless there is a comment in it. A tool that is
the last of an allow-list is hidden by taking it out there, if letting it through puts back every byte. Of ``disabled``,
``enabled`` and ``isActive`` the one that is there is set; a ``disabled`` that comes last, where we put it, is removed again.
What was there before us is not: a ``false`` that comes last becomes `` true``, in the same five bytes, and an empty list or
object of ours is filled as ``[ "t" ]``, so that the opposite edit knows them, and puts back what was there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...model.config import ServerEntry
from ...model.edits import SetEnabled, SetPin, SetTool
from .entry import EXCLUDES, INCLUDES, PIN, allow_list
from .jsonc import Source, scan
from .jsonc_walk import Member, Path, items, locate, members
from .span_edit import Change, add_item, add_member, apply, has_comment, remove, set_value, wider

__all__ = ["TOUCHED", "EntryEdit", "Slice", "edit_slice"]

EntryEdit = SetTool | SetPin | SetEnabled

TOUCHED: dict[type, tuple[str, ...]] = {
    SetTool: ("tools", "disabledTools", "excludeTools", "enabledTools", "includeTools"),
    SetPin: ("tools",),
    SetEnabled: ("disabled", "enabled", "isActive"),
}


"""The keys of an entry that an edit may change."""


class Slice:
    """The text of one entry, changed step by step."""

    def __init__(self, text: str, at: int, file: str | None) -> None:
        self.at = at
        self.source: Source = scan(text, file)

    @property
    def text(self) -> str:
        return self.source.text[self.at :]

    def change(self, change: Change) -> None:
        """Make a change (offsets into `source`)."""
        self.source = scan(apply(self.source.text, change), self.source.file)

    def value(self, path: Path = ()) -> Any:
        """The value at a path; None when it is null or not there."""
        found = locate(self.source, path, self.at)
        return None if found is None else found.value

    def put(self, path: Path, value: Any) -> None:
        """Set a member, whether or not it and what it is in are there yet."""
        *above, last = path
        parent = tuple(above)
        there = locate(self.source, path, self.at)
        if there is not None:
            self.change(set_value(there, value))
        elif parent and not isinstance(self.value(parent), dict):
            self.put(parent, {str(last): value})
        else:
            within = locate(self.source, parent, self.at)
            assert within is not None
            self.change(_marked(within, add_member(self.source, within.at, str(last), value)))

    def drop(self, path: Path) -> None:
        """Remove a member."""
        within = locate(self.source, path[:-1], self.at)
        assert within is not None
        inner, _ = members(self.source, within.at)
        self.change(remove(self.source, within.at, [each.key for each in inner].index(path[-1])))

    def append(self, path: Path, item: str, *, ours: bool) -> None:
        """Add to a list, made if it is not there; ``ours`` when it is one that goes again when it is empty."""
        there = locate(self.source, path, self.at)
        if there is None or there.value is None:
            self.put(path, [item])
        else:
            change = add_item(self.source, there.at, item)
            self.change(_marked(there, change) if ours else change)

    def discard(self, path: Path, item: str, *, tidy: bool) -> None:
        """Remove from a list, as often as it is in it; what is left empty goes too if it is ``tidy``."""
        while item in (self.value(path) or ()):
            there = locate(self.source, path, self.at)
            assert there is not None
            inner, _ = items(self.source, there.at)
            ours = self._ours(there)
            self.change(remove(self.source, there.at, [each.value for each in inner].index(item)))
            if tidy and ours:
                self._tidy(path)

    def _tidy(self, path: Path) -> None:
        """Remove an empty list, and the object of ours around it if that is empty then, unless a comment is in it."""
        while path:
            there = locate(self.source, path, self.at)
            if there is None or there.value or has_comment(self.source, there.start, there.end):
                return
            within = locate(self.source, path[:-1], self.at)
            assert within is not None
            ours = self._ours(within)
            self.drop(path)
            path = path[:-1] if ours else ()

    def _ours(self, there: Member) -> bool:
        """Whether a list or object is written as we make one: nothing is between its bracket and what is first in it."""
        return not self.source.text[there.at + 1].isspace()


def _marked(within: Member, change: Change) -> Change:
    """An addition to a list or object that was there empty: with space around it, so that it is not taken for ours."""
    fresh = not within.value and change.at == within.at + 1 and not change.new[0].isspace()
    return change._replace(new=f" {change.new} ") if fresh else change


def _last_there(slice_: Slice, paths: Iterable[Path]) -> Path | None:
    """The last of the lists that are there: what is added there comes last in what is read."""
    found = None
    for path in paths:
        value = slice_.value(path)
        if isinstance(value, list) and (path != ("tools",) or allow_list(value) is not None):
            found = path
    return found


def _take_back(slice_: Slice, bare: str) -> bool:
    """Hide a tool by taking it out of an allow-list, if it stands there just as letting it through has put it, or would."""
    path = _last_there(slice_, INCLUDES)
    allowed = [name for each in INCLUDES for name in _names(slice_, each)]
    mine = [] if path is None else _names(slice_, path)
    # A `tools` that is an empty list would allow all.
    if path is None or mine[-1:] != [bare] or allowed.count(bare) > 1 or (path == ("tools",) and len(mine) == 1):
        return False
    before = slice_.source
    slice_.discard(path, bare, tidy=False)
    without = slice_.source
    slice_.append(path, bare, ours=False)
    same = slice_.source.text == before.text
    slice_.source = without if same else before
    return same


def _names(slice_: Slice, path: Path) -> list[str]:
    value = slice_.value(path)
    return value if isinstance(value, list) and (path != ("tools",) or allow_list(value) is not None) else []


def _set_tool(slice_: Slice, edit: SetTool, entry: ServerEntry) -> None:
    # Where we make a list: beside a `tools` that is a list itself there is no place for `tools.exclude`.
    fresh = EXCLUDES[1] if isinstance(slice_.value(("tools",)), list) else EXCLUDES[0]
    if edit.on:
        for path in EXCLUDES:
            # An empty list under another name was there before us.
            slice_.discard(path, edit.bare, tidy=path == fresh)
        if entry.include is not None and edit.bare not in entry.include:
            into = _last_there(slice_, INCLUDES)
            assert into is not None
            slice_.append(into, edit.bare, ours=False)
    elif entry.allows(edit.bare) and not _take_back(slice_, edit.bare):
        path = _last_there(slice_, EXCLUDES) or fresh
        slice_.append(path, edit.bare, ours=path == fresh)


def _set_pin(slice_: Slice, edit: SetPin, entry: ServerEntry) -> None:
    if not edit.on:
        slice_.discard(PIN, edit.bare, tidy=True)
    elif edit.bare not in entry.pin:
        slice_.append(PIN, edit.bare, ours=True)


def _set_enabled(slice_: Slice, edit: SetEnabled, entry: ServerEntry) -> None:
    disabled = slice_.value(("disabled",))
    switches = [(key,) for key in ("enabled", "isActive") if slice_.value((key,)) is not None]
    if entry.disabled is not edit.on:
        return
    inner, _ = members(slice_.source, slice_.at)
    there = max((i for i, each in enumerate(inner) if each.key == "disabled"), default=-1)
    mine, last = inner[there], there == len(inner) - 1
    blanks = wider(slice_.source, inner[: there + 1]) if there >= 0 else None
    if not edit.on:
        if disabled is None and switches:
            slice_.put(switches[0], False)
        elif disabled is False and last and blanks is not None:
            slice_.change(Change(mine.at, mine.end, " true"))
        else:
            slice_.put(("disabled",), True)
        return
    if disabled:
        if blanks == 0 and last:
            slice_.drop(("disabled",))  # as we put it there ourselves
        elif blanks:
            slice_.change(Change(mine.at - 1, mine.end, "false"))
        else:
            slice_.put(("disabled",), False)
    for switch in switches:
        if slice_.value(switch) is False:
            slice_.put(switch, True)


def edit_slice(slice_: Slice, edit: EntryEdit, entry: ServerEntry) -> None:
    """Do one edit.

    Args:
        slice_: the entry's text; what the edit touches is of the right kind (see `TOUCHED`).
        edit: what to do.
        entry: what the text says.
    """
    match edit:
        case SetTool():
            _set_tool(slice_, edit, entry)
        case SetPin():
            _set_pin(slice_, edit, entry)
        case SetEnabled():
            _set_enabled(slice_, edit, entry)
