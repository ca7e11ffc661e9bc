"""What lies on the coordinator's desk: its requests, and what of them must outlive an incarnation. Values and pure rules."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence

from attrs import define, field, frozen

from .model.config import Config, ServerEntry
from .model.diff import launch_key
from .model.edits import AddServer, Edit, RemoveServer, SetEnabled, SetPin, SetTool
from .model.errors import PlaybillError

__all__ = ["Apply", "Begun", "Desk", "Operation", "Reload", "Taken", "Trust", "merge", "took_effect"]

MOST_TRIES = 8
"""How often an operation is taken in hand: incarnations that die for other reasons do not die that often in a row."""

REMEMBERED = 1024
"""How many ended operations are remembered: far more than one coordinator ever leaves unanswered."""


@frozen
class Reload:
    """Read the configuration anew and run what it says.

    Args:
        if_changed: only if its text is another one than the last that was taken up or refused (a watcher's request).
    """

    if_changed: bool = False


@frozen
class Apply:
    """Put this value in force, in memory."""

    config: Config


@frozen
class Trust:
    """Approve a server as it was shown.

    Args:
        server: its name.
        shown: the entry that was in force when it was asked for; None when there was none.
    """

    server: str
    shown: ServerEntry | None


@frozen
class Operation:
    """One request, with an id that stays the same however often it is asked for."""

    id: int
    request: Edit | Reload | Apply | Trust


@frozen
class Taken:
    """How an operation ended: the revision it is in, or why it was refused."""

    rev: int
    refused: PlaybillError | None = None


@define
class Begun:
    """An edit that was handed to the store.

    Args:
        edit: what was asked for.
        source: the file that the entry it is about came from then, or None.
        outcome: how the store answered, as (refusal or None,); None as long as it has not.
    """

    edit: Edit
    source: str | None = None
    outcome: tuple[PlaybillError | None] | None = None


@define
class Desk:
    """What outlives an incarnation of the coordinator.

    Args:
        begun: by operation, the edits that the store was asked for and nobody was told of yet.
        ended: how the last operations ended, by id (bounded).
        reading: fingerprint of the text that is being taken up, or None.
        known: fingerprint of the text that was last taken up or refused, ours or not; None when there was none.
        suspects: how many incarnations ended while a text was being taken up, by its fingerprint. Twice is no accident.
        tries: how often an operation that has not ended was taken in hand.
    """

    begun: dict[int, Begun] = field(factory=dict)
    ended: OrderedDict[int, Taken] = field(factory=OrderedDict)
    reading: str | None = None
    known: str | None = None
    suspects: Counter[str] = field(factory=Counter)
    tries: Counter[int] = field(factory=Counter)

    def take_over(self) -> None:
        """A new incarnation sits down: what the last one was taking up is suspected."""
        if self.reading is not None:
            self.suspects[self.reading] += 1
            self.reading = None

    def refuses(self, fingerprint: str | None) -> bool:
        """Whether a text has ended an incarnation so often that it is not taken up again."""
        return fingerprint is not None and self.suspects[fingerprint] >= 2

    def gives_up(self, operation: int) -> bool:
        """Count a try; whether there were so many that it must be the operation itself that ends us."""
        self.tries[operation] += 1
        return self.tries[operation] > MOST_TRIES

    def end(self, operation: int, taken: Taken) -> None:
        """Note how an operation ended."""
        self.begun.pop(operation, None)
        self.tries.pop(operation, None)
        self.ended[operation] = taken
        while len(self.ended) > REMEMBERED:
            self.ended.popitem(last=False)

    def settle(self, config: Config, rev: int) -> None:
        """End what the last incarnation began, by what the store answered or shows; the rest was not done.

        This comes before anything new is served: a later operation may undo the effect that it is known by.

        Args:
            config: as the store has it now.
            rev: the revision that it is in.
        """
        for operation, begun in list(self.begun.items()):
            if begun.outcome is not None:
                self.end(operation, Taken(rev, begun.outcome[0]))
            elif took_effect(begun.edit, config, begun.source):
                self.end(operation, Taken(rev))
        self.begun.clear()


def merge(edits: Sequence[Edit]) -> list[tuple[Edit, list[int]]]:
    """Merge toggles of one tool: the last one stands for those before it.

    Args:
        edits: in the order asked for.

    Returns:
        The edits to apply, in order, each with the indices of the requests that it answers. Toggles are merged only when no
        edit between them adds or removes their server.
    """
    merged: list[tuple[Edit, list[int]]] = []
    toggles: dict[tuple[str, str], int] = {}
    for index, edit in enumerate(edits):
        answers = [index]
        if isinstance(edit, SetTool):
            key = (edit.server, edit.bare)
            earlier = toggles.get(key)
            if earlier is not None:
                answers = [*merged[earlier][1], index]
                merged[earlier] = (merged[earlier][0], [])
            toggles[key] = len(merged)
        elif isinstance(edit, (AddServer, RemoveServer)):
            toggles = {key: at for key, at in toggles.items() if key[0] != edit.server}
        merged.append((edit, answers))
    return [(edit, answers) for edit, answers in merged if answers]


def took_effect(edit: Edit, config: Config, source: str | None = None) -> bool:
    """Whether a configuration shows the effect of an edit: how one that was begun is known after a crash.

    Args:
        edit: what was begun.
        config: as it is now.
        source: the file that the entry came from then, if it is known: one of that name from another file was behind it,
            and shows that it went.
    """
    there = config.get(edit.server)
    if isinstance(edit, RemoveServer):
        return there is None or (source is not None and there.source != source)
    if there is None:
        return False
    match edit:
        case AddServer(entry=entry):
            return launch_key(there) == launch_key(entry)
        case SetTool(bare=bare, on=on):
            return there.allows(bare) is on
        case SetPin(bare=bare, on=on):
            return (bare in there.pin) is on
        case SetEnabled(on=on):
            return there.disabled is not on
