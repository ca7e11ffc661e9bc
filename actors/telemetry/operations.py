"""Operations (a reload, a toggle, a restart) and what the configuration comes to."""

from __future__ import annotations

from ..model.plain import label
from . import names
from .log import Log
from .notes import INTERNAL, NOTHING, Note, current, recording

__all__ = ["in_force", "operating", "refused", "taken"]

_LOG = Log("playbill.config")


def operating(operation: str, server: str | None = None) -> Note:
    """An operation, from its being asked for until a snapshot shows it; to be entered in the caller's task.

    Args:
        operation: as the method of a host is called.
        server: what it is done to, or None.
    """
    if not recording():
        return NOTHING
    attributes: dict[str, names.Value] = {} if server is None else {names.SERVER: label(server)}
    return Note(names.span_name(f"playbill.{operation}"), attributes, kind=INTERNAL)


def taken(rev: int) -> None:
    """The operation of this task is answered with this revision of the configuration."""
    if (note := current()) is not None:
        note.put(names.CONFIG_REV, rev)


def in_force(rev: int, servers: int, *, started: int, replaced: int, stopped: int) -> None:
    """A configuration was taken up.

    Args:
        rev: its revision.
        servers: how many it has.
        started, replaced, stopped: how many servers that is the end or the beginning of.
    """
    _LOG.info(
        "configuration %d is in force: of %d servers %d are started, %d replaced, %d stopped",
        rev,
        servers,
        started,
        replaced,
        stopped,
        event="config_in_force",
        config_rev=rev,
        started=started,
        replaced=replaced,
        stopped=stopped,
    )


def refused(rev: int, error: Exception) -> None:
    """What the configuration says now cannot be taken up; the one of that revision stays in force, if one does."""
    words = names.error_words(error)
    _LOG.warning(
        "the configuration cannot be taken up: %s",
        words,
        event="config_refused",
        config_rev=rev,
        error_type=names.error_type(error),
        reason=words,
    )
