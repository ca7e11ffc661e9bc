"""What goes wrong in a supervised program: each error is one line, and carries what it says as attributes."""

from __future__ import annotations

from attrs import frozen

__all__ = ["ActorDown", "Escalated", "MailboxFull", "StartFailed", "Stuck", "leaves_of", "one_line", "reason_of"]

_LONGEST = 500


class ActorDown(Exception):
    """The incarnation that was spoken to is dead; what was asked of it may or may not have been done.

    Args:
        name: of the actor.
        generation: of the incarnation that died.
        reason: why it died, in one line.
    """

    def __init__(self, name: str, generation: int, reason: str) -> None:
        self.name = name
        self.generation = generation
        self.reason = reason
        super().__init__(f"actor {name!r} (generation {generation}) is down: {reason}")


class StartFailed(Exception):
    """A child asked for with `Supervisor.start` did not acknowledge its start; it is not a child any more.

    Args:
        name: of the child.
        reason: why, in one line.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"child {name!r} did not start: {reason}")


class MailboxFull(Exception):
    """There is no room in the mailbox: nothing was put in. You do NOT get it from the control lane.

    Args:
        name: of the mailbox's actor.
        capacity: of the mailbox, in items.
    """

    def __init__(self, name: str, capacity: float) -> None:
        self.name = name
        self.capacity = capacity
        super().__init__(f"the mailbox of {name!r} is full ({capacity:g} items)")


class Escalated(Exception):
    """A child that may not be parked died too often; everything else was stopped first. Leaves `Supervisor.run` alone.

    Args:
        name: of the child.
        reason: its last death, in one line.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"child {name!r} died too often: {reason}")


@frozen
class Stuck:
    """A child that was cancelled and did not end within its join budget; it is still being joined. A value, not an error.

    Args:
        name: of the child.
        generation: of the incarnation that will not die.
        stage: ``stopping``, or ``starting`` when it was cancelled for not starting in time.
        seconds: the budget that passed since the cancellation.
    """

    name: str
    generation: int
    stage: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.name!r} (generation {self.generation}) still runs {self.seconds:g} s after it was cancelled"


def one_line(text: str) -> str:
    """``text`` with all white space runs made single spaces, cut to 500 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def reason_of(error: BaseException) -> str:
    """Why, in one line: the error's own ``reason`` where it has one, else ``TypeName: message``.

    Codec errors have a ``reason`` too, but without its type nobody would understand it, so they are not asked.
    """
    reason = getattr(error, "reason", None)
    if isinstance(reason, str) and reason.strip() and not isinstance(error, UnicodeError):
        return one_line(reason)
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be printed)"
    return one_line(f"{kind}: {text}") if text.strip() else kind


def leaves_of(error: BaseException) -> list[BaseException]:
    """The exceptions in a tree of groups, left to right, without the groups."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves_of(inner)]
    return [error]
